"""What the owner sees of single units in a stream: exact, under its right name, and nothing is charged."""

import json

import pytest
from stream_clinic import ROWS, UNIT, stream

from secant.cli.program import main

SUMS = "SELECT day, count(*) AS n, sum(cost) AS c FROM visits GROUP BY day"


def shown(clinic, capsys, *words) -> tuple[int, str, str]:
    code = main(["inspect", "--stream", "s", "-p", str(clinic.folder / "policy.toml"), *words])
    out = capsys.readouterr()
    return code, out.out, out.err


def filled(clinic) -> None:
    """Nine patients with one visit each, one with ten, and a visit of nobody."""
    for patient in range(1, 10):
        clinic.add("2025-01-01", patient=patient, cost=-3)
    for day in range(1, 11):
        clinic.add(f"2025-01-{day:02}", patient=10, cost=7)
    clinic.execute("UPDATE visits SET patient = NULL WHERE id = 1")
    clinic.add("2024-12-31", patient=10, cost=7)  # before the start


def test_most_units_and_the_largest_beside_the_bound(clinic, capsys):
    filled(clinic)
    clinic.declare(UNIT, stream(SUMS, append_only=True))
    code, out, _ = shown(clinic, capsys, "--json", "--share", "0.8")
    assert code == 0
    count, cost = json.loads(out)["measures"]
    # of the nine patients eight add 1; costs are moved into 0 to 10
    assert (count["of"], count["quantile"], count["largest"], count["bound"]) == ("units", 1, 10, 2)
    assert (cost["quantile"], cost["largest"], cost["bound"]) == (0, 70, 20)
    assert not (clinic.folder / "policy.ledger").exists()


def test_it_has_its_right_name(clinic, capsys):
    filled(clinic)
    clinic.declare(ROWS, stream(SUMS))
    code, out, err = shown(clinic, capsys)
    assert code == 0
    assert "no differential privacy" in out
    assert "OWNER ONLY" in err
    assert "the largest row adds 7" in out


@pytest.mark.parametrize("words", [["--share", "1"], ["--share", "much"], ["SELECT 1"]])
def test_bad_input(clinic, capsys, words):
    clinic.declare(ROWS, stream(SUMS))
    code, _, err = shown(clinic, capsys, *words)
    assert code
    assert "USE-0" in err
