"""Which groups one row moves, and which atoms tell the group: residual.keys.

In: a release and the shape of its rows. Out: for each atom that determines the keys by itself an expression for each
key, and how many groups one row can move. Never here: values of keys.
"""

from __future__ import annotations

from secant.plan import nodes as n
from secant.plan.facts.domains import Listed, Looked
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.plan.rewrites.rewrite import columns_of, substitute
from secant.plan.show import same
from secant.plan.typing import fields_of, type_of
from secant.records import frozen
from secant.schema.types import Type
from secant.sensitivity.certificate import CannotBound
from secant.sensitivity.residual.shape import Shape


@frozen
class Grouping:
    """Where keys can be read, and how many groups move."""

    keys: dict[int, tuple[n.Scalar, ...]]
    """Atom -> the release's keys over its own columns."""
    types: tuple[Type, ...]
    groups: int
    words: str


def grouping_of(release: MeasuredAggregate, shape: Shape) -> Grouping:
    """Find the atoms that determine the keys, and bound the groups that one row moves (residual.keys)."""
    if not release.exact.keys:
        return Grouping({}, (), 1, "no groups")
    if not all(isinstance(d, (Listed, Looked)) for d in release.domains):
        raise CannotBound(
            "residual.keys",
            release.exact,
            "keys that are chosen privately have no smooth bound",
            "declare the values of the grouped columns",
        )
    expressions = [_over_atoms(k.expression, shape) for k in release.exact.keys]
    types = tuple(type_of(k.expression) for k in release.exact.keys)
    keys: dict[int, tuple[n.Scalar, ...]] = {}
    for index in sorted(shape.everything):
        at_atom = [_at(scalar, index, shape) for scalar in expressions]
        if all(x is not None for x in at_atom):
            keys[index] = tuple(x for x in at_atom if x is not None)
    if shape.varying <= keys.keys():
        groups = max(_ways(shape, table, keys) for table in shape.tables)
        return Grouping(keys, types, groups, "each row tells its group")
    if release.listed_groups is None:
        raise CannotBound(
            "residual.keys",
            release.exact,
            "one row can move every group, and their number is not known before",
            "group by a column of each protected table, or declare the values of the grouped columns",
        )
    changed = max(1, release.listed_groups)
    return Grouping(keys, types, changed, "one row can move every listed group")


def _over_atoms(key: n.Scalar, shape: Shape) -> n.Scalar:
    return substitute(key, dict(shape.form.outputs))


def _at(scalar: n.Scalar, index: int, shape: Shape) -> n.Scalar | None:
    """Write a key over the columns of one atom, by equalities that make values identical; None if it is not."""
    if n.has_subquery(scalar):
        return None
    form = shape.form
    kinds = {f.name: f.type for f in fields_of(form.atoms[index].relation)}
    names: dict[str, n.Scalar] = {}
    for column in columns_of(scalar):
        if form.home[column] == index:
            continue
        group = next((g for g in form.classes if column in g), frozenset())
        own = sorted(c for c in group if form.home[c] == index)
        # Two reals can be equal and still differ, as zeros with a sign do.
        if not own or kinds[own[0]].kind == "DOUBLE":
            return None
        names[column] = n.Column(own[0], kinds[own[0]])
    if not columns_of(scalar):
        return None
    return substitute(scalar, names)


def _ways(shape: Shape, table: str, keys: dict[int, tuple[n.Scalar, ...]]) -> int:
    """Count the different ways in which copies of a table read the keys off one row."""
    ways: list[tuple[n.Scalar, ...]] = []
    for index in shape.copies(table):
        atom = shape.form.atoms[index]
        mapped = {
            c: n.Column(atom.origin.get(c, f"{index}.{c}"), f.type)
            for f in fields_of(atom.relation)
            if (c := f.name)
        }
        own = tuple(substitute(key, dict(mapped)) for key in keys[index])
        if not any(all(map(same, own, way)) for way in ways):
            ways.append(own)
    return len(ways)
