"""An audit finds neighbors that reach a bound, and refutes one that is too small; it reads none of the owner's rows."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import secant
from secant.audit import Found, audit
from secant.cli.demo_data import make_clinic
from secant.cli.program import main
from secant.errors import Refused, UsageError
from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import transform
from secant.release import print as printing
from secant.sensitivity.bounds import GlobalBound
from secant.sensitivity.stability import analysis

BY_WARD = "SELECT ward, count(*) AS n FROM visits GROUP BY ward"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    _, made = make_clinic(tmp_path_factory.mktemp("clinic"))
    made.write_text(made.read_text().replace("visits = 6 ", "visits = 2 "))
    return made


def search(policy: Path, text: str, **options: Any) -> Found:
    with secant.connect(policy=policy) as database:
        return audit(database, text, seed=1, **{"databases": 24, "seconds": 600, **options})


@pytest.mark.parametrize(
    "text",
    [
        BY_WARD,
        "SELECT count(*) AS n FROM patients WHERE age >= 65",
        "SELECT count(DISTINCT patient_id) AS n FROM visits",
        "SELECT age, count(*) AS n FROM patients GROUP BY age",
    ],
)
def test_a_bound_is_reached_and_not_passed(policy: Path, text: str) -> None:
    found = search(policy, text)
    assert found.refuted == []
    assert max(w.ratio for w in found.worst.values()) == 1
    assert found.pairs > 10


def test_what_is_read_of_order_statistics_and_stages_is_compared(policy: Path) -> None:
    found = search(policy, "SELECT median(cost) AS m FROM visits", databases=6)
    assert {c.what for c in found.worst} <= {"ranks", "limit", "length", "units"}
    assert found.worst
    assert found.refuted == []
    staged = "SELECT count(*) AS n FROM visits WHERE cost > (SELECT avg(cost) FROM visits)"
    assert search(policy, staged, databases=6).refuted == []


def test_joins_under_rows_have_bounds_that_hold_on_both_sides(policy: Path) -> None:
    text = policy.read_text().split("[protections")[0]
    rows = policy.with_name("rows.toml")
    rows.write_text(
        f'{text}[protections.one]\nkind = "rows"\ntables = ["visits", "patients"]\nepsilon = 4\n'
    )
    joined = "SELECT count(*) AS n FROM visits JOIN patients USING (patient_id)"
    found = search(rows, joined, databases=10)
    assert {c.what for c in found.worst} == {"smooth", "smoothness"}
    assert found.refuted == []


def _halved(monkeypatch: pytest.MonkeyPatch) -> None:
    original = analysis._certificate

    def wrong(*arguments: Any, **options: Any) -> Any:
        made = original(*arguments, **options)
        bounds = {c: GlobalBound(b.value / 2) for c, b in made.bounds.items()}
        return replace(made, bounds=bounds, squares={})

    monkeypatch.setattr(analysis, "_certificate", wrong)


def _unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement is printed without the limit that the bound rests on."""
    original = printing.lower

    def wrong(relation: n.Relation, dialect: Any) -> str:
        drop = lambda node: node.input if isinstance(node, n.Truncate) else node  # noqa: E731
        return original(transform(relation, drop), dialect)

    monkeypatch.setattr(printing, "lower", wrong)


@pytest.mark.parametrize("fault", [_halved, _unlimited])
def test_a_bound_that_is_too_small_is_refuted(
    policy: Path, monkeypatch: pytest.MonkeyPatch, fault: Any
) -> None:
    fault(monkeypatch)
    found = search(policy, BY_WARD)
    assert found.refuted
    worst = found.worst[found.refuted[0]]
    assert worst.ratio > 1
    assert worst.before != worst.after
    assert isinstance(worst.found, Fraction)


def test_no_row_of_the_owner_is_read(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with secant.connect(policy=policy) as database:
        catalog = database.catalog
        monkeypatch.setattr(type(database._backend), "session", None)
        assert audit(database, BY_WARD, databases=3, seed=1).databases == 3
        assert database.catalog == catalog
        assert not database.has_ledger


def test_the_command_prints_ratios(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", BY_WARD, "--databases", "5", "--seed", "1", "-p", str(policy)]) == 0
    out = capsys.readouterr().out
    assert "certified" in out
    assert "5 databases drawn" in out
    assert main(["audit", BY_WARD, "--databases", "5", "-p", str(policy), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["databases"] == 5
    assert {"protection", "measure", "claim", "certified", "found", "ratio"} == set(
        told["claims"][0]
    )


def test_what_cannot_be_audited_says_why(policy: Path) -> None:
    with pytest.raises(UsageError):
        search(policy, "SELECT count(*) AS n FROM wards")
    with pytest.raises(Refused):
        search(policy, "SELECT patient_id FROM visits")
    with pytest.raises(UsageError):
        search(policy, BY_WARD, databases=0)
