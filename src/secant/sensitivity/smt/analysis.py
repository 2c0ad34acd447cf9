"""The smt analysis: a solver proves how many rows of an aggregate's input can differ, or shows why any number can.

In: a request under a protection of kind `rows`. Out: a certificate of global bounds, or a refusal; and the proof
obligation as SMT-LIB text. Never here: data. Everything is decided from the plan, the keys that the engine keeps
and the keys of public tables, which are checked before anything is spent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from secant.errors import Refused, UsageError
from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.facts.reads import tables_read
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.policy.keys import Key, Trust, in_order
from secant.policy.policy import Protection
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import CannotBound, Certificate, Refusal, Step
from secant.sensitivity.growth import growth
from secant.sensitivity.interface import Request, refusing
from secant.sensitivity.smt.allowance import Allowance
from secant.sensitivity.smt.language import Language, load
from secant.sensitivity.smt.pumping import boundless
from secant.sensitivity.smt.rules import EncodedKey, Encoder
from secant.sensitivity.smt.search import Search, Verdict, search, solver_of
from secant.sensitivity.summands import amount, measure_bound, replaced_bound, rows_differ

SECONDS = 60.0
"""How long the solver may think about one release, unless the caller says otherwise; steps run out long before."""
MOST = 12
"""The largest number of rows that is looked for: beyond it bounds are useless and proofs are slow."""


class SmtAnalysis:
    """Global bounds for COUNT and SUM under `rows`, by model checking."""

    name = "smt"
    kinds: tuple[str, ...] = ("rows",)

    def __init__(self, seconds: float = SECONDS, most: int = MOST) -> None:
        if not 0 < seconds < float("inf"):
            raise UsageError("USE-001", "the solver needs a positive, finite number of seconds")
        if not 0 <= most <= 100:
            raise UsageError("USE-001", "rows to look for: from 0 to 100")
        self.seconds, self.most = seconds, most

    @refusing
    def bound(self, request: Request) -> Certificate | Refusal:
        """Bound every measure of the release, or say why that cannot be done."""
        release = request.release
        exact = release.exact
        if request.protection.kind != "rows":
            raise CannotBound(
                "smt.kind", exact, "only rows that come and go are bounded here", "use kind `rows`"
            )
        if release.ranked:
            raise CannotBound(
                "smt.rank",
                exact,
                "order statistics are not bounded here",
                "ask for counts and sums",
            )
        work = _Proofs(request, self.most, time.monotonic() + self.seconds)
        rows, differ = 0, Step("smt.rows", "nothing else is counted", "0 rows differ")
        by_rows = not exact.aggregations or any(not call.distinct for call in exact.aggregations)
        if by_rows:
            rows, differ = work.changed(exact.input)
        groups, most, contribution = rows, rows, rows
        bounds: dict[str, GlobalBound] = {}
        steps: list[Step] = []
        for measure, call in zip(release.measures, exact.aggregations, strict=True):
            changed, step = work.values(exact, call) if call.distinct else (rows, differ)
            if work.swaps(exact):
                rule, value, description = replaced_bound(call, changed // 2, False, measure.step)
            else:
                rule, value, description = measure_bound(call, changed, changed, None, measure.step)
            bounds[measure.column] = GlobalBound(value)
            value_text = f"moves by at most {amount(value * measure.step)}"
            steps.append(Step(rule, f"{measure.words}: {description}", value_text, (step,)))
            groups += 0 if by_rows else changed  # a group that differs has a row that does
            most = max(most, changed)
            if call.name == release.selector:
                contribution = changed
        return Certificate(
            self.name,
            request.protection.name,
            bounds,
            most,
            groups,
            contribution if release.selector else most,
            work.claims(),
            tuple(steps),
        )


def obligations(
    releases: Sequence[MeasuredAggregate],
    protections: Sequence[Protection],
    facts: Facts,
    rows: int | None,
) -> str:
    """Write what a solver must find impossible for the bounds of all releases to hold, one after the other."""
    try:
        problems = [smt_lib(Request(r, facts, p), rows) for r in releases for p in protections]
    except CannotBound as verdict:
        raise Refused("REF-101", verdict.reason, hint=verdict.hint) from None
    return "(reset)\n".join(problems)


def smt_lib(request: Request, rows: int | None = None, *, seconds: float = SECONDS) -> str:
    """Write as SMT-LIB 2 that so many rows of the aggregate's input can differ.

    `unsat` from any solver proves that they cannot. Without `rows`: one more than this analysis proves.
    """
    work = _Proofs(request, MOST, time.monotonic() + seconds)
    relation = request.release.exact.input
    if rows is None:
        rows = work.changed_once(relation)[0] + 1
    if rows < 1:
        raise UsageError("USE-001", "ask for at least one row")
    z3 = load(relation)
    shared = Language(z3)
    cases = []
    for table in work.tables(relation):
        language = Language(z3, f"{table}: ", shared.context, texts=shared.texts)
        encoder = Encoder(language, table, work.keys)
        target = Search(encoder, relation)
        for number in range(rows):
            if not encoder.allowance.writes(relation, number):
                raise UsageError("USE-001", "so many rows make the obligation too long")
            target.grow()
        flags = [language.named_flag(x) for x in sorted(work.labels(relation))]
        cases.append(language.all_of([*flags, *target.facts]))
    solver = solver_of(Encoder(shared, "", work.keys))
    solver.add(shared.any_of(cases))
    comment = f"; Can one protected row change {rows} rows? unsat: no, at most {rows - 1}.\n"
    return comment + str(solver.to_smt2())


@dataclass
class _Proofs:
    """All searches for one request, in one stretch of time."""

    request: Request
    most: int
    deadline: float
    allowance: Allowance = field(default_factory=Allowance)
    used: set[str] = field(default_factory=set)
    counted: n.Relation | None = None

    def tables(self, relation: n.Relation) -> list[str]:
        """Give the protected tables that a relation reads."""
        return sorted(t for t in tables_read(relation) if t in self.request.covered)

    def swaps(self, exact: n.Aggregate) -> bool:
        """Say whether a replaced row brings into the one group at most what one row can (combined.grows)."""
        tables = self.tables(exact.input)
        grows = growth(exact.input, lambda table: table in tables) is not None
        return self.request.protection.replace and not exact.keys and grows

    def values(self, exact: n.Aggregate, call: n.Aggregation) -> tuple[int, Step]:
        """Give how many values of an argument come or go, all groups together: count(DISTINCT x) counts them."""
        assert call.argument is not None, "DISTINCT stands before an argument"
        filtered = n.Filter(exact.input, n.Not(n.IsNull(call.argument)))
        items = (*exact.keys, n.Named("value of " + call.name, call.argument))
        self.counted = n.Distinct(n.Project(filtered, items))
        return self.changed(self.counted)

    def changed(self, relation: n.Relation) -> tuple[int, Step]:
        """Give how many rows of a relation differ between neighbors, at most."""
        rows, step = self.changed_once(relation)
        if self.request.protection.replace:
            rows *= 2
            step = Step("smt.replace", "one row is replaced", rows_differ(rows), (step,))
        return rows, step

    def changed_once(self, relation: n.Relation) -> tuple[int, Step]:
        """Give how many rows differ if one row of one table is taken out or put in, at most."""
        rows, proved = 0, []
        for table in self.tables(relation):
            changed, step = self._without(relation, table)
            rows = max(rows, changed)
            proved.append(step)
        description = (
            "the worst of all protected tables" if proved else "no protected table is read"
        )
        return rows, Step("smt.rows", description, _differ(rows), tuple(proved))

    def _without(self, relation: n.Relation, table: str) -> tuple[int, Step]:
        """Take a row out of one table: precisely, and if that takes too long one use of it after another."""
        labels = self.labels(relation)
        started = time.monotonic()
        half = started + (self.deadline - started) / 2
        encoder = self._encoder(relation, table)
        verdict = search(encoder, relation, labels, 0, half)
        if verdict.state == "large":
            witness = boundless(encoder, relation, labels, half)
            if witness is not None:
                raise CannotBound(
                    "smt.unbounded",
                    relation,
                    f"one row of {table} can change any number of rows, for example with copies of what it meets in "
                    f"{witness} (made up by the solver)",
                    "join on a key that the engine keeps, or protect units with limits",
                )
            verdict = search(self._encoder(relation, table), relation, labels, self.most, half)
        description = f"a row of {table} is taken out"
        if verdict.state == "unknown" and len(encoder.uses) > 1:
            verdict = self._copy_by_copy(relation, table, len(encoder.uses), labels)
            description = (
                f"a row of {table} is taken out, one use of the table after another (smt.copies)"
            )
        if verdict.state == "large":
            raise CannotBound(
                "smt.large",
                relation,
                f"one row of {table} can change {verdict.rows} rows or more, for example {verdict.witness} "
                "(made up by the solver)",
                "join on a key that the engine keeps, or protect units with limits",
            )
        if verdict.state == "unknown":
            raise CannotBound(
                "smt.time",
                relation,
                f"the solver did not settle in time how many rows one row of {table} can change",
                "simplify the conditions, or give the solver more time",
            )
        self.used |= verdict.used
        assumed = tuple(
            Step("smt.key", f"{label} is accepted by the owner", "not checked")
            for label in sorted(verdict.used)
            if label.startswith(_ASSUMED)
        )
        value = f"there is no database where {rows_differ(verdict.rows + 1)}"
        return verdict.rows, Step(
            "smt.rows", f"{description}: {value}", _differ(verdict.rows), assumed
        )

    def _encoder(self, relation: n.Relation, table: str, copy: int | None = None) -> Encoder:
        language = Language(load(relation))
        return Encoder(language, table, self.keys, copy, self.counted, self.allowance)

    def _copy_by_copy(
        self, relation: n.Relation, table: str, uses: int, labels: frozenset[str]
    ) -> Verdict:
        """Add up what each use of the table can change while the others are any tables (smt.copies)."""
        rows, used = 0, frozenset[str]()
        for use in range(uses):
            encoder = self._encoder(relation, table, use)
            verdict = search(encoder, relation, labels, self.most, self.deadline)
            if verdict.state != "bounded":
                return Verdict("unknown")
            rows, used = rows + verdict.rows, used | verdict.used
        return Verdict("bounded", rows, used)

    # keys

    def labels(self, relation: n.Relation) -> frozenset[str]:
        """Give the names of the keys that are not the engine's."""
        read = tables_read(relation)
        return frozenset(key.label for table in read for key in self.keys(table) if key.label)

    def keys(self, table: str) -> tuple[EncodedKey, ...]:
        """Give the keys that proofs may use (smt.key)."""
        stored = self.request.catalog.table(table)
        kinds = {name.lower(): kind.kind for name, kind in stored.columns} if stored else {}
        return tuple(
            EncodedKey(tuple((c, kinds[c]) for c in key.columns), _label(key))
            for key in self.request.facts.keys(table)
            if key.holds
        )

    def claims(self) -> tuple[Key, ...]:
        """Give the keys that the proofs use and the engine does not keep."""
        tables = tables_read(*self.request.release.aggregates)
        keys = (key for table in tables for key in self.request.facts.keys(table))
        return in_order({key for key in keys if _label(key) in self.used})


_CHECKED, _ASSUMED = "public key ", "declared key "


def _label(key: Key) -> str:
    if key.trust is Trust.KEPT:
        return ""
    word = _CHECKED if key.trust is Trust.CHECKED else _ASSUMED
    return word + f"{key.table}({', '.join(key.columns)})"


def _differ(rows: int) -> str:
    return f"{rows} row{'s' if rows != 1 else ''} differ"
