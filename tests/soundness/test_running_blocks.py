"""Running sums by blocks (continual.batch): what noise is added to, on all neighbors of small databases."""

from __future__ import annotations

import random
from fractions import Fraction

import duckdb
import pytest

import secant
from secant.noise import running
from secant.noise.mechanisms.whole import WholeLaplace, WholeNormal
from secant.noise.secrecy import unseal
from secant.verifier.noise import normal_delta

STEPS = 60
POLICY = """
[database]
source = "duckdb:{file}"
[tables.visits.columns]
day = {{ range = [0, 59], step = 1, null = false }}
ward = {{ values = ["a", "b"] }}
cost = {{ range = [-3, 5], step = 1 }}
[protections.all]
"""
KINDS = {
    "rows": 'kind = "rows"\nepsilon = 1000\n',
    "people": 'kind = "unit"\nunit = "visits.person"\nepsilon = 1000\n'
    'truncation = "fixed"\nlimits = { visits = 6 }\n',
    "normal": 'kind = "rows"\nepsilon = 1000\ndelta = 1e-3\n',
}
COUNT = "SELECT day, sum(count(*)) OVER (ORDER BY day) AS n FROM visits GROUP BY day"
SUM = COUNT.replace("count(*)", "sum(cost)")
WARDS = (
    "SELECT ward, day, sum(count(*)) OVER (PARTITION BY ward ORDER BY day DESC) AS n "
    "FROM visits GROUP BY ward, day"
)
EPSILON = Fraction(1, 2)


class Seen:
    """What noise was added to, and with which law, instead of drawing."""

    def __init__(self, monkeypatch):
        self.calls: list[tuple[object, list[int]]] = []
        for kind in (WholeLaplace, WholeNormal):
            monkeypatch.setattr(kind, "add", self.add)
        # printed errors are not looked at here, and take longer than the rest
        monkeypatch.setattr(running, "weighted_error", lambda noises, level: 1.0)

    @property
    def add(self):
        def add(law, values):
            self.calls.append((law, list(unseal(values))))
            return list(unseal(values))

        return add


def asked(place, rows, kind, text, seen):
    file = place / "steps.duckdb"
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as db:
        db.execute("CREATE TABLE visits (person INTEGER, day INTEGER, ward TEXT, cost INTEGER)")
        values = ", ".join(map(str, [(-1, 0, "a", 0), *rows]))
        db.execute(f"INSERT INTO visits VALUES {values}")
    (place / "policy.toml").write_text(POLICY.format(file=file) + KINDS[kind])
    seen.calls = []
    with secant.connect(policy=place / "policy.toml", ledger=":memory:") as db:
        answer = db.sql(text, epsilon=str(float(EPSILON)))
    return answer, seen.calls


def losses(place, kind, text, seen, seed):
    """Give, of some neighbors, what each loses: epsilon of Laplace noise, rho of normal noise."""
    rng = random.Random(seed)
    rows = [
        (rng.randrange(3), rng.randrange(STEPS), rng.choice("ab"), rng.randint(-3, 5))
        for _ in range(30)
    ]
    _, whole = asked(place, rows, kind, text, seen)
    for person in range(3):
        gone = [row for row in rows if row[0] == person] if kind == "people" else [rows[person]]
        without = [row for row in rows if row not in gone]
        _, calls = asked(place, without, kind, text, seen)
        assert [law for law, _ in calls] == [law for law, _ in whole], "laws are public"
        epsilon = rho = Fraction(0)
        for (law, a), (_, b) in zip(whole, calls, strict=True):
            differ = [abs(x - y) for x, y in zip(a, b, strict=True)]
            if law.normal:
                rho += Fraction(sum(x * x for x in differ)) / (2 * law.deviation**2)
            else:
                epsilon += sum(differ) / law.scale
        yield epsilon, rho


@pytest.mark.parametrize(
    ("kind", "text"), [("rows", COUNT), ("rows", WARDS), ("people", SUM), ("people", WARDS)]
)
def test_no_neighbor_moves_blocks_by_more_than_is_paid_for(tmp_path, monkeypatch, kind, text):
    seen = Seen(monkeypatch)
    found = [epsilon for epsilon, _ in losses(tmp_path, kind, text, seen, seed=len(text))]
    assert 0 < max(found) <= EPSILON
    assert len(seen.calls[0][1]) > STEPS, "blocks were added up, not steps alone"
    if kind == "rows":
        assert max(found) == EPSILON, "one row reaches the bound"


def test_normal_noise_pays_for_all_levels(tmp_path, monkeypatch):
    """Every row is in all of 8 counts, so that normal noise is better."""
    counts = [
        f"sum(count(*) FILTER (WHERE cost > -{k})) OVER (ORDER BY day) AS n{k}"
        for k in range(4, 12)
    ]
    seen = Seen(monkeypatch)
    text = f"SELECT day, {', '.join(counts)} FROM visits GROUP BY day"
    epsilon, rho = next(losses(tmp_path, "normal", text, seen, seed=3))
    assert not epsilon
    assert 0 < normal_delta(rho, EPSILON) <= 1e-3
    assert all(law.normal and len(sums) > STEPS for law, sums in seen.calls)


def test_a_level_that_is_not_counted_would_be_noticed(tmp_path, monkeypatch):
    """Planted: noise for one level less than is released, as with the seed's ε/log₂ n."""
    honest = running.change_of_blocks

    def short(tree, size, squared):
        found = honest(tree, size, squared)
        return found[0] * (tree.levels - 1) / tree.levels, found[1]

    monkeypatch.setattr(running, "change_of_blocks", short)
    seen = Seen(monkeypatch)
    assert max(e for e, _ in losses(tmp_path, "rows", COUNT, seen, seed=1)) > EPSILON


def test_without_noise_running_sums_are_the_truth(tmp_path, monkeypatch):
    seen = Seen(monkeypatch)
    rows = [(i % 4, (i * 37) % STEPS, "ab"[i % 2], i % 5) for i in range(300)]
    answer, _ = asked(tmp_path, rows, "rows", COUNT, seen)
    days = [0, *(day for _, day, _, _ in rows)]
    assert dict(answer.rows) == {d: sum(x <= d for x in days) for d in range(STEPS)}
