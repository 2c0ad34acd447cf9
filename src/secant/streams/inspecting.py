"""OWNER ONLY: how far single units, or rows, move a stream in the data at hand: most of them, and the largest.

In: an opened stream. Out: exact figures of protected rows. They are what the literature calls a "(1 - delta)-global
sensitivity": a quantile of the data, and no differential privacy, so no noise is ever scaled by them. Nothing is
charged, nothing is released, and no connection leads here; `secant inspect --stream` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from secant.engines.print.print_sql import lower
from secant.errors import UsageError
from secant.plan import nodes as n
from secant.plan.typing import fields_of
from secant.records import frozen
from secant.release.measured import in_steps
from secant.schema.types import INTEGER
from secant.streams.compiling import Compiled
from secant.streams.reading import enforced_rows, owner_of
from secant.streams.releasing import Opened


@frozen
class Spread:
    """What single units, or rows, add to a measure over all steps, before limits cut them. Exact: not private."""

    measure: str
    of: str
    """units or rows."""
    share: Fraction
    quantile: float
    """So much is added at most by this share of them."""
    largest: float
    bound: float
    """What the noise of the stream is for: this holds for everybody."""


def spread_of(opened: Opened, share: Fraction) -> list[Spread]:
    """Give for each measure what a share of the units, or of the rows, add at most over the whole stream."""
    compiled = opened.compiled
    kinds = {p.kind for p in compiled.protections}
    if not kinds <= {"rows", "unit"}:
        raise UsageError(
            "USE-010",
            "only streams under `rows` and `unit` have such a spread",
            hint="where values move noise is for a unit of distance, and under `window` limits hold in each step",
        )
    if not 0 < share < 1:
        raise UsageError("USE-001", "a share lies between 0 and 1", hint="write --share 0.999")
    each, of = _each(compiled)
    measures = compiled.bounded.release.measures
    with opened.session() as session:
        inner = lower(each, session.dialect)
        (row,) = session.rows(_quantiles(inner, len(measures), share))
        session.confirm()
    spreads = []
    for index, (measure, facts) in enumerate(zip(measures, compiled.facts, strict=True)):
        quantile, largest = (
            float(in_steps(value, measure) * measure.step)
            for value in row[2 * index : 2 * index + 2]
        )
        bound = float(facts.bound * measure.step)
        spreads.append(Spread(measure.words, of, share, quantile, largest, bound))
    return spreads


def _quantiles(inner: str, measures: int, share: Fraction) -> str:
    parts = [
        f"percentile_disc({float(share)}) WITHIN GROUP (ORDER BY moved{i}), max(moved{i})"
        for i in range(measures)
    ]
    names = ", ".join(f"moved{i}" for i in range(measures))
    return f"SELECT {', '.join(parts)} FROM ({inner}) AS each_one({names})"


def _each(compiled: Compiled) -> tuple[n.Relation, str]:
    """Give what each unit adds to each measure, or each row where rows are protected by themselves."""
    exact = compiled.bounded.release.exact
    rows, owner = enforced_rows(exact.input), owner_of(exact.input)
    if owner is None:
        items = [
            n.Named(f"moved{i}", _of_one_row(call)) for i, call in enumerate(exact.aggregations)
        ]
        return n.Project(rows, tuple(items)), "rows"
    kind = next(f.type for f in fields_of(rows) if f.name == owner)
    key = n.Column(owner, kind)
    calls = [_sized(f"moved{i}", call) for i, call in enumerate(exact.aggregations)]
    owned = n.Filter(rows, n.Not(n.IsNull(key)))
    added = n.Aggregate(owned, (n.Named("whose", key),), tuple(calls))
    return _only(added, [call.name for call in calls]), "units"


def _only(rows: n.Relation, names: Sequence[str]) -> n.Relation:
    types = {f.name: f.type for f in fields_of(rows)}
    return n.Project(rows, tuple(n.Named(name, n.Column(name, types[name])) for name in names))


def _sized(name: str, call: n.Aggregation) -> n.Aggregation:
    if call.function == "count" or call.argument is None:
        return replace(call, name=name)
    return replace(call, name=name, argument=_size(call.argument))


def _of_one_row(call: n.Aggregation) -> n.Scalar:
    if call.function == "sum" and call.argument is not None:
        return _size(call.argument)
    return n.Literal(1, INTEGER)


def _size(value: n.Scalar) -> n.Scalar:
    return n.Call("abs", (value,))
