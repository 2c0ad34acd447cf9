"""Arbitrary numbers in the place of earlier releases: a later bound must hold whatever was released (workflow.staged).

In: a bounded query with stages. Out: the same query with constants for the tables that later stages read.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from secant.plan import nodes as n
from secant.plan.facts.domains import Listed
from secant.plan.rewrites.rewrite import transform
from secant.schema import types as t
from secant.sensitivity.certificate import (
    Certificate,
    ClippedContribution,
    Contributions,
    Survey,
    Surveyed,
    Tallies,
)
from secant.sensitivity.portfolio import CertifiedRelease, Decomposition

NUMBERS: Mapping[str, tuple[Any, ...]] = {
    "INTEGER": (0, 1, 1, 2, 3, 4, 7, -2, 10**6),
    "DOUBLE": (0.0, 0.5, 1.0, 1.25, 2.0, 3.5, -1.0, 1e6),
    "DECIMAL": tuple(Decimal(x) for x in ("0", "0.5", "1", "1.25", "2", "3.99", "-4", "1000")),
    "TEXT": ("a", "b", "ab"),
    "BOOLEAN": (False, True),
}
MOST_ROWS = 12


def has_stages(prepared: Decomposition) -> bool:
    """Whether a release reads an earlier one."""
    releases = [b.release for b in prepared.bounded]
    return any(_reads(a) for r in releases for a in (r.exact, *(x.cells for x in r.ranked)))


def _reads(relation: n.Relation) -> bool:
    return any(isinstance(node, n.Released) for node in n.walk(relation))


def with_constants(prepared: Decomposition, draw: random.Random) -> Decomposition:
    """Give a query whose later stages read drawn constants."""
    if not has_stages(prepared):
        return prepared
    tables: dict[str, n.Values] = {}

    def put(node: n.Node) -> n.Node:
        return tables[node.name] if isinstance(node, n.Released) else node

    found = []
    for bounded in prepared.bounded:
        release = bounded.release
        ranked = tuple(replace(r, cells=_changed(r.cells, put)) for r in release.ranked)
        fixed = replace(
            release,
            exact=_changed(release.exact, put),
            original=_changed(release.original, put),
            ranked=ranked,
        )
        certificates = tuple(certified(c, put) for c in bounded.certificates)
        found.append(replace(bounded, release=fixed, certificates=certificates))
        tables[release.name] = table_of(bounded, draw)
    return replace(prepared, bounded=tuple(found))


def certified(certificate: Certificate, put: Any) -> Certificate:
    """Put the constants also into what limits are chosen by."""
    made: dict[int, Contributions] = {}
    for bound in certificate.bounds.values():
        if isinstance(bound, ClippedContribution) and id(bound.contributions) not in made:
            made[id(bound.contributions)] = _contributions(bound.contributions, put)
    bounds = {
        column: replace(bound, contributions=made[id(bound.contributions)])
        if isinstance(bound, ClippedContribution)
        else replace(bound, surveys=tuple(_surveyed(x, put) for x in bound.surveys))
        if isinstance(bound, Surveyed)
        else bound
        for column, bound in certificate.bounds.items()
    }
    return replace(certificate, bounds=bounds)


def _surveyed(survey: Survey, put: Any) -> Survey:
    changed = tuple(transform(x, put) for x in survey.statements)
    return replace(survey, statements=changed)


def _contributions(made: Contributions, put: Any) -> Contributions:
    raced = made.raced
    return Contributions(
        _tallied(made.above, put),
        lambda limits: _changed(made.clipped(limits), put),
        None if raced is None else lambda limits: _changed(raced(limits), put),
        _tallied(made.at_once, put),
    )


def _tallied(tallies: Tallies | None, put: Any) -> Tallies | None:
    return None if tallies is None else replace(tallies, plan=_changed(tallies.plan, put))


def _changed(aggregate: n.Aggregate, put: Any) -> n.Aggregate:
    changed = transform(aggregate, put)
    assert isinstance(changed, n.Aggregate)
    return changed


def table_of(bounded: CertifiedRelease, draw: random.Random) -> n.Values:
    """Draw what a release might have given: a row for each of some keys, any numbers beside them."""
    released = bounded.release.finish.input
    assert isinstance(released, n.Released)
    width = len(bounded.release.exact.keys)
    lists = {d.key: d.values for d in bounded.release.domains if isinstance(d, Listed)}
    pools = [lists.get(f.name) or _pool(f.type) for f in released.columns[:width]]
    keys = list(itertools.product(*(dict.fromkeys(p) for p in pools)))
    draw.shuffle(keys)
    rows = tuple(
        (*key, *(draw.choice(_pool(f.type)) for f in released.columns[width:]))
        for key in keys[: MOST_ROWS if width else 1]
    )
    return n.Values(released.columns, rows)


def _pool(kind: t.Type) -> tuple[Any, ...]:
    if kind.kind == "DECIMAL":
        step = Decimal(1).scaleb(-kind.scale)
        most = Decimal(10) ** (kind.precision - kind.scale)
        return tuple(x.quantize(step) for x in NUMBERS["DECIMAL"] if abs(x) < most)
    return NUMBERS.get(kind.kind, (None,))
