"""Ranges and limits that nobody declared, found privately with a share of epsilon, so that SUM and AVG answer at once.

In: a question that lacks facts. Out: public facts for its policy, what they cost, how many units they cut at most.
What was found once is public: it is written into the ledger, and no later question pays for it. Ends and limits are of
public lists; the data only decide which one is taken (truncation.range, truncation.rows). Ends that followed the data
would tell of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from secant.errors import Refused
from secant.noise.mechanisms.discrete_laplace import add_discrete_laplace, discrete_laplace_error
from secant.noise.mechanisms.selection import PermuteAndFlip
from secant.plan import nodes as n
from secant.plan.facts.reads import scans
from secant.plan.facts.scopes import read_columns
from secant.plural import several
from secant.policy.coverage import is_protected
from secant.policy.policy import Policy, Protection
from secant.records import frozen
from secant.schema import types as t
from secant.schema.catalog import Catalog
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.public_facts import PublicFacts
from secant.sensitivity.split import Decomposition, prepare
from secant.sensitivity.truncation.unstated import Extremes, extremes

SHARE = Fraction(1, 5)
"""Of a question's epsilon, for all facts that it lacks together. The next question has them for nothing."""
RULES = ("(rewrite.range)", "(rewrite.limit)")
LEVEL = Fraction(95, 100)
"""How sure the number of units is that a found range or limit leaves out at most."""
FALL = Fraction(4, 5)
"""Each step up a list counts as so many units over epsilon: with less, far too large ends come too often; with more,
all units are cut where they are few."""
LIMIT_FALL = Fraction(8, 5)
"""The same for limits of rows: their list is short, so that more may be asked of each step before few units are cut."""
WIDER = 1
"""Steps that an end is moved outward once it is chosen, for nothing: units at the top are too few to be seen."""
USUAL_SIZE, WIDEST_SIZE, MOST_ROWS = 1000, 10**12, 10**6
"""For questions about a question: what is assumed of facts before they are found, and the most that they may be."""
_DIGITS = (1, 2, 5)
_OUTCOME, _DISCARDED = "found ", "discarded "


@frozen
class Lacking:
    """A fact that a question lacks: the range of a column, or how many rows of a table one unit may have."""

    table: str
    column: str | None
    protection: str

    @property
    def words(self) -> str:
        """Name what was found as `leaves_out` does."""
        return self.table if self.column is None else f"{self.table}.{self.column}"


@frozen
class Found:
    """A fact that was found privately. Public."""

    lacking: Lacking
    low: Fraction | None
    high: Fraction
    """The ends of a range; without a low one, the limit of rows."""
    epsilon: Fraction
    outside: int
    """Units of which something lies outside, at most, at LEVEL."""

    def to_dict(self) -> dict[str, Any]:
        """Give the fact as plain values, for the ledger and for answers."""
        facts = self.lacking
        return {
            "table": facts.table,
            "column": facts.column,
            "protection": facts.protection,
            "low": None if self.low is None else str(self.low),
            "high": str(self.high),
            "epsilon": str(self.epsilon),
            "outside": self.outside,
        }

    def __str__(self) -> str:
        facts = self.lacking
        having = "has" if self.outside == 1 else "have"
        units = (
            f"at most {several(self.outside, 'unit')} {having} {{}} ({float(LEVEL) * 100:g} % sure)"
        )
        if self.low is None:
            counts = "counts" if self.outside == 1 else "count"
            more = units.format(f"more, and {counts} no further; by how much is unknown")
            return f"Limit found privately: {several(int(self.high), 'row')} per unit in {facts.table}; {more}."
        low, high = (f"{float(x):,.10g}" for x in (self.low, self.high))
        more = units.format("values outside, which count as its ends; how far outside is unknown")
        return f"Range found privately: {facts.table}.{facts.column} from {low} to {high}; {more}."


def may_be_inferred(refusal: Refused) -> bool:
    """Whether a range or a limit that is not declared is what stands first in the way of a question."""
    return bool(refusal.details) and refusal.details[0].endswith(RULES)


def lacking_facts(
    plan: n.Relation,
    policy: Policy,
    protections: tuple[Protection, ...],
    catalog: Catalog,
    facts: PublicFacts,
) -> tuple[Lacking, ...]:
    """Give the fewest facts with which a question is bounded; none where no such facts would help."""
    read = read_columns(plan)
    lacking: dict[Lacking, None] = {}
    for scan in scans(plan):
        table = scan.table.lower()
        hiding = [p for p in protections if is_protected(table, policy, (p,))]
        if len(hiding) != 1 or hiding[0].kind not in ("rows", "unit"):
            continue  # another protection's neighbor may move many units: nothing bounds a choice for both
        (protection,) = hiding
        stored = catalog.table(table)
        whole = set() if stored is None else {name.lower() for name, _ in stored.columns}
        for f in scan.columns:
            column = f.name[len(scan.alias) + 1 :].lower()
            declared = policy.column(table, column)
            if column not in whole:
                continue  # a part of a column: only what is declared of it is known
            if f.name in read and f.type.numeric and not declared.range and not declared.values:
                lacking[Lacking(table, column, protection.name)] = None
        if protection.kind == "unit" and table not in protection.limits:
            lacking[Lacking(table, None, protection.name)] = None

    def bounded(having: Iterable[Lacking]) -> bool:
        """Whether a question is bounded with facts of a usual size, and with the widest that may be found."""
        for size in (USUAL_SIZE, WIDEST_SIZE):
            with_all = completed(policy, [assumed(x, size) for x in having])
            names = {p.name for p in protections}
            inside = tuple(p for p in with_all.protections if p.name in names)
            if not isinstance(prepare(plan, with_all, inside, catalog, facts), Decomposition):
                return False
        return True

    if not lacking or not bounded(lacking):
        return ()
    for one in list(lacking):
        others = [x for x in lacking if x != one]
        if bounded(others):
            del lacking[one]
    return tuple(lacking)


def assumed(lacking: Lacking, size: int = USUAL_SIZE) -> Found:
    """Give a fact of a usual size, to see whether a question is bounded once it is found."""
    if lacking.column is None:
        return Found(lacking, None, Fraction(min(size, MOST_ROWS)), Fraction(0), 0)
    return Found(lacking, Fraction(-size), Fraction(size), Fraction(0), 0)


def completed(policy: Policy, facts: Sequence[Found]) -> Policy:
    """Give the policy with facts that were found: from here on they are enforced like declared ones (I2)."""
    tables, protections = dict(policy.tables), list(policy.protections)
    for fact in facts:
        table, column = fact.lacking.table, fact.lacking.column
        if column is not None:
            old = tables.get(table, policy.facts(table))
            assert fact.low is not None
            ends = (_number(fact.low), _number(fact.high))
            column_facts = replace(policy.column(table, column), range=ends, found=True)
            columns = {**old.columns, column: column_facts}
            tables[table] = replace(old, columns=columns)
            continue
        for index, p in enumerate(protections):
            if p.name == fact.lacking.protection:
                limits = {**p.limits, table: int(fact.high)}
                protections[index] = replace(p, limits=limits, found=p.found | {table})
    return replace(policy, tables=tables, protections=tuple(protections))


def without(policy: Policy, lacking: Lacking) -> Policy:
    """Give the policy without a fact, where it was found and not declared."""
    if lacking.column is None:
        return replace(
            policy,
            protections=tuple(
                replace(
                    p,
                    limits={t: x for t, x in p.limits.items() if t != lacking.table},
                    found=p.found - {lacking.table},
                )
                if p.name == lacking.protection and lacking.table in p.found
                else p
                for p in policy.protections
            ),
        )
    facts, column = policy.facts(lacking.table), policy.column(lacking.table, lacking.column)
    if not column.found:
        return policy
    columns = {**facts.columns, lacking.column: replace(column, range=None, found=False)}
    return replace(policy, tables={**policy.tables, lacking.table: replace(facts, columns=columns)})


def _number(value: Fraction) -> object:
    whole = value.denominator == 1
    return int(value) if whole else Decimal(value.numerator) / Decimal(value.denominator)


def ladder(kind: t.Type) -> tuple[Fraction, ...]:
    """Give the public list of sizes for a type, 1, 2, 5, 10, 20 and so on; smallest first."""
    least = 0 if kind.kind == "INTEGER" else -2 if kind.kind == "DOUBLE" else -min(kind.scale, 2)
    most = 12 if kind.kind != "DECIMAL" else min(12, kind.precision - kind.scale)
    return tuple(d * Fraction(10) ** power for power in range(least, most) for d in _DIGITS)


def find(
    lacking: Sequence[Lacking],
    policy: Policy,
    catalog: Catalog,
    epsilon: Fraction,
    count: Callable[[n.Aggregate], Sequence[object]],
) -> tuple[Found, ...]:
    """Choose every fact at an equal part of epsilon; `count` runs a statement and gives its one row.

    The caller has paid before anything is counted.
    """
    share = epsilon / len(lacking)
    facts = []
    for fact in lacking:
        protection = policy.protection(fact.protection)
        assert protection is not None
        values = extremes(fact.table, fact.column, policy, protection, catalog)
        assert values is not None, "whoever pays has looked first"
        if fact.column is None:
            facts.append(_limit(fact, values, share, count))
        else:
            stored = catalog.table(fact.table)
            assert stored is not None
            kinds = {name.lower(): kind for name, kind in stored.columns}
            facts.append(_range(fact, values, kinds[fact.column], share, count))
    return tuple(facts)


Count = Callable[[n.Aggregate], Sequence[object]]


def _range(fact: Lacking, values: Extremes, kind: t.Type, share: Fraction, count: Count) -> Found:
    """Choose how large values are, then where they begin; count what is left out."""
    sizes = ladder(kind)
    index = _chosen(values, [(-s, s) for s in sizes], share / 2, count)
    high = sizes[min(index + WIDER, len(sizes) - 1)]
    starts = [high / 2, Fraction(0), -high / 2, -high]
    if kind.kind != "DOUBLE":
        starts = [Fraction(math.floor(s)) for s in starts]
    low = starts[_chosen(values, [(s, high) for s in starts], share / 8, count)]
    return Found(fact, low, high, share, _left_out(values, low, high, share * 3 / 8, count))


def _limit(fact: Lacking, values: Extremes, share: Fraction, count: Count) -> Found:
    sizes = [s for s in ladder(t.INTEGER) if s <= MOST_ROWS]
    index = _chosen(values, [(None, s) for s in sizes], share / 2, count, LIMIT_FALL)
    limit = sizes[index]
    return Found(fact, None, limit, share, _left_out(values, None, limit, share / 2, count))


def _chosen(
    values: Extremes,
    ends: Sequence[tuple[Fraction | None, Fraction]],
    epsilon: Fraction,
    count: Count,
    fall: Fraction = FALL,
) -> int:
    """Choose one of a list from narrow to wide; one unit less lowers all counts by at most one (truncation.range)."""
    outside = [int(str(x)) for x in count(values.counted(ends))]
    choice = PermuteAndFlip().calibrate(
        GlobalBound(Fraction(1), "linf"), epsilon=epsilon, monotone=True
    )
    return choice.draw([-units - fall * step / epsilon for step, units in enumerate(outside)])


def _left_out(
    values: Extremes, low: Fraction | None, high: Fraction, epsilon: Fraction, count: Count
) -> int:
    """Count privately whom the final ends cut; give a number that is not exceeded, at LEVEL."""
    (units,) = count(values.counted([(low, high)]))
    (noisy,) = add_discrete_laplace([int(str(units))], scale=1 / epsilon)
    # One-sided: noise is below -error with half the chance that it is beyond it on either side.
    most = noisy + math.ceil(discrete_laplace_error(1 / epsilon, 2 * LEVEL - 1))
    return max(0, most)


def outcome_text(facts: Sequence[Found]) -> str:
    """Give what the ledger keeps of facts that were found."""
    return _OUTCOME + json.dumps([fact.to_dict() for fact in facts])


def discarded_text(lacking: Sequence[Lacking]) -> str:
    """Give what the ledger keeps of facts that are discarded."""
    names = [[x.table, x.column, x.protection] for x in lacking]
    return _DISCARDED + json.dumps(names)


def in_outcome(outcome: str) -> tuple[Found, ...]:
    """Give the facts that were found by what has such an outcome in the ledger."""
    if not outcome.startswith(_OUTCOME):
        return ()
    return tuple(map(_read, json.loads(outcome.removeprefix(_OUTCOME))))


def in_force(outcomes: Iterable[str]) -> dict[Lacking, Found]:
    """Give the facts that the ledger has, the latest of each, without those that were discarded since."""
    by_lacking: dict[Lacking, Found] = {}
    for outcome in outcomes:
        if outcome.startswith(_DISCARDED):
            for names in json.loads(outcome.removeprefix(_DISCARDED)):
                by_lacking.pop(Lacking(*names), None)
        by_lacking |= {fact.lacking: fact for fact in in_outcome(outcome)}
    return by_lacking


def recalled(outcomes: Iterable[str], lacking: Sequence[Lacking]) -> tuple[Found, ...]:
    """Give the facts that the ledger has already, the latest of each."""
    known = in_force(outcomes)
    return tuple(known[x] for x in lacking if x in known)


def _read(fact: Mapping[str, Any]) -> Found:
    low = fact["low"]
    return Found(
        Lacking(fact["table"], fact["column"], fact["protection"]),
        None if low is None else Fraction(low),
        Fraction(fact["high"]),
        Fraction(fact["epsilon"]),
        int(fact["outside"]),
    )


def countable(lacking: Sequence[Lacking], policy: Policy, catalog: Catalog) -> bool:
    """Whether every fact can be counted unit by unit."""
    for fact in lacking:
        protection = policy.protection(fact.protection)
        if protection is None or (
            extremes(fact.table, fact.column, policy, protection, catalog) is None
        ):
            return False
    return bool(lacking)
