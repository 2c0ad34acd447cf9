"""When one norm lies under another, and by how much a query's norm must be scaled to do so.

In: two norms; the query's may repeat a column, and so may the other one. Out: a proved bound of
their ratio, and scalings that fit. A bound is rounded up; True is only said if it is proved (norm.ratio).
Where a gradient is at hand, `norms.dual_of` is exact and none of this is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from secant.numeric.powers import power as power_of
from secant.policy.norms import ColumnNorm, CombinedNorm, Leaf, Norm, ScaledNorm, combined
from secant.records import frozen

Power = Fraction | None
Atom = Leaf
_REMEMBERED = 1 << 14


@frozen
class Fitting:
    """`factor`·N(scalings∘x) lies under the owner's norm; the largest of the scalings is 1."""

    scalings: Mapping[str, Fraction]
    factor: Fraction

    def total(self, column: str) -> Fraction:
        """Give what a column is multiplied with in all."""
        return self.factor * self.scalings[column]


@frozen
class _Split:
    """One way to bound: if Qᵢ ≤ rᵢ·Oᵢ for all pairs, then Q ≤ ‖r‖·O, 1/s = 1/upper − 1/lower."""

    pairs: tuple[tuple[Norm, Norm], ...]
    upper: Power
    lower: Power


def ratio(smaller: Norm, larger: Norm) -> Fraction | None:
    """Give a proved r with smaller ≤ r·larger, or None if a column of `smaller` is not bounded.

    A column, its logarithm and its square root do not bound each other.
    """
    query, owner = _tidy(smaller, up=True), _tidy(larger, up=False)
    return _ratio(query, owner) if _atoms(query) <= _atoms(owner) else None


def below(smaller: Norm, larger: Norm) -> bool:
    """Whether it is proved that `smaller` never exceeds `larger`.

    >>> from secant.policy.norms import parse_norm
    >>> below(parse_norm("l1(l2(a, b), c)"), parse_norm("l1(a, b, c)"))
    True
    """
    quotient = ratio(smaller, larger)
    return quotient is not None and quotient <= 1


def block_factor(power: Power, columns: Sequence[str], norm: Norm) -> Fraction | None:
    """Give a proved g with ‖(x_c)_c‖_power ≤ g·norm, as small as is found.

    None if a column is not measured by the norm, or not as it is.
    """
    leaves = tuple(ColumnNorm(column) for column in dict.fromkeys(columns))
    return ratio(CombinedNorm(power, leaves), norm) if leaves else Fraction(0)


def fit(query_norm: Norm, owner_norm: Norm) -> Fitting | None:
    """Find large scalings that put the query's norm under the owner's (norm.fit).

    None if the query's norm names a column that the owner's does not: such a column is public, and
    is to be left out before.

    >>> from secant.policy.norms import parse_norm
    >>> fit(parse_norm("l1(a, b)"), parse_norm("linf(a, b)")).factor
    Fraction(1, 2)
    """
    query, owner = _tidy(query_norm, up=True), _tidy(owner_norm, up=False)
    if not _atoms(query) <= _atoms(owner):
        return None
    proposals = ({atom: Fraction(1) for atom in _atoms(query)}, _scalings(query, owner))
    fittings = [_proved(query, owner, proposal) for proposal in proposals]
    return max(fittings, key=lambda fitting: _goodness(fitting.scalings, fitting.factor))


def _proved(query: Norm, owner: Norm, scalings: Mapping[Atom, Fraction]) -> Fitting:
    """Turn proposed scalings into a fitting. Only `_ratio` is trusted, whoever proposed them."""
    largest = max(scalings.values())
    shares: dict[str, Fraction] = {}
    for atom, scaling in scalings.items():
        shares[atom.column] = min(scaling / largest, shares.get(atom.column, Fraction(1)))
    return Fitting(shares, 1 / _ratio(_scaled(query, shares), owner))


def _goodness(scalings: Mapping[str, Fraction], factor: Fraction) -> float:
    """The product of all that columns are multiplied with, as a logarithm."""
    return sum(_log(factor * scaling) for scaling in scalings.values())


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


# Tidy trees: every leaf is a `ScaledNorm` of an atom, every group has two parts or more, no part of a
# group has the power of the group, and no atom is twice a leaf of the same group.


def _tidy(norm: Norm, factor: Fraction = Fraction(1), *, up: bool) -> Norm:
    """Push factors to the leaves; what has to be rounded makes the norm larger if `up`."""
    if isinstance(norm, ScaledNorm):
        return _tidy(norm.inner, factor * norm.factor, up=up)
    if isinstance(norm, CombinedNorm):
        return _group(norm.power, [_tidy(part, factor, up=up) for part in norm.parts], up=up)
    return ScaledNorm(factor, norm)


def _group(power: Power, parts: Sequence[Norm], *, up: bool) -> Norm:
    flat: list[Norm] = []
    weights: dict[Atom, list[Fraction]] = {}
    for part in parts:
        same = isinstance(part, CombinedNorm) and part.power == power
        for one in part.parts if same and isinstance(part, CombinedNorm) else (part,):
            leaf = _leaf(one)
            if leaf is None:
                flat.append(one)
            else:
                weights.setdefault(leaf[0], []).append(leaf[1])
    leaves: list[Norm] = [ScaledNorm(combined(power, w, up=up), a) for a, w in weights.items()]
    flat = leaves + flat
    return flat[0] if len(flat) == 1 else CombinedNorm(power, tuple(flat))


def _leaf(norm: Norm) -> tuple[Atom, Fraction] | None:
    if isinstance(norm, ScaledNorm) and isinstance(norm.inner, Leaf):
        return norm.inner, norm.factor
    return None


def _leaves(norm: Norm) -> Iterator[tuple[Atom, Fraction]]:
    leaf = _leaf(norm)
    if leaf is not None:
        yield leaf
    elif isinstance(norm, CombinedNorm):
        for part in norm.parts:
            yield from _leaves(part)


@lru_cache(maxsize=_REMEMBERED)
def _atoms(norm: Norm) -> frozenset[Atom]:
    return frozenset(atom for atom, _ in _leaves(norm))


def _powers(norm: Norm) -> Iterator[Power]:
    if isinstance(norm, CombinedNorm):
        yield norm.power
        for part in norm.parts:
            yield from _powers(part)


def _restricted(norm: Norm, atoms: frozenset[Atom], *, up: bool) -> Norm:
    """Give the norm where all other atoms are 0; at least one atom is left."""
    if _atoms(norm) <= atoms or not isinstance(norm, CombinedNorm):
        return norm
    parts = [_restricted(p, atoms, up=up) for p in norm.parts if _atoms(p) & atoms]
    return _group(norm.power, parts, up=up)


def _scaled(norm: Norm, scalings: Mapping[str, Fraction]) -> Norm:
    leaf = _leaf(norm)
    if leaf is not None:
        return ScaledNorm(leaf[1] * scalings[leaf[0].column], leaf[0])
    assert isinstance(norm, CombinedNorm)
    return CombinedNorm(norm.power, tuple(_scaled(part, scalings) for part in norm.parts))


@lru_cache(maxsize=_REMEMBERED)
def _ratio(query: Norm, owner: Norm) -> Fraction:
    """Bound the ratio of two tidy norms, all of whose atoms the second one has (norm.ratio)."""
    owner = _restricted(owner, _atoms(query), up=False)
    single_query, single_owner = _leaf(query), _leaf(owner)
    if single_query is not None and single_owner is not None:
        return single_query[1] / single_owner[1]
    bounds = []
    for split in _splits(query, owner):
        ratios = [_ratio(*pair) for pair in split.pairs]
        bounds.append(combined(_loss(split.upper, split.lower), ratios))
    return min(bounds)


@lru_cache(maxsize=_REMEMBERED)
def _scalings(query: Norm, owner: Norm) -> Mapping[Atom, Fraction]:
    """Propose scalings (norm.fit), column by column, along the same splits: what each pair of parts allows."""
    owner = _restricted(owner, _atoms(query), up=False)
    single_query, single_owner = _leaf(query), _leaf(owner)
    if single_query is not None and single_owner is not None:
        return {single_query[0]: single_owner[1] / single_query[1]}
    proposals = []
    for split in _splits(query, owner):
        exponent = _loss(split.upper, split.lower)
        count = Fraction(len(split.pairs))
        share = Fraction(1) if exponent is None else power_of(count, -1 / exponent).ends()[0]
        proposal: dict[Atom, Fraction] = {}
        for pair in split.pairs:
            for atom, scaling in _scalings(*pair).items():
                proposal[atom] = min(proposal.get(atom, share * scaling), share * scaling)
        proposals.append(proposal)
    return max(proposals, key=lambda fitting: sum(_log(scaling) for scaling in fitting.values()))


def _loss(upper: Power, lower: Power) -> Power:
    """Give s such that sup ‖r∘y‖_upper / ‖y‖_lower = ‖r‖_s (Hölder); None is the largest entry."""
    inverse = _inverse(upper) - _inverse(lower)
    return 1 / inverse if inverse > 0 else None


def _inverse(power: Power) -> Fraction:
    return Fraction(0) if power is None else 1 / power


def _splits(query: Norm, owner: Norm) -> Iterator[_Split]:
    """Give the ways to bound a pair; the first of those that lose nothing is given alone."""
    if isinstance(query, CombinedNorm) and query.power is None:
        yield _Split(tuple((part, owner) for part in query.parts), None, None)
        return
    smallest = max(_powers(query), key=_inverse, default=None)
    largest = min(_powers(owner), key=_inverse, default=None)
    if isinstance(owner, CombinedNorm):
        yield _by_parts_of_owner(query, owner, smallest)
        if owner.power == 1 and not _repeats(owner):
            return
    if isinstance(query, CombinedNorm):
        yield _by_parts_of_query(query, owner, largest)
    if isinstance(query, CombinedNorm) and isinstance(owner, CombinedNorm):
        yield from _by_matching(query, owner)
        yield _straightforward(query, owner, smallest, largest)


def _by_parts_of_owner(query: Norm, owner: CombinedNorm, smallest: Power) -> _Split:
    pairs: list[tuple[Norm, Norm]] = []
    left = _atoms(query)
    for part in owner.parts:
        atoms = left & _atoms(part)
        left -= atoms
        if atoms:
            pair = _restricted(query, atoms, up=True), _restricted(part, atoms, up=False)
            pairs.append(pair)
    return _Split(tuple(pairs), smallest, owner.power)


def _by_parts_of_query(query: CombinedNorm, owner: Norm, largest: Power) -> _Split:
    groups = [queries for queries, _ in _components(query.parts, ())]
    if len(groups) == 1:  # every part against the whole
        return _Split(tuple((part, owner) for part in query.parts), query.power, None)
    pairs = tuple((_group(query.power, group, up=True), owner) for group in groups)
    return _Split(pairs, query.power, largest)


def _by_matching(query: CombinedNorm, owner: CombinedNorm) -> Iterator[_Split]:
    """Regroup what belongs together; where the owner repeats columns, assign part to part."""
    groups = _components(query.parts, owner.parts)
    if len(groups) > 1:
        pairs = tuple(
            (_group(query.power, queries, up=True), _group(owner.power, owners, up=False))
            for queries, owners in groups
        )
        yield _Split(pairs, query.power, owner.power)
    if _repeats(owner) and len(query.parts) <= len(owner.parts):
        assigned = _assignment(query.parts, owner.parts)
        if assigned is not None:
            yield _Split(assigned, query.power, owner.power)


def _repeats(norm: CombinedNorm) -> bool:
    return len(_atoms(norm)) < sum(len(_atoms(part)) for part in norm.parts)


def _assignment(
    queries: tuple[Norm, ...], owners: tuple[Norm, ...]
) -> tuple[tuple[Norm, Norm], ...] | None:
    """Give each part of the query its own part of the owner, at the least sum of log ratios."""

    def cost(query: Norm, owner: Norm) -> float:
        return _log(_ratio(query, owner)) if _atoms(query) <= _atoms(owner) else 1e9

    costs = [[cost(query, owner) for owner in owners] for query in queries]
    chosen = list(enumerate(cheapest_assignment(costs)))
    if any(costs[row][column] == 1e9 for row, column in chosen):
        return None
    return tuple((queries[row], owners[column]) for row, column in chosen)


def cheapest_assignment(costs: Sequence[Sequence[float]]) -> list[int]:
    """Give each row a column of its own, at the least sum of costs; there are at least as many columns as rows.

    One row after the other, along the cheapest path of changes to what has been assigned. Prices keep what an
    assigned row pays no higher than what it could pay elsewhere, so that no cheaper path is overlooked.
    """
    size = len(costs[0])
    holder: list[int | None] = [None] * size
    row_price, column_price = [0.0] * len(costs), [0.0] * size
    for row in range(len(costs)):
        gap, came_from = [math.inf] * size, [-1] * size
        done: list[int] = []
        at, column = row, -1
        while True:
            for other in set(range(size)) - {*done}:
                reduced = costs[at][other] - row_price[at] - column_price[other]
                if reduced < gap[other]:
                    gap[other], came_from[other] = reduced, column
            nearest = min(set(range(size)) - {*done}, key=lambda c: (gap[c], c))
            paid = gap[nearest]
            row_price[row] += paid
            for other in range(size):
                if other in done:
                    assigned = holder[other]
                    assert assigned is not None
                    row_price[assigned] += paid
                    column_price[other] -= paid
                else:
                    gap[other] -= paid
            column = nearest
            done.append(column)
            follower = holder[column]
            if follower is None:
                break
            at = follower
        while came_from[column] >= 0:
            before = came_from[column]
            holder[column] = holder[before]
            column = before
        holder[column] = row
    columns = [0] * len(costs)
    for column, owner in enumerate(holder):
        if owner is not None:
            columns[owner] = column
    return columns


def _straightforward(
    query: CombinedNorm, owner: CombinedNorm, smallest: Power, largest: Power
) -> _Split:
    """Compare column by column, after putting both norms flat under one power each."""
    above = _group(smallest, [ScaledNorm(w, a) for a, w in _leaves(query)], up=True)
    under = _group(largest, [ScaledNorm(w, a) for a, w in _leaves(owner)], up=False)
    bounds = dict(_leaves(under))
    pairs = tuple(
        (ScaledNorm(weight, atom), ScaledNorm(bounds[atom], atom))
        for atom, weight in _leaves(above)
    )
    return _Split(pairs, smallest, largest)


def _components(
    queries: Sequence[Norm], owners: Sequence[Norm]
) -> list[tuple[list[Norm], list[Norm]]]:
    """Give the finest grouping in which parts that share an atom are together."""
    groups: list[tuple[frozenset[Atom], list[Norm], list[Norm]]] = []
    sided = [(part, True) for part in queries] + [(part, False) for part in owners]
    for part, mine in sided:
        atoms, first, second = _atoms(part), [part] if mine else [], [] if mine else [part]
        apart = []
        for group in groups:
            if group[0] & atoms:
                atoms, first, second = group[0] | atoms, group[1] + first, group[2] + second
            else:
                apart.append(group)
        groups = [*apart, (atoms, first, second)]
    return [(first, second) for _, first, second in groups]
