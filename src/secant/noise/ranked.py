"""Draw order statistics from counted cells: a public point, the likelier the fewer rows lie between.

Rests on stability.rank, stability.mode.

In: rows of each cell of one group, as the engine counted them, and a calibrated choice. Out: one point of the
public grid. Cells are private: they are read here, weighed by exact arithmetic, and never returned; only
`exact_index` and `stray`, which are for the data owner, look at them without noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from secant.noise.intervals import Span
from secant.noise.mechanisms.ranks import by_rank
from secant.noise.mechanisms.selection import Choice, ExponentialNoise, PermuteAndFlip, Stretch
from secant.noise.rank_ends import drawn_ends
from secant.noise.rank_weights import limit_of_weights
from secant.noise.secrecy import Private, unseal
from secant.noise.tail import OctaveTally
from secant.plan import nodes as n
from secant.plan.facts.ranges import as_number
from secant.plan.rewrites.order_statistics import Candidates, Grid, Points, Ranked
from secant.records import frozen
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.certificate import ClippedContribution

FEW = 1024
"""Permute-and-flip up to here: never worse, and one draw for each rank distance. Public."""
TAIL = 40  # all points beyond the farthest distance that is told apart weigh exp(-40) together
NODES = 600
LED = 6.0
"""How many steps of its sharpness a choice usually lies away, at most."""

Cells = tuple[tuple[int, int], ...]
"""(index of a point, rows nearest to it), from left to right, of one group."""
Key = tuple[object, ...]


ENDS = Fraction(1, 10)
"""What an order statistic gives for its ends where each row counts."""
ENDS_OF_EXTREMES = Fraction(1, 4)
"""The same of the least and the greatest: values lie far apart there."""
ENDS_OF_WEIGHED = Fraction(2, 5)
"""The same where rows weigh less than that: noise is wider there, and ends far wider than the point is off."""
TALLYING = Fraction(3, 10)
"""What it gives to find what the rows of one unit may weigh."""


@frozen
class RankNoise:
    """The calibrated choice of a point; holds nothing private. No choice where nothing protected is seen."""

    epsilon: Fraction
    choice: Choice | None
    farthest: int
    """Rank distances count up to here, in parts of a row; what lies farther counts as lying here."""
    ends: Choice | None = None
    """The choice of how far from the point its ends lie; None where no ends in values are drawn."""
    limit: int | None = None
    """What the rows of one unit weigh at most, in rows; None where they are counted (truncation.weights)."""
    bound: ClippedContribution | None = None
    """The limits that this is one of."""
    choosing: Fraction = Fraction(0)
    """What of epsilon the choice of the limit takes."""
    chosen: bool = False
    """Whether the limit was chosen."""
    unseen: Fraction = Fraction(0)
    """By how many parts of a row the rank of the weighted quantile is usually off."""

    @property
    def open(self) -> bool:
        """Whether the limit is yet to be chosen, and no declared one ends the list."""
        if self.bound is None or self.chosen or not self.choosing:
            return False
        return self.bound.cap is None

    @property
    def fine(self) -> int:
        """Give the parts of a row that cells are counted in."""
        return 1 if self.bound is None else self.bound.fine


@frozen
class Piece:
    """Neighboring points with the same rows below and above them."""

    first: int
    count: int
    distance: Fraction
    """Rows between the points and the statistic."""


def rank_noise(
    ranked: Ranked, bound: Fraction, epsilon: Fraction, *, weighed: bool = False
) -> RankNoise:
    """Calibrate: the bound says how far the distances of two points move apart, so epsilon goes over it once."""
    if not bound:
        return RankNoise(epsilon, None, 0)
    mechanism = PermuteAndFlip() if ranked.grid.count <= FEW else ExponentialNoise()
    apart = GlobalBound(bound, "linf")
    for_ends = Fraction(0)
    if has_ends(ranked, weighed=weighed):
        inner = ENDS_OF_EXTREMES if ranked.extreme else ENDS
        for_ends = epsilon * (ENDS_OF_WEIGHED if weighed else inner)
    # `monotone` leaves out the factor 2, which the bound holds already
    choice = mechanism.calibrate(apart, epsilon=epsilon - for_ends, monotone=True)
    farthest = math.ceil((math.log(ranked.grid.count) + TAIL) / float(choice.sharpness))
    ends = None
    if for_ends:
        # Scores of points move one way for an extreme, those of half widths either way (noise.rank_ends).
        apart = GlobalBound(2 * bound if ranked.extreme else bound, "linf")
        ends = PermuteAndFlip().calibrate(apart, epsilon=for_ends, monotone=True)
    return RankNoise(epsilon, choice, farthest, ends)


def weighted_noise(ranked: Ranked, bound: ClippedContribution, epsilon: Fraction) -> RankNoise:
    """Calibrate for the largest of the limits of what the rows of one unit weigh (truncation.weights)."""
    choosing = epsilon * TALLYING if len(bound.limits) > 1 else Fraction(0)
    return _at(ranked, bound, bound.limits[-1], epsilon, choosing)


def _at(
    ranked: Ranked, bound: ClippedContribution, limit: int, epsilon: Fraction, choosing: Fraction
) -> RankNoise:
    noise = rank_noise(ranked, limit * bound.fine * ranked.span, epsilon - choosing, weighed=True)
    return replace(noise, epsilon=epsilon, limit=limit, bound=bound, choosing=choosing)


def settled(ranked: Ranked, noise: RankNoise, tally: OctaveTally) -> RankNoise:
    """Give the noise with the limit that a tally of units by their rows suggests; None of it is private any more."""
    assert noise.bound is not None, "weights have limits"
    assert noise.choice is not None, "what weighs moves"
    limits = noise.bound.limits
    q = Fraction(1, 2) if ranked.fraction is None else ranked.fraction
    widest = noise.choice if noise.ends is None else noise.ends
    one = LED / float(widest.sharpness * noise.fine * limits[-1])
    index, unseen = limit_of_weights(tally, q, one)
    chosen = _at(ranked, noise.bound, limits[index], noise.epsilon, noise.choosing)
    return replace(chosen, chosen=True, unseen=Fraction(math.ceil(unseen * noise.fine)))


def with_limit(ranked: Ranked, noise: RankNoise, chosen: RankNoise) -> RankNoise:
    """Give the noise of a statistic whose cells were weighed with the limit of another that shares them."""
    if noise.bound is None or chosen.limit is None:
        return noise
    same = _at(ranked, noise.bound, chosen.limit, noise.epsilon, noise.choosing)
    return replace(same, chosen=chosen.chosen, unseen=chosen.unseen)


def has_ends(ranked: Ranked, *, weighed: bool) -> bool:
    """Whether it is drawn between which values a statistic lies: where no row was left out for its value."""
    if ranked.fraction is None or not ranked.type.numeric:
        return False
    limits = [x.limit for x in n.walk(ranked.cells) if isinstance(x, n.Truncate)]
    return weighed or all(limit == 1 for limit in limits)


def statement_of(ranked: Ranked) -> str:
    """Name the statement that counts the cells; statistics of one argument share it."""
    return ranked.cells.keys[-1].name


def read_cells(
    rows: Iterable[tuple[Any, ...]], grid: Points, key_of: Callable[[Key], Key]
) -> dict[Key, Cells]:
    """Sort the engine's rows (keys, index, count) by group."""
    counts: dict[Key, dict[int, int]] = {}
    seen: dict[Key, dict[int, int]] = {}  # as the engine wrote the key, to compare it once
    last = grid.count - 1
    rows = list(rows)
    if rows and len(rows[0]) == 2:
        cells = dict(rows)
        if len(cells) == len(rows) and all(type(at) is int and 0 <= at <= last for at in cells):
            # one group, every point on the grid and named once: nothing to look up, nothing to add
            return {key_of(()): tuple(sorted(cells.items()))}
    for row in rows:
        key = row[:-2]
        group = seen.get(key)
        if group is None:
            group = seen[key] = counts.setdefault(key_of(key), {})
        # Moved onto the grid once more: a float just beyond the last point belongs to it. So does what is no number,
        # if an engine dropped the clamp: a row must not be what fails.
        at = last if row[-2] is None else min(max(int(row[-2]), 0), last)
        group[at] = group.get(at, 0) + int(row[-1])
    return {key: tuple(sorted(group.items())) for key, group in counts.items()}


def pieces(ranked: Ranked, cells: Cells, farthest: int) -> list[Piece]:
    """Split the grid into points of equal distance, from left to right; what is farther counts as farthest."""
    q, top = ranked.fraction, ranked.grid.count
    if q is None:
        return _by_number(cells, top, farthest)
    merged: list[list[int]] = []  # first point, number of points, distance in parts of a row
    for first, count, distance in by_rank(q, top, cells, farthest * q.denominator):
        if merged and merged[-1][2] == distance:
            merged[-1][1] += count
        else:
            merged.append([first, count, distance])
    return [Piece(first, count, Fraction(far, q.denominator)) for first, count, far in merged]


def _by_number(cells: Cells, top: int, farthest: int) -> list[Piece]:
    """Split the points by how many rows fewer they have than the one that has most (stability.mode)."""
    most, at, all_pieces = max((rows for _, rows in cells), default=0), 0, []
    for index, rows in (*cells, (top, 0)):
        if index > at:
            all_pieces.append(Piece(at, index - at, Fraction(min(most, farthest))))
        if index < top:
            all_pieces.append(Piece(index, 1, Fraction(min(most - rows, farthest))))
        at = index + 1
    return all_pieces


def drawn(
    ranked: Ranked, noise: RankNoise, groups: Private[list[Cells]], level: Fraction
) -> list[tuple[object, Span | None]]:
    """Draw a point for each group: a value of the released type, and the values between which the true one lies."""
    return [_drawn(ranked, noise, cells, level) for cells in unseal(groups)]


def _drawn(
    ranked: Ranked, noise: RankNoise, cells: Cells, level: Fraction
) -> tuple[object, Span | None]:
    if noise.choice is None:
        index = exact_index(ranked, cells)
        return None if index is None else ranked.grid.value(index, ranked.type), None
    place = _drawn_point(ranked, noise, noise.choice, cells)
    value = ranked.grid.value(place, ranked.type)
    if noise.ends is None or ranked.fraction is None or not isinstance(ranked.grid, Grid):
        return value, None
    count = ranked.grid.count
    low, high = drawn_ends(ranked.fraction, noise.ends, cells, place, count, level, noise.unseen)
    return value, ranked.grid.around(low, high)


def _drawn_point(ranked: Ranked, noise: RankNoise, choice: Choice, cells: Cells) -> int:
    classes = _classes(pieces(ranked, cells, noise.farthest))
    stretches, first = [], 0
    for distance, members in classes.items():
        count = sum(piece.count for piece in members)
        stretches.append(Stretch(first, count, -distance))
        first += count
    offset = choice.draw_point(stretches)
    for members in classes.values():
        for piece in members:
            if offset < piece.count:
                return piece.first + offset
            offset -= piece.count
    raise AssertionError("every place lies in a piece")


def _classes(all_pieces: list[Piece]) -> dict[Fraction, list[Piece]]:
    """Put pieces of equal distance together: they are equally likely, point by point."""
    classes: dict[Fraction, list[Piece]] = {}
    for piece in all_pieces:
        classes.setdefault(piece.distance, []).append(piece)
    return classes


def exact_index(ranked: Ranked, cells: Cells) -> int | None:
    """For the data owner: the point nearest to the true statistic; None in a group without values."""
    if ranked.fraction is None:
        return max(cells, key=lambda cell: (cell[1], -cell[0]))[0] if cells else None
    total = sum(rows for _, rows in cells)
    reached = 0
    for index, rows in cells:
        reached += rows
        if reached >= max(1, math.ceil(ranked.fraction * total)):
            return index
    return None


def stray(ranked: Ranked, noise: RankNoise, cells: Cells, level: Fraction) -> Fraction:
    """For the data owner: t with P(|drawn - true| <= t) >= level, by the choice's own distribution."""
    grid, center = ranked.grid, exact_index(ranked, cells)
    if isinstance(grid, Candidates):
        numbers = [x for value in grid.values if (x := as_number(value)) is not None]
        return max(numbers, default=Fraction(0)) - min(numbers, default=Fraction(0))
    if center is None:
        return grid.number(grid.count - 1) - grid.low
    if noise.choice is None:
        return Fraction(0)
    all_pieces = pieces(ranked, cells, noise.farthest)
    sizes = {d: sum(p.count for p in members) for d, members in _classes(all_pieces).items()}
    chance = chances(noise.choice, sizes)

    def within(magnitude: int) -> float:
        low, high = center - magnitude, center + magnitude
        return math.fsum(
            chance[p.distance] * max(0, min(high, p.first + p.count - 1) - max(low, p.first) + 1)
            for p in all_pieces
        )

    near, far = -1, grid.count  # within(near) misses the level, within(far) is everything
    while far - near > 1:
        middle = (near + far) // 2
        near, far = (near, middle) if within(middle) >= level else (middle, far)
    return min(far, grid.count - 1) * grid.step


def chances(choice: Choice, sizes: Mapping[Fraction, int]) -> dict[Fraction, float]:
    """Give how likely one point of each distance is, where `sizes` says how many points there are.

    Permute-and-flip: with arrival times uniform on [0, 1], a point is taken if it comes at t and its coin
    shows p, and each other has not come or has failed: p times the integral of prod (1 - p_j t).
    """
    p = {distance: math.exp(-float(distance * choice.sharpness)) for distance in sizes}
    if choice.name == "exponential":
        total = math.fsum(p[d] * count for d, count in sizes.items())
        return {d: weight / total for d, weight in p.items()}
    by_distance = dict.fromkeys(sizes, 0.0)
    for node in range(NODES):
        v = (node + 0.5) / NODES  # t = v^2 puts nodes where the first arrivals are
        t = v * v
        others = math.fsum(count * math.log1p(-p[d] * t) for d, count in sizes.items())
        for d, weight in p.items():
            by_distance[d] += weight * math.exp(others - math.log1p(-weight * t)) * 2 * v / NODES
    total = math.fsum(by_distance[d] * count for d, count in sizes.items())
    return {d: weight / total for d, weight in by_distance.items()}


def ranks_off(ranked: Ranked, noise: RankNoise, level: Fraction) -> float:
    """Give how many rows may lie between the drawn point and the statistic, at the level (noise.ranks). Public."""
    if noise.choice is None:
        return 0.0
    return float(noise.choice.error(level, ranked.grid.count) / noise.fine)


def mechanism_of(ranked: Ranked, noise: RankNoise) -> dict[str, Any]:
    """Give the name and public parameters of the choice."""
    return {
        "measure": ranked.words,
        "mechanism": "none" if noise.choice is None else noise.choice.name,
        "epsilon": float(noise.epsilon),
        "step": float(ranked.grid.step),
        "points": ranked.grid.count,
        "scale": scale_of(noise),
    }


def scale_of(noise: RankNoise) -> float:
    """Give how many rows of rank distance make a point less likely by a factor e."""
    return 0.0 if noise.choice is None else float(1 / (noise.choice.sharpness * noise.fine))


def description_of(ranked: Ranked, noise: RankNoise, level: Fraction) -> str:
    """Say what is public of a choice: how far from the rank it stays, and whether ends in values are drawn."""
    if noise.choice is None:
        return f"{ranked.words}: none, nothing protected is seen"
    among = "values" if ranked.fraction is None else "points"
    choice = (
        f"{ranked.words}: {noise.choice.name} choice among {ranked.grid.count} {among} "
        f"(epsilon {float(noise.epsilon):.4g}); "
    )
    if noise.open:
        return f"{choice}what the rows of a unit weigh is chosen privately first (epsilon {float(noise.choosing):.4g})"
    most = ranks_off(ranked, noise, level)
    if ranked.fraction is None:
        return (
            f"{choice}at most {most:.6g} rows fewer hold it than the most frequent one, "
            f"at {float(level):.0%}"
        )
    counted = "units, each at its own extreme," if ranked.of_units else "rows"
    value = "how far that is in value only the owner knows"
    if noise.ends is not None:
        value = f"and the values are drawn between which it lies (epsilon {float(noise.ends.epsilon):.4g})"
    return f"{choice}within {most:.6g} {counted} of the rank at {float(level):.0%}, {value}"
