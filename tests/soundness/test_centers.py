"""Sums about a center (truncation.center): all neighbors of small databases, step by step, and the law of the choice.

One unit less moves every score by half at most, one count of the tally by one, and what is cut down by its limit, given
whatever was drawn before. All that the steps take adds up to what is charged, on every branch.
"""

import itertools
from collections import Counter
from fractions import Fraction

import pytest
from laws_of_draws import worst_ratio

import secant
from secant.noise import centered as centered_noise
from secant.noise.centered import CenterToChoose, points_around
from secant.noise.choosing import _clipped
from secant.noise.mechanisms import centers
from secant.noise.mechanisms import limits as limit_choices
from secant.noise.mechanisms.centers import choose_cell
from secant.noise.secrecy import unseal
from secant.noise.tail import UsualLimit
from secant.release import centered as centered_reading
from secant.sensitivity.certificate import Centering, ClippedContribution, Contributions
from secant.sensitivity.truncation import centering
from secant.sensitivity.truncation.clipping import cut_down

CELLS = 5


def counted(units):
    """Give how many units lie in each cell: what the engine's buckets say."""
    return dict(Counter(units))


def scores(units):
    """Give the score of every cell."""
    found = []
    for _, count, far in centers._far(CELLS, counted(units)):
        found += [far] * count
    return found


def worst_move(score):
    """Give the largest move of any score over all small databases and all their neighbors."""
    worst = Fraction(0)
    for size in range(1, 5):
        for units in itertools.product(range(CELLS), repeat=size):
            whole = score(units)
            assert len(whole) == CELLS
            for left_out in range(size):
                less = score(units[:left_out] + units[left_out + 1 :])
                worst = max(worst, *(abs(a - b) for a, b in zip(whole, less, strict=True)))
    return worst


def test_one_unit_less_moves_every_score_by_half():
    assert worst_move(scores) == centers.MOVES


def test_counting_a_unit_twice_would_be_noticed():
    """A planted fault: every row is a vote, and a unit has two."""
    assert worst_move(lambda units: scores(units * 2)) > centers.MOVES


def proven(epsilon, draws=40_000):
    """Give the loss that draws of a cell from a database and from a neighbor prove."""
    units = (0, 0, 0, 4, 4, 4)
    one, other = (
        Counter(choose_cell(CELLS, counted(x), epsilon) for _ in range(draws))
        for x in (units, units[1:])
    )
    return max(worst_ratio(one, other, draws), worst_ratio(other, one, draws))


def test_the_choice_is_as_private_as_it_says():
    assert proven(Fraction(1)) <= 1


def test_a_sharper_choice_would_be_noticed(monkeypatch):
    """A planted fault: scores are taken to move by a tenth, and the audit above has teeth."""
    monkeypatch.setattr(centers, "MOVES", Fraction(1, 10))
    assert proven(Fraction(1)) > 1


# ── whole releases ───────────────────────────────────────────────────────────────────────────────

ROWS = (
    ("a", 1, 10),
    ("a", 2, 30),
    ("a", 1, 20),
    ("b", 1, 40),
    ("b", 2, 0),
    ("c", 2, 5),
    ("d", 1, None),
)
POLICY = {
    "tables": {
        "t": {"columns": {"g": {"values": [1, 2]}, "x": {"range": [0, 100], "step": 1}}},
    },
    "protections": {"people": {"kind": "unit", "unit": "t.u", "epsilon": 10**6}},
}
ALONE = "SELECT avg(x) FROM t"
GROUPED = "SELECT g, avg(x) FROM t GROUP BY g"


def table(rows):
    """Give rows as a frame."""
    import pyarrow as pa

    names = {"u": pa.string(), "g": pa.int64(), "x": pa.int64()}
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            name: pa.array(values, kind)
            for (name, kind), values in zip(names.items(), columns, strict=True)
        }
    )


class Watched:
    """What the steps of one release saw, and what they took."""

    def __init__(self, monkeypatch, cells, limit):
        self.placed, self.tallies, self.cut, self.taken = [], [], [], []
        self.cells = list(cells)
        monkeypatch.setattr(centered_noise, "choose_cell", self.choose)
        monkeypatch.setattr(limit_choices, "add_discrete_laplace", self.tally)
        chosen = UsualLimit(limit, ())
        monkeypatch.setattr("secant.noise.limited.usual_limit", lambda *a, **k: chosen)
        original = centered_reading.read_about

        def read(noise, center, groups, run):
            noise, rows = original(noise, center, groups, run)
            self.cut.append((noise.limit, noise.fine, sorted(rows)))
            self.noise = noise
            return noise, rows

        monkeypatch.setattr("secant.release.measured.read_about", read)

    def choose(self, cells, units, epsilon):
        """Note where units lie, and give a cell that the test names."""
        self.placed.append(dict(unseal(units)))
        self.taken.append(epsilon)
        return self.cells[len(self.placed) - 1] % cells

    def tally(self, counts, *, scale):
        """Note the counts, and add nothing."""
        self.tallies.append(list(counts))
        self.taken.append(1 / scale)
        return list(counts)


def released(monkeypatch, text, rows, cells, limit=0):
    """Release once, the private choices named beforehand: what is read after them shows how it depends on a unit."""
    with monkeypatch.context() as patch:
        watched = Watched(patch, cells, limit)
        # The first look moves the center by a noisy number: the same one for both databases.
        patch.setattr(CenterToChoose, "moved", lambda self, center, *_: center)
        with secant.connect({"t": table(rows)}, policy=POLICY, ledger=None) as db:
            db.sql(text, epsilon=1)
    return watched


def moved(one, other):
    """Give how far two lists of rows with keys differ in their numbers, all keys together."""
    first, second = ({row[:-1]: int(row[-1] or 0) for row in rows} for rows in (one, other))
    return sum(abs(first.get(k, 0) - second.get(k, 0)) for k in first.keys() | second.keys())


@pytest.mark.parametrize("text", [ALONE, GROUPED])
@pytest.mark.parametrize(("cells", "limit"), [((3, 40), 0), ((60, 20), 2), ((100, 90), 5)])
def test_one_unit_less_moves_each_step_as_little_as_it_says(monkeypatch, text, cells, limit):
    whole = released(monkeypatch, text, ROWS, cells, limit)
    for unit in "abcd":
        rest = [r for r in ROWS if r[0] != unit]
        less = released(monkeypatch, text, rest, cells, limit)
        for one, other in zip(whole.placed, less.placed, strict=True):
            assert sum(abs(one.get(k, 0) - other.get(k, 0)) for k in one | other) <= 1
        for one, other in zip(whole.tallies, less.tallies, strict=True):
            assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) <= 1
        ((most, fine, one),), ((same, _, other),) = whole.cut, less.cut
        assert most == same
        assert moved(one, other) <= most * fine


def test_a_sum_that_is_not_cut_down_would_be_noticed(monkeypatch):
    """A planted fault: what lies beyond the center is cut down to far more than the limit."""
    monkeypatch.setattr(
        centering, "cut_down", lambda a, limits: cut_down(a, {c: 64 * x for c, x in limits.items()})
    )
    whole, less = (released(monkeypatch, GROUPED, rows, (3, 40), 0) for rows in (ROWS, ROWS[3:]))
    ((limit, fine, one),), ((_, _, other),) = whole.cut, less.cut
    assert moved(one, other) > limit * fine


@pytest.mark.parametrize("text", [ALONE, GROUPED])
def test_what_the_steps_take_is_what_is_charged(monkeypatch, text):
    watched = released(monkeypatch, text, ROWS, (3, 40))
    noise = watched.noise
    choosing = noise.choosing
    assert noise.law.size * noise.share.epsilon == noise.limit
    assert choosing + noise.share.epsilon <= noise.epsilon
    assert len(watched.placed) == 2


def steps(share):
    """Give what each step about a center takes of a share."""
    noise = to_center(share)
    look = noise.first_look()
    return noise, [
        *(noise.placing / 2,) * 2,
        look.choosing + look.share.epsilon,
        noise.tallying,
        noise.share.epsilon,
    ]


def to_center(share):
    """Give the noise of an average that is yet to be centered."""
    nothing = Contributions(None, lambda chosen: None)
    places = Centering("n", -100, 100, 0, lambda p: None, lambda c: nothing, lambda c: nothing)
    octaves = tuple(2**k for k in range(12))
    bound = ClippedContribution(nothing, octaves, octaves=True, partners=("s",), centering=places)
    return _clipped(bound, share)


def test_the_steps_take_the_whole_share_and_no_more():
    noise, parts = steps(Fraction(7, 10))
    assert isinstance(noise, CenterToChoose)
    assert sum(parts) == noise.epsilon == Fraction(7, 10)


def test_a_first_look_for_nothing_would_be_noticed(monkeypatch):
    """A planted fault: what the first look takes is left out of the sum."""
    monkeypatch.setattr(
        CenterToChoose, "tallying", property(lambda self: self.choosing - self.placing)
    )
    noise, parts = steps(Fraction(7, 10))
    assert sum(parts) > noise.epsilon


def test_points_lie_inside_and_ascend():
    places = to_center(Fraction(1)).centering
    for around in (-100, 0, 37, 100):
        points = points_around(places, around)
        assert list(points) == sorted(set(points))
        assert all(-100 < p < 100 for p in points)
