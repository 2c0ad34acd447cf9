"""Totals and parts that were released apart are made to agree, by least squares (noise.agree).

In: released tables, and what is public about their noise. Out: the same tables with numbers that add up, and for each
number what it is now made of: weights of the numbers that were drawn. GROUP BY ROLLUP (ward) counts all rows once by
themselves and once ward by ward; both tell about the same rows. Costs nothing, and reads released numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from secant.accuracy.binding_facts import noise_alone_moves, rests_on_inferred_limit
from secant.noise.measure_noise import LawfulNoise, Noise
from secant.noise.mechanisms.sums import HIGHEST, Weighted, weighted_error, whole_variance
from secant.noise.running import RunningNoise, RunningSums, steps_shown
from secant.plan import nodes as n
from secant.plan.facts.domains import Chosen, Listed, Looked, Stepped
from secant.plan.rewrites.rewrite import columns_of
from secant.plan.show import same
from secant.records import frozen
from secant.release.measured import comparable, steps_of, value_of
from secant.sensitivity.bound import CertifiedRelease

MOST_NUMBERS, MOST_TOTALS = 300, 60
"""Of all levels together, and of all but the finest: every number is made of all of them."""
CONTRADICTED = 0.9999
"""Totals and parts that noise at this level does not explain are left apart: some rows have none of the keys."""
FURTHEST = 1e6
"""The largest variance over the least one with which numbers are weighed."""
Cell = tuple[str, int]
"""Measure column and row of a released table."""


@frozen
class Agreed:
    """One number that was made to agree with others."""

    shown: float
    weights: Mapping[Cell, float]
    """What it is made of: how much of each number that was drawn."""
    error: Callable[[Fraction], float | None]
    """For a level, how far the true number is from the shown one at most; None where that is not told."""
    whole: bool
    """Whether it counts rows."""


@frozen
class Agreement:
    """What became of the totals and parts of one question."""

    numbers: Mapping[Cell, Agreed]
    drawn: Mapping[Cell, float]
    """The numbers as they were drawn."""
    apart: bool
    """Whether some totals and parts were left as they are: they differ by more than noise."""
    declared: bool
    """Whether only declarations say that the parts are all there are."""
    real: bool = True
    """Whether numbers were drawn: made-up ones were not made to agree."""
    running: Mapping[str, RunningSums] = field(default_factory=dict)
    """Measure column -> its running sums, where noise is on blocks of steps."""

    @property
    def columns(self) -> frozenset[str]:
        """The measures whose numbers have another law than their noise."""
        return frozenset({column for column, _ in self.numbers} | self.running.keys())


NOTHING = Agreement({}, {}, False, False)
Tables = Mapping[str, n.Values]


def agree(
    bounded: Sequence[CertifiedRelease],
    tables: Tables,
    noise: Mapping[str, Noise],
    *,
    made_up: bool = False,
) -> tuple[Tables, Agreement]:
    """Give tables whose totals and parts agree; made-up numbers stay what they are, and get the errors only."""
    numbers: dict[Cell, Agreed] = {}
    drawn: dict[Cell, float] = {}
    changed = {name: [list(row) for row in table.rows] for name, table in tables.items()}
    apart = declared = False
    for family in _families(bounded, tables):
        for index in _additive(family.members):
            columns = [b.release.measures[index] for b in family.members]
            laws = [_law(b, m.column, noise) for b, m in zip(family.members, columns, strict=True)]
            settled = [law for law in laws if law is not None]
            if len(settled) < len(laws):
                continue
            values = [
                steps_of(row[len(b.release.exact.keys) + index], m)
                for b, m in zip(family.members, columns, strict=True)
                for row in tables[b.release.name].rows
            ]
            if any(v is None for v in values):
                continue
            fit = _Fit(family, [v for v in values if v is not None], settled)
            if not made_up and fit.contradicted:
                apart = True
                continue
            declared |= family.declared
            shown = fit.values if made_up else fit.shown()
            named = [
                (m.column, i)
                for b, m in zip(family.members, columns, strict=True)
                for i in range(len(tables[b.release.name].rows))
            ]
            step, whole = columns[0].step, family.counts(index)
            for at, (cell, number) in enumerate(zip(named, shown, strict=True)):
                release, row = family.where(at)
                measure = columns[release]
                name = family.members[release].release.name
                key_width = len(family.members[release].release.exact.keys)
                value = value_of(number, measure)
                changed[name][row][key_width + index] = value
                drawn[cell] = float(fit.values[at] * step)
                weights = {named[j]: w for j, w in enumerate(fit.weights[at]) if w}
                change = 0.0 if made_up else abs(number - fit.estimates[at])
                numbers[cell] = Agreed(
                    float(number * step), weights, fit.error(at, change, step, whole), whole
                )
    agreed = {
        name: replace(table, rows=tuple(tuple(row) for row in changed[name]))
        for name, table in tables.items()
    }
    return agreed, Agreement(
        numbers, drawn, apart, declared, not made_up, _running(bounded, tables, noise)
    )


def _running(
    bounded: Sequence[CertifiedRelease], tables: Tables, noise: Mapping[str, Noise]
) -> dict[str, RunningSums]:
    """Give the running sums of measures whose blocks of steps were drawn."""
    sums = {}
    for b in bounded:
        for index, m in enumerate(b.release.measures, len(b.release.exact.keys)):
            blocks = noise.get(m.column)
            if isinstance(blocks, RunningNoise):
                shown = [float(row[index]) for row in tables[b.release.name].rows]  # type: ignore[arg-type]
                sums[m.column] = steps_shown(blocks, m.step, shown)
    return sums


# ── who tells about the same rows ────────────────────────────────────────────────────────────────


@frozen
class _Family:
    """Releases that group the same rows, the finest first: every other one is a sum over rows of the first."""

    members: tuple[CertifiedRelease, ...]
    sums: tuple[tuple[int, ...], ...]
    """For each row of the finest release, the row of each of the others that it is a part of."""
    sizes: tuple[int, ...]
    chain: tuple[int, ...]
    """Members from the coarsest to the finest, each a sum over the next."""

    def where(self, at: int) -> tuple[int, int]:
        """Give the member and the row of a number."""
        for member, size in enumerate(self.sizes):
            if at < size:
                return member, at
            at -= size
        raise IndexError(at)

    def start(self, member: int) -> int:
        """Give the place of a member's first number."""
        return sum(self.sizes[:member])

    def counts(self, index: int) -> bool:
        """Whether a measure counts rows."""
        return self.members[0].release.exact.aggregations[index].function == "count"

    @property
    def declared(self) -> bool:
        """Whether only declarations say that the finest groups are all there are."""
        domains = self.members[0].release.domains
        return any(isinstance(d, (Listed, Looked)) for d in domains)


def _families(bounded: Sequence[CertifiedRelease], tables: Tables) -> Iterator[_Family]:
    left = [b for b in bounded if _fits(b)]
    while left:
        first, *_ = left
        alike = [b for b in left if _same_rows(first, b)]
        left = [b for b in left if all(b is not a for a in alike)]
        family = _family(alike, tables)
        if family is not None:
            yield family


def _fits(b: CertifiedRelease) -> bool:
    """Whether the true numbers of a release add up: its groups are all there, and noise alone moves them."""
    chosen = any(isinstance(d, (Chosen, Stepped)) for d in b.release.domains)
    return noise_alone_moves(b) and not chosen


def _same_rows(a: CertifiedRelease, b: CertifiedRelease) -> bool:
    """Whether two releases compute the same of the same rows, in other groups."""
    one, other = a.release.original, b.release.original
    if one.input != other.input or len(one.aggregations) != len(other.aggregations):
        return False
    return all(
        (x.function, x.distinct, x.fraction) == (y.function, y.distinct, y.fraction)
        and (x.argument is y.argument or (x.argument is not None and x.argument == y.argument))
        for x, y in zip(one.aggregations, other.aggregations, strict=True)
    )


def _family(alike: list[CertifiedRelease], tables: Tables) -> _Family | None:
    ordered = sorted(alike, key=lambda b: -len(b.release.original.keys))
    if len(ordered) < 2:
        return None
    finest = ordered[0]
    rows = tables[finest.release.name].rows
    sizes = tuple(len(tables[b.release.name].rows) for b in ordered)
    if not all(sizes) or sum(sizes) > MOST_NUMBERS or sum(sizes[1:]) > MOST_TOTALS:
        return None
    width = len(finest.release.exact.keys)
    keys = [comparable(row[:width]) for row in rows]
    above: list[list[int]] = []
    for b in ordered[1:]:
        places = _positions(b, finest)
        if places is None:
            return None
        mine = tables[b.release.name].rows
        rows_by_key = {comparable(r[: len(places)]): i for i, r in enumerate(mine)}
        whole = [rows_by_key.get(tuple(key[p] for p in places)) for key in keys]
        belongs = [i for i in whole if i is not None]
        # A key that only one of the two lists would be left out of a sum.
        if len(belongs) < len(whole) or len(set(belongs)) < len(mine):
            return None
        above.append(belongs)
    sums = tuple(zip(*above, strict=True))
    return _Family(tuple(ordered), sums, sizes, _chain(ordered))


def _positions(coarse: CertifiedRelease, fine: CertifiedRelease) -> tuple[int, ...] | None:
    """Give where the keys of one release stand among those of another; None if one is not there."""
    positions = []
    for key in coarse.release.original.keys:
        at = [
            i
            for i, k in enumerate(fine.release.original.keys)
            if same(k.expression, key.expression)
        ]
        if len(at) != 1:
            return None
        positions.append(at[0])
    return tuple(positions)


def _chain(ordered: list[CertifiedRelease]) -> tuple[int, ...]:
    """Give members of which each is a sum over the next one, from the coarsest to the finest."""
    chain = [0]
    for i, b in enumerate(ordered[1:], 1):
        if _positions(b, ordered[chain[-1]]) is not None:
            chain.append(i)
    return tuple(reversed(chain))


def _additive(members: tuple[CertifiedRelease, ...]) -> Iterator[int]:
    """Give the measures that add up over groups, if all members have them alike."""
    measures = [b.release.measures for b in members]
    if len({len(m) for m in measures}) > 1:
        return
    for index, several in enumerate(zip(*measures, strict=True)):
        calls = [b.release.exact.aggregations[index] for b in members]
        if (
            len({(m.words, m.step, m.type) for m in several}) == 1
            and len({c.function for c in calls}) == 1
            and calls[0].function in ("count", "sum")
            and not any(c.distinct for c in calls)
            and not any(m.preprocessed for m in several)
            and all(_shown_alone(b, index) for b in members)
        ):
            yield index


def _shown_alone(b: CertifiedRelease, index: int) -> bool:
    """Whether a measure is shown as it is: averages do not add up, and keep the narrower ends of two numbers."""
    column = b.release.measures[index].column
    return any(columns_of(item.expression) == {column} for item in b.release.finish.items)


def _law(b: CertifiedRelease, column: str, noise: Mapping[str, Noise]) -> LawfulNoise | None:
    """Give noise of one law; where a limit was chosen or found, what that cut off is in no law."""
    law = noise.get(column)
    if not isinstance(law, LawfulNoise) or law.candidates(1) or rests_on_inferred_limit(b, column):
        return None
    return None if any(noise[p].chosen for p in law.partners) or law.chosen else law


# ── least squares ────────────────────────────────────────────────────────────────────────────────


class _Fit:
    """The numbers of one measure at all levels, in whole steps, and the nearest ones that add up."""

    def __init__(
        self, family: _Family, values: Sequence[int], noises: Sequence[LawfulNoise]
    ) -> None:
        self.family, self.values, self.noises = family, list(values), list(noises)
        fine, total = family.sizes[0], sum(family.sizes)
        parts: list[list[int]] = [[i] for i in range(fine)] + [[] for _ in range(total - fine)]
        for row, belongs in enumerate(family.sums):
            for member, at in enumerate(belongs, 1):
                parts[family.start(member) + at].append(row)
        self.parts = [frozenset(inside) for inside in parts]
        """For each number the rows of the finest release that it is a sum of."""
        self.residuals = [
            v - sum(self.values[j] for j in inside)
            for v, inside in zip(self.values[fine:], self.parts[fine:], strict=True)
        ]
        self.gain = self._gain()
        # Whole numbers and a small correction: computed as one sum of weighted numbers, digits would be lost.
        finest = [
            v + math.fsum(g * r for g, r in zip(row, self.residuals, strict=True))
            for v, row in zip(self.values, self.gain, strict=False)
        ]
        self.estimates = [math.fsum(finest[j] for j in inside) for inside in self.parts]

    def _gain(self) -> list[list[float]]:
        """Give for each of the finest numbers its shares in what totals exceed their parts by."""
        fine = self.family.sizes[0]
        variances = _comparable([_variance(x) for x in self.noises])
        sums = self.parts[fine:]
        inner = [[variances[0] * len(a & b) for b in sums] for a in sums]
        for i in range(len(sums)):
            inner[i][i] += variances[self.family.where(fine + i)[0]]
        targets = [[variances[0] * (j in inside) for j in range(fine)] for inside in sums]
        return [list(row) for row in zip(*_solved(inner, targets), strict=True)]

    @cached_property
    def weights(self) -> list[list[float]]:
        """Give for each number the weights of all that were drawn."""
        fine, total = self.family.sizes[0], len(self.values)
        finest = []
        for i, shares in enumerate(self.gain):
            row = [0.0] * fine + list(shares)
            row[i] += 1.0
            for share, inside in zip(shares, self.parts[fine:], strict=True):
                for j in inside:
                    row[j] -= share
            finest.append(row)
        return [
            finest[at]
            if at < fine
            else [math.fsum(finest[i][j] for i in inside) for j in range(total)]
            for at, inside in enumerate(self.parts)
        ]

    @property
    def contradicted(self) -> bool:
        """Whether a total differs from its parts by more than noise explains."""
        fine = self.family.sizes[0]
        # log-concave tails: a reach that is so many times as far is missed with that power of the chance
        times = 1 + math.log(len(self.residuals)) / -math.log(1 - CONTRADICTED)
        for i, residual in enumerate(self.residuals):
            member, _ = self.family.where(fine + i)
            kinds = [
                (self.noises[member], 1.0, 1),
                (self.noises[0], 1.0, len(self.parts[fine + i])),
            ]
            if abs(residual) > times * _half_width(kinds, CONTRADICTED):
                return True
        return False

    def shown(self) -> list[int]:
        """Give whole steps that add up exactly, each less than a step from its estimate along a chain of levels."""
        rounded: dict[int, int] = {}
        chain = self.family.chain
        for at in self._positions(chain[0]):
            rounded[at] = round(self.estimates[at])
        for above, below in pairwise(chain):
            for total in self._positions(above):
                inside = [at for at in self._positions(below) if self._within(at, total)]
                rounded |= _shared_out(rounded[total], {at: self.estimates[at] for at in inside})
        for at in range(len(self.values)):
            if at not in rounded:
                rounded[at] = sum(rounded[j] for j in self.parts[at])
        return [rounded[at] for at in range(len(self.values))]

    def _positions(self, member: int) -> range:
        start = self.family.start(member)
        return range(start, start + self.family.sizes[member])

    def _within(self, part: int, total: int) -> bool:
        return self.parts[part] <= self.parts[total]

    def error(
        self, at: int, change: float, step: Fraction, whole: bool
    ) -> Callable[[Fraction], float | None]:
        """Give how far the true number is from the shown one: by the law of the estimate, and by rounding it."""
        counted: dict[tuple[int, float], int] = {}
        for j, weight in enumerate(self.weights[at]):
            member, _ = self.family.where(j)
            key = (member, round(abs(weight), 12))
            counted[key] = counted.get(key, 0) + 1
        kinds = [(self.noises[m], w, count) for (m, w), count in sorted(counted.items()) if w]

        def error(level: Fraction) -> float | None:
            if level > HIGHEST or any(w > 1 for _, w, _ in kinds):
                return None
            width = _half_width(kinds, float(level))
            if not whole:
                return (width + max(1.0, change)) * float(step)
            # a true count and a shown one are whole numbers: less than reach + 1 apart, they are at most that far
            return float(math.ceil(width) if change < 1 else math.floor(width + change))

        return error


def _variance(noise: LawfulNoise) -> float:
    return whole_variance(float(noise.law.size), normal=noise.law.normal)


def _comparable(variances: Sequence[float]) -> list[float]:
    """Give positive variances no further apart than weights need: next to no noise would make the matrix singular.

    Weights follow from them, errors do not: those come from the laws of what was drawn, whatever the weights are.
    """
    largest = max(variances)
    return [max(v, largest / FURTHEST) for v in variances] if largest else [1.0] * len(variances)


def _half_width(kinds: Sequence[tuple[LawfulNoise, float, int]], level: float) -> float:
    """Give how far a weighted sum of noises lies from zero at most, in whole steps (noise.agree)."""
    weighted, rounding = [], 0.0
    for noise, weight, count in kinds:
        # drawn in parts of a step, and rounded to whole ones
        fine, law = noise.fine, noise.law
        weighted.append(Weighted(float(law.size) * fine, weight / fine, count, law.normal))
        rounding += weight * count / 2 if fine > 1 else 0.0
    return weighted_error(tuple(weighted), level) + rounding


def _solved(matrix: list[list[float]], targets: list[list[float]]) -> list[list[float]]:
    """Solve M·X = W for a positive definite M, by elimination; few totals, so that no library is needed."""
    rows = [[*a, *b] for a, b in zip(matrix, targets, strict=True)]
    size = len(rows)
    for i in range(size):
        top = rows[i][i]
        rows[i] = pivot = [x / top for x in rows[i]]
        for k in range(size):
            factor = rows[k][i]
            if k != i and factor:
                rows[k] = [x - factor * y for x, y in zip(rows[k], pivot, strict=True)]
    return [row[size:] for row in rows]


def _shared_out(total: int, parts: Mapping[int, float]) -> dict[int, int]:
    """Give whole numbers near the parts that add up to the total: those with the largest remainders are rounded up."""
    floors = {at: math.floor(x) for at, x in parts.items()}
    by_rest = sorted(parts, key=lambda at: floors[at] - parts[at])
    each, left = divmod(total - sum(floors.values()), len(parts))
    return {at: floors[at] + each + (rank < left) for rank, at in enumerate(by_rest)}
