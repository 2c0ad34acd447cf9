"""Pattern maps: the largest sum over all rows, against every row of a small domain."""

import itertools
import math
import random

import numpy as np
import pytest

from secant.sensitivity.multiplicity import patterns
from secant.sensitivity.multiplicity.patterns import (
    Coder,
    PatternMap,
    forget,
    largest_sum,
    lookup,
    merge,
    pattern_map,
)

COLUMNS = "abc"
VALUES = range(3)


def as_map(known, top=0.0):
    """Write {pattern: number} with None for `*` as a map."""
    shapes = {}
    for pattern, value in known.items():
        shape = tuple(c for c, x in zip(COLUMNS, pattern, strict=True) if x is not None)
        shapes.setdefault(shape, []).append(([x for x in pattern if x is not None], value))
    parts = [
        (
            shape,
            np.array([c for c, _ in rows], dtype=np.int64).reshape(len(rows), len(shape)),
            np.array([v for _, v in rows], dtype=float),
        )
        for shape, rows in shapes.items()
    ]
    return pattern_map(top, parts)


def worth(known, row, top=0.0):
    matching = [
        value
        for pattern, value in known.items()
        if all(x is None or x == y for x, y in zip(pattern, row, strict=True))
    ]
    return max(matching, default=top)


def truth(maps):
    rows = itertools.product((*VALUES, 99), repeat=len(COLUMNS))
    return max(sum(worth(m, row) for m in maps) for row in rows)


def draw_map(draw):
    stars = [draw.random() < 0.5 for _ in COLUMNS]
    return {
        tuple(None if star else draw.choice(VALUES) for star in stars): float(draw.randint(1, 9))
        for _ in range(draw.randint(1, 4))
    }


def test_two_maps_are_summed_exactly():
    draw = random.Random(1)
    for _ in range(400):
        maps = [draw_map(draw), draw_map(draw)]
        assert largest_sum([as_map(m) for m in maps]) == truth(maps)


def test_more_maps_are_never_summed_too_low_and_mostly_exactly():
    draw = random.Random(2)
    exact = 0
    for _ in range(400):
        maps = [draw_map(draw) for _ in range(draw.randint(3, 4))]
        found, right = largest_sum([as_map(m) for m in maps]), truth(maps)
        assert found >= right
        exact += found == right
    assert exact > 300


def test_maps_of_one_shape_are_summed_exactly():
    draw = random.Random(3)
    for _ in range(100):
        maps = [
            {(draw.choice(VALUES), draw.choice(VALUES), None): float(draw.randint(1, 9)) for _ in "12345"}
            for _ in range(4)
        ]  # fmt: skip
        assert largest_sum([as_map(m) for m in maps]) == truth(maps)


def test_without_stars_a_sum_is_too_small():
    """papers.md, error 9: merged without TOP, patterns that meet no partner are lost."""
    one, two = {(0, None, None): 5.0}, {(1, None, None): 4.0}
    full = [as_map(one), as_map(two)]
    assert largest_sum(full) == 5.0
    bare = [PatternMap({s: p for s, p in m.parts.items() if s}) for m in full]
    assert all(len(p.values) == 0 for p in merge(*bare).parts.values())


def test_shapes_that_overlap_are_chosen_freely_whatever_patterns_there_are():
    """What is forgotten follows from the shapes: taking patterns away never raises the sum of the others."""
    draw = random.Random(8)
    for _ in range(150):
        maps = []
        for shape in ("ab", "ac", "bc"):
            maps.append(
                {
                    tuple(draw.choice(VALUES) if c in shape else None for c in COLUMNS): float(
                        draw.randint(1, 9)
                    )
                    for _ in range(4)
                }
            )
        whole = largest_sum([as_map(m) for m in maps])
        assert whole >= truth(maps)
        empty = {(9, 9, None): 0.0}, {(9, None, 9): 0.0}, {(None, 9, 9): 0.0}
        for place in range(3):
            fewer = [*maps]
            fewer[place] = empty[place]
            best = max(maps[place].values())
            assert whole - best <= largest_sum([as_map(m) for m in fewer]) <= whole


def test_the_pattern_of_stars_has_a_number_of_its_own():
    one, two = as_map({(0, None, None): 5.0}, top=2.0), as_map({(1, None, None): 4.0}, top=3.0)
    assert largest_sum([one, two]) == 8.0
    assert merge(one, two).top == 5.0


def test_leaving_hopeless_patterns_out_changes_nothing(monkeypatch):
    draw = random.Random(5)
    drawn = [[draw_map(draw) for _ in range(3)] for _ in range(60)]
    found = [largest_sum([as_map(m) for m in maps]) for maps in drawn]
    monkeypatch.setattr(patterns, "_promising", lambda maps: maps)
    assert found == [largest_sum([as_map(m) for m in maps]) for maps in drawn]


def test_forgetting_a_column_keeps_the_largest():
    known = forget(as_map({(0, 1, None): 2.0, (0, 2, None): 7.0, (1, 1, None): 3.0}), ["b"])
    ((shape, found),) = [(s, p) for s, p in known.parts.items() if s]
    assert shape == ("a",)
    assert dict(zip(found.codes[:, 0].tolist(), found.values.tolist(), strict=True)) == {0: 7, 1: 3}


def test_codes_are_shared_and_null_has_none():
    coder = Coder(plain=False)
    places, codes = coder.codes(["x", None, "y", "x"])
    assert (places.tolist(), codes.tolist()) == ([0, 2, 3], [0, 1, 0])
    assert coder.codes(["y", "z"])[1].tolist() == [1, 2]
    _, same = coder.codes([math.nan, float("nan")], lambda x: "nan" if x != x else x)
    assert same[0] == same[1]


def test_whole_numbers_stand_for_themselves():
    places, codes = Coder(plain=True).codes([-7, None, 2**40])
    assert (places.tolist(), codes.tolist()) == ([0, 2], [-7, 2**40])


@pytest.mark.parametrize("width", [0, 1, 2, 5])
def test_rows_are_looked_up(width):
    draw = random.Random(6)
    known = list({tuple(draw.randint(0, 3) for _ in range(width)) for _ in range(30)})
    wanted = [tuple(draw.randint(0, 3) for _ in range(width)) for _ in range(50)]
    rows, places = lookup(
        np.array(wanted, dtype=np.int64).reshape(50, width),
        np.array(known, dtype=np.int64).reshape(len(known), width),
    )
    found = dict(zip(rows.tolist(), places.tolist(), strict=True))
    for index, row in enumerate(wanted):
        assert (known[found[index]] == row) if row in known else (index not in found)


def test_codes_too_wide_for_one_number_are_told_apart():
    big = 2**62
    wanted = np.array([[big, big, 1], [big, 0, 1]], dtype=np.int64)
    known = np.array([[big, big, 1], [-big, big, 1]], dtype=np.int64)
    rows, places = lookup(wanted, known)
    assert rows.tolist() == [0]
    assert places.tolist() == [0]
