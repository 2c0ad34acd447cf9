"""Audits of releases with normal noise: one person who is in nine groups is hidden as the charge says, and no better.

Planted faults: too little noise is seen in the draws; the largest change for the length of all (l2 too small), the
scale of a pure epsilon, and a charge as if it were pure, on the exact curve. False alarms: 1e-9 an audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt
from pathlib import Path

import duckdb
import pytest
from judging import ALARM, draws, violation

import secant
from private_shop import Compiled, compile_release
from secant.engine import Connection
from secant.ledger.accounting import basic_composition
from secant.noise import laws
from secant.noise.events import ConcentratedEvent, PureEvent
from secant.noise.mechanisms.gaussian import normal_delta
from secant.noise.mechanisms.whole import WholeNormal
from secant.numeric.ball import lower, working_precision
from secant.release.inspection import unnoised
from secant.sensitivity.certificate import Certificate
from secant.stages.reserve import charges_of

GROUPS = 9
POLICY = f"""
[database]
source = "duckdb:visits.duckdb"

[tables.visits.columns]
day = {{ values = {list(range(GROUPS))}, null = false }}

[protections.people]
kind = "unit"
unit = "visits.person"
epsilon = 100
delta = 0.5
truncation = "fixed"
composition = "tight"
limits = {{ visits = {GROUPS}, groups = {GROUPS} }}
"""
QUERY = "SELECT day, count(DISTINCT person) FROM visits GROUP BY day"
EPSILON, DELTA = Fraction(2), Fraction(1, 1000)
COUNT = 1000


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Connection, Connection]]:
    """Give two neighbors: the second has one person more, who comes every day."""
    found = []
    for name, people in (("without", 20), ("with", 21)):
        place = tmp_path_factory.mktemp(name)
        _make(place, people)
        found.append(secant.connect(policy=place / "policy.toml"))
    yield found[0], found[1]
    for db in found:
        db.close()


def _make(place: Path, people: int) -> None:
    with duckdb.connect(str(place / "visits.duckdb")) as made:
        made.execute("CREATE TABLE visits (person BIGINT, day BIGINT)")
        made.execute(
            f"INSERT INTO visits SELECT p, d FROM range({people}) AS a(p), range({GROUPS}) AS b(d)"
        )
    (place / "policy.toml").write_text(POLICY, encoding="utf-8")


def compiled(sides: tuple[Connection, Connection]) -> list[Compiled]:
    return [compile_release(db, QUERY, epsilon=EPSILON, delta=DELTA) for db in sides]


def worst(jobs: list[Compiled], count: int) -> float:
    """Give by how much the sum of all groups, along which the two differ most, is certainly too telling.

    Both are measured once, and noise is put on what was measured: what follows it costs nothing.
    """

    def totals(job: Compiled) -> list[float]:
        shown, _ = unnoised(job.job, job.keys, job.backend)
        exact = [int(str(row[1])) for row in shown.rows]
        (noise,) = job.job.noise.noise.values()
        law = noise.law
        return [float(sum(law.add(exact))) for _ in range(count)]

    one, two = map(totals, jobs)
    pairs = ((one, two), (two, one))
    return max(violation(a, b, float(EPSILON), float(DELTA), alarm=ALARM / 2) for a, b in pairs)


def test_one_person_in_many_groups_is_hidden_as_charged(
    sides: tuple[Connection, Connection],
) -> None:
    jobs = compiled(sides)
    (noise,) = jobs[0].job.noise.noise.values()
    assert noise.share.rho
    assert noise.squared == GROUPS
    cost = jobs[0].job.noise.paid["people"]
    assert cost.price == (cost.normal[0], DELTA)
    assert 0 < EPSILON - cost.normal[0] < Fraction(1, 10**9)
    assert worst(jobs, draws(COUNT, 60 * COUNT)) <= 0
    assert [len(job.draw().rows) for job in jobs] == [GROUPS, GROUPS]


def really(job: Compiled, epsilon: Fraction) -> Fraction:
    """Give the exact δ of one person more in every group, by the curve of the noise that is added."""
    (noise,) = job.job.noise.noise.values()
    law = noise.law
    assert isinstance(law, WholeNormal)
    with working_precision(128):
        return lower(normal_delta(law.deviation / isqrt(GROUPS), epsilon))


def _largest_change(certificate: Certificate, column: str) -> Fraction:
    return Fraction(1)


def _pure_scale(epsilon: Fraction, delta: Fraction) -> Fraction:
    return 1 / epsilon


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [(Certificate, "squared", _largest_change), (laws, "multiplier", _pure_scale)],
    ids=["l2-too-small", "pure-scale"],
)
def test_a_planted_fault_is_caught(
    sides: tuple[Connection, Connection],
    monkeypatch: pytest.MonkeyPatch,
    where: object,
    name: str,
    wrong: Callable[..., Fraction],
) -> None:
    assert really(compiled(sides)[0], EPSILON) <= DELTA
    monkeypatch.setattr(where, name, wrong)
    assert really(compiled(sides)[0], EPSILON) > 10 * DELTA


def test_a_charge_as_if_it_were_pure_is_caught(sides: tuple[Connection, Connection]) -> None:
    """No epsilon alone describes normal noise: whatever is charged without a delta promises too much."""
    job = compiled(sides)[0]
    (charge,) = charges_of(job.job.noise)
    assert isinstance(charge.event, ConcentratedEvent)
    assert really(job, charge.event.epsilon) <= charge.event.delta
    wrong = PureEvent(charge.event.epsilon)
    assert basic_composition([wrong])[1] < really(job, wrong.epsilon)


def test_too_little_noise_is_caught(sides: tuple[Connection, Connection]) -> None:
    quiet = [job.with_noise_times(Fraction(1, 16)) for job in compiled(sides)]
    assert worst(quiet, COUNT) > 0
