"""Which group keys may appear in an answer? They come from public knowledge, never from protected rows.

In: the key expressions of a release and what the policy declares. Out: for each key a list of values, or for several
keys together a query over public tables. A key without either must be chosen privately, which costs delta.
A list need not be complete for privacy: rows with other keys are left out of the answer. NULL is a key like the others
wherever a key may be NULL: each row is in one group, also one whose key is missing.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from secant.numeric import interval as iv
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import EXACT, Failure, date_of
from secant.plan.facts.images import image_of
from secant.plan.facts.presence import Names, can_be_null, never_null
from secant.plan.facts.range_filters import present_after
from secant.plan.facts.ranges import Ranges, as_number
from secant.plan.facts.reads import scans
from secant.plan.facts.regions import projected
from secant.plan.facts.scopes import free_columns
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.show import same
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema.catalog import Catalog
from secant.schema.types import Type

MAX_LISTED = 10_000


@frozen
class Listed:
    """One key with the values that it may take."""

    key: str
    values: tuple[object, ...]
    source: str
    """Where the list comes from, in words."""


@frozen
class Looked:
    """Several keys whose value tuples are looked up in public tables."""

    keys: tuple[str, ...]
    relation: n.Relation
    source: str


@frozen
class Chosen:
    """Keys whose values are protected: they are chosen privately, with delta."""

    keys: tuple[str, ...]


@frozen
class Open:
    """Keys that only public columns decide: the answer's own groups are shown as they are found."""

    keys: tuple[str, ...]


@frozen
class Stepped:
    """A key whose values are the steps of a stream: which there are is declared, and no end need be known."""

    key: str


Domain = Listed | Looked | Chosen | Open | Stepped


@frozen
class Region:
    """The leaves and conditions of a tree of filters, projections and inner joins, in terms of leaf columns."""

    leaves: tuple[n.Relation, ...]
    conditions: tuple[n.Scalar, ...]
    definitions: dict[str, n.Scalar]

    def expand(self, scalar: n.Scalar) -> n.Scalar:
        """Write an expression over the leaves' columns."""
        for _ in range(100):
            if not columns_of(scalar) & self.definitions.keys():
                break
            definitions = {
                x.name: self.definitions[x.name]
                for x in n.walk(scalar)
                if isinstance(x, n.Column) and x.name in self.definitions
            }
            if not definitions:
                break
            scalar = substitute(scalar, definitions)
        return scalar


def key_descriptions(domains: tuple[Domain, ...]) -> list[str]:
    """Say where keys come from.

    Rows with other keys are left out of the answer, not of the statement: filtering them early costs more than grouping
    them.
    """
    return [f"keys {_keys_and_source(domain)}" for domain in domains]


def _keys_and_source(domain: Domain) -> str:
    if isinstance(domain, Listed):
        more = ", and NULL" if None in domain.values else ""
        listed = len(domain.values) - bool(more)
        return f"{short_name(domain.key)}: {listed} from {domain.source}{more}"
    if isinstance(domain, Stepped):
        return f"{short_name(domain.key)}: the steps of the stream"
    names = ", ".join(short_name(k) for k in domain.keys)
    if isinstance(domain, Chosen):
        return f"{names}: chosen privately with delta"
    if isinstance(domain, Open):
        return f"{names}: as found, public columns decide them"
    return f"{names}: from {domain.source}"


def short_name(name: str) -> str:
    """Give a column's name as the text has it, without the relation that it is from."""
    return name.rsplit(".", 1)[-1]


def region_of(relation: n.Relation) -> Region:
    """Look through everything that neither groups nor pads."""
    joined = projected(relation)
    # A key that enforcing made even keeps its name: written out, it would never end.
    definitions = {
        i.name: i.expression for i in joined.items if i.name not in columns_of(i.expression)
    }
    region = Region(tuple(joined.leaves), (), definitions)
    conditions = (c if n.has_subquery(c) else region.expand(c) for c in joined.conditions)
    return Region(region.leaves, tuple(conditions), definitions)


def _with_outer_rows(region: Region) -> Region:
    """Look into left joins: keys of rows that stay whatever they meet are those of their own side."""
    leaves: list[n.Relation] = []
    conditions, definitions = list(region.conditions), dict(region.definitions)
    for leaf in region.leaves:
        if isinstance(leaf, n.Join) and leaf.kind == "left":
            side = _with_outer_rows(region_of(leaf.left))
            leaves += side.leaves
            conditions += side.conditions
            definitions = {**side.definitions, **definitions}
        else:
            leaves.append(leaf)
    return Region(tuple(leaves), tuple(conditions), definitions)


def domains_of(
    keys: tuple[n.Named, ...],
    region: Region,
    ranges: Ranges,
    public: Callable[[n.Relation], bool],
    catalog: Catalog,
    stepped: str | None = None,
) -> tuple[Domain, ...]:
    """Give the domain of every key, lists first, then what public tables say, then what must be chosen.

    `stepped` names the key whose values are the steps of a stream.
    """
    public = _public_before(public)
    region = _with_outer_rows(region)
    present = never_null(region.leaves, ranges.policy, catalog) | present_after(region.conditions)
    domains: list[Domain] = []
    looked: list[n.Named] = []
    chosen: list[str] = []
    for key in keys:
        if key.name == stepped:
            domains.append(Stepped(key.name))
            continue
        expression = region.expand(key.expression)
        own = _own_list(expression, region, public)
        seen = own or _public_only(expression, region, public)
        listed = None if own else _listed(expression, region, ranges, present, seen=seen)
        if listed is not None:
            domains.append(Listed(key.name, listed[0], listed[1]))
        elif seen:
            looked.append(n.Named(key.name, expression))
        else:
            reference = _reference(expression, ranges, public, catalog, present)
            if reference is None:
                chosen.append(key.name)
            else:
                domains.append(Looked((key.name,), reference[0], reference[1]))
    if looked:
        domains.append(looked_up(looked, region, public))
    if chosen:
        domains.append(Chosen(tuple(chosen)))
    return tuple(domains)


# ── lists ────────────────────────────────────────────────────────────────────────────────────────


def _listed(
    key: n.Scalar, region: Region, ranges: Ranges, present: Names, *, seen: bool
) -> tuple[tuple[object, ...], str] | None:
    """Give a list of keys and where it comes from; keys that can be `seen` in public tables are not computed."""
    kind = type_of(key)
    for part in region.conditions:
        named = _named_values(part, key)
        if named is not None:
            fitting = [v for value in named if (v := _of_kind(value, kind)) is not None]
            return tuple(dict.fromkeys(fitting)), "the query's own condition"
    if not seen and not isinstance(key, n.Column):
        image = image_of(key, region.conditions, ranges, present)
        if image is not None:
            return image, "what declared facts make of the expression"
    candidates, source = _candidates(key, ranges, kind)
    if candidates is None:
        return None
    if None not in candidates and can_be_null(key, present):
        candidates = (*candidates, None)
    tests = [
        c
        for c in region.conditions
        if not n.has_subquery(c) and columns_of(c) and columns_of(c) <= columns_of(key)
    ]
    if not isinstance(key, n.Column) or not tests:
        return candidates, source
    return _passing(key, candidates, tests, kind), source


def _named_values(condition: n.Scalar, key: n.Scalar) -> tuple[object, ...] | None:
    """Read `key IN ('a', 'b')` and `key = 'a'` as lists."""
    if (
        isinstance(condition, n.InList)
        and same(condition.operand, key)
        and all(isinstance(i, n.Literal) and i.value is not None for i in condition.items)
    ):
        return tuple(dict.fromkeys(i.value for i in condition.items if isinstance(i, n.Literal)))
    if isinstance(condition, n.Compare) and condition.op == "=":
        for a, b in ((condition.left, condition.right), (condition.right, condition.left)):
            if same(a, key) and isinstance(b, n.Literal) and b.value is not None:
                return (b.value,)
    if isinstance(condition, n.Or):
        parts = [_named_values(o, key) for o in condition.operands]
        if all(p is not None for p in parts):
            return tuple(dict.fromkeys(v for p in parts if p is not None for v in p))
    return None


def _of_kind(value: object, kind: Type) -> object:
    """Give a written value as a key of a type; None where no key can be equal to it."""
    if isinstance(value, datetime.date):
        midnight = datetime.time()
        if kind.kind == "TIMESTAMP" and not isinstance(value, datetime.datetime):
            return datetime.datetime.combine(value, midnight)
        if kind.kind == "DATE" and isinstance(value, datetime.datetime):
            return value.date() if value.time() == midnight else None
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return value
    if kind.kind == "DOUBLE":
        return float(value)
    if not math.isfinite(value):
        return None
    steps = Fraction(value) * 10**kind.scale
    widest = 2**63 if kind.kind == "INTEGER" else 10**kind.precision
    if steps.denominator != 1 or abs(steps) >= widest:
        return None
    return int(steps) if kind.kind == "INTEGER" else Decimal(int(steps)).scaleb(-kind.scale, EXACT)


def _candidates(key: n.Scalar, ranges: Ranges, kind: Type) -> tuple[tuple[object, ...] | None, str]:
    if isinstance(key, n.Column) and key.name in ranges.origins:
        table, column = ranges.origins[key.name]
        facts = ranges.policy.column(table, column)
        if facts.values is not None:
            return facts.values, f"declared values of {table}.{column}"
        if facts.range is not None and (_is_whole(kind) or facts.step is not None):
            return _steps(ranges.of(key), kind, facts.step), f"declared range of {table}.{column}"
        if kind.kind != "BOOLEAN":
            return None, ""
    if kind.kind == "BOOLEAN":
        return (False, True), "truth values"
    if isinstance(key, n.Case):
        values = [b.value for b in key.branches] + [key.default]
        if all(isinstance(v, n.Literal) for v in values):
            listed = dict.fromkeys(v.value for v in values if isinstance(v, n.Literal))
            return tuple(listed), "the branches of CASE"
    if kind.kind == "INTEGER" and not isinstance(key, n.Literal):
        return _steps(ranges.of(key), kind, 1), "the range that follows from declared facts"
    if isinstance(key, n.Literal):
        return (key.value,), "a constant"
    return None, ""


def _is_whole(kind: Type) -> bool:
    """Whether neighboring values are one apart, also where nobody declared a step."""
    return kind.kind in ("DATE", "INTEGER")


def _steps(range_: iv.Interval, kind: Type, step: object) -> tuple[object, ...] | None:
    if not range_.bounded:
        return None
    low, high = range_.ends()
    width = as_number(step) or Fraction(1)
    if width != 1 or (high - low) > MAX_LISTED or not _is_whole(kind):
        return None
    first, last = -((-low) // 1), high // 1
    if kind.kind == "INTEGER":
        return tuple(range(int(first), int(last) + 1))
    dates = map(date_of, range(int(first), int(last) + 1))
    return tuple(when for when in dates if when is not None)


def _passing(
    key: n.Column, candidates: tuple[object, ...], tests: list[n.Scalar], kind: Type
) -> tuple[object, ...]:
    """Keep the candidates that pass the conditions on the key alone; where one cannot be computed, all."""
    values = n.Values((n.Field(key.name, kind),), tuple((c,) for c in candidates))
    predicate = n.conjunction(tuple(tests))
    assert predicate is not None
    try:
        rows = evaluate(n.Filter(values, predicate), {})
    except Failure:
        return candidates
    return tuple(row[0] for row in rows)


# ── public tables ────────────────────────────────────────────────────────────────────────────────


def _public_only(key: n.Scalar, region: Region, public: Callable[[n.Relation], bool]) -> bool:
    names = columns_of(key)
    visible = {f.name for leaf in region.leaves if public(leaf) for f in fields_of(leaf)}
    return bool(names) and names <= visible and not n.has_subquery(key)


def _public_before(public: Callable[[n.Relation], bool]) -> Callable[[n.Relation], bool]:
    """Leave out what is public only once an earlier release is drawn: keys are looked up before all of them."""

    def known(relation: n.Relation) -> bool:
        return public(relation) and not n.holds(relation, n.Released)

    return known


def _own_list(key: n.Scalar, region: Region, public: Callable[[n.Relation], bool]) -> bool:
    """Whether a key is a column of a public DISTINCT, which lists exactly the values that are asked for."""
    return isinstance(key, n.Column) and any(
        isinstance(leaf, n.Distinct) and any(f.name == key.name for f in fields_of(leaf))
        for leaf in region.leaves
        if public(leaf)
    )


def _is_public_test(condition: n.Scalar, public: Callable[[n.Relation], bool]) -> bool:
    """Whether a condition looks at public rows only."""
    return not n.has_subquery(condition) or all(
        public(part) for part in n.walk(condition) if isinstance(part, n.Relation)
    )


def looked_up(keys: list[n.Named], region: Region, public: Callable[[n.Relation], bool]) -> Looked:
    """Build the query that lists the keys: the public leaves that hold them and what is tied to those."""
    leaves = [leaf for leaf in region.leaves if public(leaf)]
    fields = {leaf: frozenset(f.name for f in fields_of(leaf)) for leaf in leaves}
    visible = frozenset().union(*fields.values())
    read = {c: free_columns(c) for c in region.conditions}
    conditions = [
        c for c, names in read.items() if names and names <= visible and _is_public_test(c, public)
    ]
    columns = frozenset().union(*(columns_of(k.expression) for k in keys))
    picked = [leaf for leaf in leaves if fields[leaf] & columns]
    grown = True
    while grown:
        grown = False
        seen = frozenset().union(*(fields[leaf] for leaf in picked))
        for leaf in leaves:
            tied = any(read[c] & seen and read[c] & fields[leaf] for c in conditions)
            if leaf not in picked and tied:
                picked.append(leaf)
                grown = True
    seen = frozenset().union(*(fields[leaf] for leaf in picked))
    joined = picked[0]
    for leaf in picked[1:]:
        joined = n.Join("cross", joined, leaf, None)
    predicate = n.conjunction(tuple(c for c in conditions if read[c] <= seen))
    rows = joined if predicate is None else n.Filter(joined, predicate)
    relation = n.Distinct(n.Project(rows, tuple(keys)))
    tables = sorted({s.table for s in scans(*picked)})
    return Looked(tuple(k.name for k in keys), relation, "public table " + ", ".join(tables))


def _reference(
    key: n.Scalar,
    ranges: Ranges,
    public: Callable[[n.Relation], bool],
    catalog: Catalog,
    present: Names,
) -> tuple[n.Relation, str] | None:
    """Use the referenced key of a public table for a foreign key of a protected one."""
    if not isinstance(key, n.Column) or key.name not in ranges.origins:
        return None
    table, column = ranges.origins[key.name]
    target = ranges.policy.facts(table).references.get(column)
    if target is None:
        return None
    # A policy knows names in lower case; a statement must spell them as the engine has them.
    name, (column_name,) = catalog.spelled(target[0], (target[1],))
    alias = f"keys of {key.name}"
    field = n.Field(f"{alias}.{column_name}", type_of(key))
    scan = n.Scan(name, alias, (field,))
    if not public(scan):
        return None
    item = n.Named(key.name, n.Column(field.name, field.type))
    relation: n.Relation = n.Distinct(n.Project(scan, (item,)))
    if can_be_null(key, present):  # a row without a reference has a key, too
        own = n.Field(key.name, type_of(key))
        relation = n.Union(relation, n.Values((own,), ((None,),)), False, (own,))
    return relation, f"public table {target[0]}, by reference"
