"""From figures to a bound: patterns with their counts, smoothed, summed over copies, and the largest of all.

In: how the copies are laid out, and the engine's figures for one group. Out: how many joined rows one row can stand
for, smooth and rounded up (multiplicity.copy, multiplicity.pattern). Figures are private; nothing of them is kept or
raised in an error.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from fractions import Fraction

from secant.numeric.arrays import Floats, np
from secant.plan.evaluate.values import midnight, order_key
from secant.records import frozen
from secant.sensitivity.certificate import Figures
from secant.sensitivity.multiplicity.copies import Copy, Factor, Layout, Part
from secant.sensitivity.multiplicity.filling import discount, raised, smooth
from secant.sensitivity.multiplicity.patterns import (
    Coder,
    Codes,
    PatternMap,
    in_order,
    largest_sum,
    lookup,
    pattern_map,
)

_AS_THEY_ARE = frozenset(("INTEGER", "DECIMAL", "TEXT", "BOOLEAN"))
"""Kinds whose values Python takes as equal exactly where the engine does."""


def rows_that_differ(layout: Layout, beta: Fraction, figures: tuple[Figures, ...]) -> Fraction:
    """Give a smooth bound of the joined rows that come or go with one row of a protected table (multiplicity.copy)."""
    degree = max(copy.growth.degree for copy in layout.copies)
    rate = discount(beta, degree)
    plain = all(kinds == {"INTEGER"} for kinds in layout.kinds)
    try:
        worst = _worst(layout, _Reader(layout, figures, rate, Coder(plain), {}))
    except OverflowError:  # whole numbers too large to stand for themselves
        worst = _worst(layout, _Reader(layout, figures, rate, Coder(plain=False), {}))
    return raised(worst, beta, degree)


def _worst(layout: Layout, reader: _Reader) -> float:
    tables = sorted({copy.table for copy in layout.copies})
    return max(
        largest_sum([reader.worth(c) for c in layout.copies if c.table == table])
        for table in tables
    )


@frozen
class _Counted:
    """Patterns, no two alike and none with a NULL, and how many rows have each."""

    classes: tuple[int, ...]
    codes: Codes
    counts: Floats

    def of(self, classes: tuple[int, ...], codes: Codes) -> Floats:
        """Give the counts of patterns over at least these classes; 0 where there is none."""
        if codes is self.codes:
            return self.counts
        values = np.zeros(len(codes))
        rows, places = lookup(codes[:, [classes.index(k) for k in self.classes]], self.codes)
        values[rows] = self.counts[places]
        return values

    @property
    def largest(self) -> float:
        return float(self.counts.max(initial=0.0))


@frozen
class _Reader:
    layout: Layout
    figures: tuple[Figures, ...]
    rate: float
    coder: Coder
    read: dict[tuple[int, tuple[int, ...]], _Counted]
    """What was read already: copies share statements."""

    def worth(self, copy: Copy) -> PatternMap:
        """Give for every row that the copy could hold the joined rows that it would stand for, smoothed."""
        fixed, joined = 1.0, 1.0
        counts = np.zeros(copy.growth.degree)
        for part in copy.whole:
            joined *= self._most(part.joined)
            for factor in part.factors:
                if factor.slot is None:
                    fixed *= self._most(factor.statement)
                else:
                    counts[factor.slot] = self._most(factor.statement)
        shared = _Shared(copy, fixed, joined, counts, self.rate)
        if copy.patterned is None:
            (top,) = shared.smoothed([_Vectors(np.ones(1), ())])
            return pattern_map(float(top[0]))
        return self._patterned(copy, copy.patterned, shared)

    def _patterned(self, copy: Copy, part: Part, shared: _Shared) -> PatternMap:
        together = self._counted(part.joined, part.classes)
        factors = [(f, self._counted(f.statement, f.classes)) for f in part.factors]
        seen = _Vectors(
            together.counts, tuple((f, c.of(part.classes, together.codes)) for f, c in factors)
        )
        if not _nested([f.classes for f in part.factors]):
            # multiplicity.coarse: whatever is not seen is at most what the largest counts would give
            unseen = _Vectors(np.zeros(1), tuple((f, np.array([c.largest])) for f, c in factors))
            coded, top = shared.smoothed([seen, unseen])
            patterns = [(part.classes, together.codes, np.maximum(coded, top[0]))]
            return _labeled(copy, float(top[0]), patterns)
        # multiplicity.fresh: what each table shows by itself, and a value that no table has
        alone = [c for _, c in factors if c.classes]
        fresh = _Vectors(
            np.zeros(1),
            tuple((f, np.array([0.0 if c.classes else c.largest])) for f, c in factors),
        )
        coded, *others, top = shared.smoothed([seen, *(_alone(c, factors) for c in alone), fresh])
        shapes = [(part.classes, together.codes, coded)]
        shapes += [(c.classes, c.codes, v) for c, v in zip(alone, others, strict=True)]
        return _labeled(copy, float(top[0]), shapes)

    # ── figures ──────────────────────────────────────────────────────────────────────────────────

    def _most(self, statement: int) -> float:
        return float(max((_whole(row[-1]) for row in self.figures[statement]), default=0))

    def _counted(self, statement: int, classes: tuple[int, ...]) -> _Counted:
        counted = self.read.get((statement, classes))
        if counted is None:
            counted = self.read[statement, classes] = self._fresh(statement, classes)
        return counted

    def _fresh(self, statement: int, classes: tuple[int, ...]) -> _Counted:
        rows = self.figures[statement]
        if not rows:
            return _Counted(classes, np.zeros((0, len(classes)), dtype=np.int64), np.zeros(0))
        *columns, numbers = zip(*rows, strict=True)
        counts = np.array(numbers, dtype=np.float64)
        codes = np.zeros((len(rows), len(classes)), dtype=np.int64)
        full = np.zeros(len(rows), dtype=np.int64)
        for index, (k, values) in enumerate(zip(classes, columns, strict=True)):
            where, codes_found = self.coder.codes(values, _equality(self.layout.kinds[k]))
            codes[where, index] = codes_found
            full[where] += 1
        complete = full == len(classes)
        order = in_order(codes[complete])
        return _Counted(classes, codes[complete][order], counts[complete][order])


@frozen
class _Vectors:
    """For some patterns: what is joined, and the counts of each factor."""

    joined: Floats
    factors: tuple[tuple[Factor, Floats], ...]


def _alone(own: _Counted, factors: list[tuple[Factor, _Counted]]) -> _Vectors:
    """Give the patterns of one table where nothing is joined; tables that would say more have no row of them."""
    size = len(own.counts)
    return _Vectors(
        np.zeros(size),
        tuple(
            (
                f,
                c.of(own.classes, own.codes)
                if set(c.classes) <= set(own.classes)
                else np.zeros(size),
            )
            for f, c in factors
        ),
    )


@frozen
class _Shared:
    """What all patterns of a copy have alike."""

    copy: Copy
    fixed: float
    joined: float
    counts: Floats
    rate: float

    def smoothed(self, vectors: list[_Vectors]) -> list[Floats]:
        """Give the smooth bounds of all patterns, in one go."""
        sizes = [len(v.joined) for v in vectors]
        counts = np.tile(self.counts, (sum(sizes), 1))
        fixed = np.full(sum(sizes), self.fixed)
        ends = np.cumsum(sizes)
        for vector, size, end in zip(vectors, sizes, ends, strict=True):
            here = slice(end - size, end)
            for factor, values in vector.factors:
                if factor.slot is None:
                    fixed[here] *= values
                else:
                    counts[here, factor.slot] = values
        together = self.joined * np.concatenate([v.joined for v in vectors])
        values = smooth(counts, together, fixed, self.copy.growth, self.rate)
        return np.split(values, ends[:-1])


def _labeled(
    copy: Copy, top: float, shapes: list[tuple[tuple[int, ...], Codes, Floats]]
) -> PatternMap:
    """Write patterns over classes as patterns over the table's own columns."""
    parts = []
    for classes, codes, values in shapes:
        names: list[str] = []
        places: list[int] = []
        keep = np.ones(len(values), dtype=bool)
        for index, k in enumerate(classes):
            for label in copy.labels[k]:
                if label in names:  # one column in two classes: both values must be the same
                    keep &= codes[:, places[names.index(label)]] == codes[:, index]
                else:
                    names.append(label)
                    places.append(index)
        parts.append((tuple(names), codes[keep][:, places], values[keep]))
    return pattern_map(top, parts)


def _nested(sets: list[tuple[int, ...]]) -> bool:
    """Whether of any two sets of classes one holds the other: then unseen patterns can be listed.

    Rests on multiplicity.fresh.
    """
    return all(set(a) <= set(b) or set(b) <= set(a) for a in sets for b in sets)


def _whole(value: object) -> int:
    return 0 if value is None else int(value)  # type: ignore[call-overload]


def _equality(kinds: frozenset[str]) -> Callable[[object], object] | None:
    """Give what makes values equal that the engine takes as equal: NaN and NaN, a day and its midnight."""
    if kinds <= _AS_THEY_ARE:
        return None
    return lambda value: order_key(midnight(value) if isinstance(value, date) else value)
