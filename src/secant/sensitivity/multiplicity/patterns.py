"""Pattern maps: what each row of a table is worth, told by the values of some of its columns, `*` elsewhere.

In: grouped counts as columns of values. Out: maps from patterns to numbers, their merge (sums where patterns meet),
and the largest sum over all rows that a table could have. Every map holds the pattern of all stars, TOP, so that a row
that one map does not know still gets what the others say of it (multiplicity.merge). Never here: what the numbers mean.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from secant.errors import InternalError
from secant.numeric.arrays import Floats, Wholes, np
from secant.records import frozen

Codes = Wholes
Shape = tuple[str, ...]
"""The columns of a pattern that hold a value, in alphabetical order."""

_ROOM = 1 << 62


@frozen
class Patterns:
    """Patterns of one shape: a row of codes each, and their numbers. Of patterns that are alike the largest counts."""

    codes: Codes
    values: Floats


@frozen
class PatternMap:
    """Patterns by shape; a shape may have none. The shape without columns is TOP and always has its number.

    A row is worth the largest number of a pattern that it matches: more stars are never worth more.
    """

    parts: Mapping[Shape, Patterns]

    @property
    def columns(self) -> frozenset[str]:
        """Give the columns that some pattern has a value in."""
        return frozenset(c for shape in self.parts for c in shape)

    @property
    def top(self) -> float:
        """Give what a row is worth that no other pattern matches."""
        return float(self.parts[()].values[0])


@dataclass
class Coder:
    """Numbers for values, the same number for the same value. NULL has none: it matches nothing."""

    plain: bool
    """Whether all values are whole numbers, which then stand for themselves."""
    known: dict[object, int] = field(default_factory=dict)

    def codes(
        self, values: Sequence[object], key: Callable[[object], object] | None = None
    ) -> tuple[Codes, Codes]:
        """Give the places of values that are not NULL, and their numbers; `key` makes equal what is equal in SQL."""
        places = np.arange(len(values))
        if None in values:
            places = np.array([i for i, v in enumerate(values) if v is not None], dtype=np.int64)
            values = [v for v in values if v is not None]
        if self.plain:
            return places, np.array(values, dtype=np.int64)
        codes_by_value = self.known
        keyed = values if key is None else map(key, values)
        numbers = [codes_by_value.setdefault(value, len(codes_by_value)) for value in keyed]
        return places, np.array(numbers, dtype=np.int64)


def pattern_map(top: float, parts: Sequence[tuple[Shape, Codes, Floats]] = ()) -> PatternMap:
    """Build a map; columns of `codes` follow the shape, which need not be sorted. Patterns may be there twice."""
    patterns_by_shape: dict[Shape, list[Patterns]] = {(): [_star(top)]}
    for shape, codes, values in parts:
        order = sorted(range(len(shape)), key=lambda i: shape[i])
        sorted_shape = tuple(shape[i] for i in order)
        patterns_by_shape.setdefault(sorted_shape, []).append(Patterns(codes[:, order], values))
    return PatternMap(
        {s: _together(p) if s else _distinct(p) for s, p in patterns_by_shape.items()}
    )


def merge(one: PatternMap, two: PatternMap) -> PatternMap:
    """Give the map whose numbers are, row by row, the sums of both. Of any two shapes one holds the other."""
    parts: dict[Shape, list[Patterns]] = {}
    for first, left in one.parts.items():
        for second, right in two.parts.items():
            wide, narrow = ((first, left), (second, right))
            if len(second) > len(first):
                wide, narrow = narrow, wide
            parts.setdefault(wide[0], []).append(_met(wide, narrow))
    return _settled(parts)


def forget(patterns_map: PatternMap, columns: Iterable[str]) -> PatternMap:
    """Put stars into columns and keep the largest of what becomes alike."""
    gone = frozenset(columns)
    if not gone & patterns_map.columns:
        return patterns_map
    parts: dict[Shape, list[Patterns]] = {}
    for shape, patterns in patterns_map.parts.items():
        positions = [i for i, c in enumerate(shape) if c not in gone]
        smaller = tuple(shape[i] for i in positions)
        parts.setdefault(smaller, []).append(
            Patterns(patterns.codes[:, positions], patterns.values)
        )
    return _settled(parts)


def largest_sum(maps: Sequence[PatternMap]) -> float:
    """Give the largest sum over all rows, some columns of some maps being chosen freely (multiplicity.merge).

    Which columns these are follows from the shapes that the maps could have, never from what patterns there are.
    """
    left = _promising(list(maps))
    while len(left) > 1:
        left = [forget(m, m.columns - _columns_of(left, m)) for m in left]
        pairs = [(i, j) for j in range(len(left)) for i in range(j)]
        i, j = max(pairs, key=lambda pair: len(left[pair[0]].columns & left[pair[1]].columns))
        one, two = _made_nested(left[i], left[j])
        left = [m for index, m in enumerate(left) if index not in (i, j)] + [merge(one, two)]
    return _largest(left[0])


def _columns_of(maps: Sequence[PatternMap], without: PatternMap) -> frozenset[str]:
    """Give the columns that other maps speak of; the best value of any other can be chosen freely."""
    return frozenset().union(*(m.columns for m in maps if m is not without))


def _made_nested(one: PatternMap, two: PatternMap) -> tuple[PatternMap, PatternMap]:
    """Forget as few columns of one of two maps as it takes to find one of any two shapes inside the other."""
    for size in range(len(one.columns | two.columns) + 1):
        for wide, other in ((one, two), (two, one)):
            for gone in itertools.combinations(sorted(other.columns), size):
                if _nested(wide, other, frozenset(gone)):
                    return wide, forget(other, gone)
    raise InternalError("BUG-001", "a map of nothing but stars has no place in another")


def _nested(one: PatternMap, two: PatternMap, gone: frozenset[str]) -> bool:
    shapes = [frozenset(second) - gone for second in two.parts]
    return all(frozenset(f) <= s or s <= frozenset(f) for f in one.parts for s in shapes)


def _largest(patterns: PatternMap) -> float:
    return max(float(p.values.max(initial=0.0)) for p in patterns.parts.values())


def _promising(maps: list[PatternMap]) -> list[PatternMap]:
    """Leave out patterns whose sums stay below one that is surely reached, whatever they meet; shapes stay."""
    best = [_largest(m) for m in maps]
    tops = [m.top for m in maps]
    reached = max(b + sum(tops) - t for b, t in zip(best, tops, strict=True))
    promising = []
    for own_map, own in zip(maps, best, strict=True):
        needed = (reached - (sum(best) - own)) * (1 - 1e-9)
        parts: dict[Shape, list[Patterns]] = {}
        for shape, patterns in own_map.parts.items():
            chosen = patterns.values >= needed if shape else np.ones(1, dtype=bool)
            parts[shape] = [Patterns(patterns.codes[chosen], patterns.values[chosen])]
        promising.append(_settled(parts))
    return promising


def _star(value: float) -> Patterns:
    return Patterns(np.zeros((1, 0), dtype=np.int64), np.array([value]))


def _met(wide: tuple[Shape, Patterns], narrow: tuple[Shape, Patterns]) -> Patterns:
    """Intersect the patterns of two shapes, the wider of which holds the other: sums where they agree."""
    shape, left = wide
    right = _distinct([narrow[1]])
    rows, positions = lookup(left.codes[:, [shape.index(c) for c in narrow[0]]], right.codes)
    return Patterns(left.codes[rows], left.values[rows] + right.values[positions])


def _settled(by_shape: Mapping[Shape, list[Patterns]]) -> PatternMap:
    """Keep every shape, also one without patterns: what is forgotten must not tell which patterns there are."""
    return PatternMap({shape: _distinct(parts) for shape, parts in by_shape.items()})


def _together(parts: list[Patterns]) -> Patterns:
    codes = np.concatenate([p.codes for p in parts])
    return Patterns(codes, np.concatenate([p.values for p in parts]))


def _distinct(parts: list[Patterns]) -> Patterns:
    """Keep each pattern once, with the largest of its numbers."""
    whole = _together(parts)
    codes, values = whole.codes, whole.values
    if len(values) <= 1:
        return whole
    if codes.shape[1] == 0:
        return Patterns(codes[:1], values.max(keepdims=True))
    (packed,) = _packed(codes)
    order = np.argsort(packed)
    packed = packed[order]
    starts = np.nonzero(np.append(True, packed[1:] != packed[:-1]))[0]
    return Patterns(codes[order[starts]], np.maximum.reduceat(values[order], starts))


def lookup(codes: Codes, table_codes: Codes) -> tuple[Codes, Codes]:
    """Give the places in `codes` that stand in `table_codes`, whose rows differ, and where they stand there."""
    if codes.shape[1] == 0:
        hits = np.arange(len(codes) if len(table_codes) else 0)
        return hits, np.zeros(len(hits), dtype=np.int64)
    keys, table = _packed(codes, table_codes)
    if not len(table):
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing
    order = None if np.all(table[1:] >= table[:-1]) else np.argsort(table)
    table = table if order is None else table[order]
    places = np.minimum(np.searchsorted(table, keys), len(table) - 1)
    rows = np.nonzero(table[places] == keys)[0]
    return rows, places[rows] if order is None else order[places[rows]]


def in_order(codes: Codes) -> Codes:
    """Give the order in which rows of codes are sorted: what is sorted is found faster."""
    return np.argsort(_packed(codes)[0])


def _packed(*parts: Codes) -> list[Codes]:
    """Give one number for each row of codes, the same for the same row in all parts."""
    whole = np.concatenate(parts)
    packed = np.zeros(len(whole), dtype=np.int64)
    size = 1
    for column in whole.T if len(whole) else ():
        low = int(column.min())
        more = int(column.max()) - low + 1
        if more >= _ROOM:
            _, column = np.unique(column, return_inverse=True)
            low, more = 0, int(column.max()) + 1
        if size * more >= _ROOM:
            _, packed = np.unique(packed, return_inverse=True)
            size = int(packed.max()) + 1
        packed = packed * more + (column - low)
        size *= more
    ends = np.cumsum([len(p) for p in parts])[:-1]
    return list(np.split(packed, ends))
