"""A release is verified by its records, and every fault that is planted in them is seen."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import secant
from secant.cli.demo_data import make_clinic
from secant.cli.program import main
from secant.errors import UsageError
from secant.evidence import KINDS
from secant.verifier import Verdict, verify

AVERAGE = "SELECT ward, avg(cost) AS cost FROM visits GROUP BY ward"
BY_DAY = "SELECT day, count(*) AS n FROM visits GROUP BY day"
CHOSEN = "SELECT age, count(DISTINCT patient_id) AS n FROM patients GROUP BY age"
OPEN_KEYS = "SELECT visit_id % 3000 AS k, count(*) AS n FROM visits GROUP BY 1"
MEDIAN = "SELECT median(cost) AS m FROM visits"
LARGEST = "SELECT max(cost) AS m FROM visits"
SUM = "SELECT sum(cost) AS s FROM visits"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clinic with much budget, and four releases."""
    folder = tmp_path_factory.mktemp("clinic")
    _, policy = make_clinic(folder)
    wide = policy.read_text().replace("epsilon = 4.0", "epsilon = 400.0")
    policy.write_text(wide.replace("delta = 1e-6", "delta = 1e-3"))
    with secant.connect(policy=policy, create=True) as database:
        for text in (AVERAGE, BY_DAY, OPEN_KEYS, MEDIAN):
            database.sql(text, epsilon=1)
        database.sql("SELECT count(*) AS n FROM patients WHERE age > ?", parameters=[65], epsilon=1)
        database.sql(LARGEST, epsilon=1)
        database.sql(SUM, epsilon=1)
    return policy


def evidence_of(policy: Path, place: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give the record of a release, and its documents, read."""
    with secant.connect(policy=policy) as database:
        records = [r.fields for r in database.ledger.records() if r.fields["kind"] == "reserve"]
        record = records[place]
        bodies = {kind: database.ledger.paper(record["papers"][kind]) for kind in KINDS}
    return record, {kind: json.loads(text or "null") for kind, text in bodies.items()}


def judged(record: dict[str, Any], documents: dict[str, Any]) -> Verdict:
    """Verify documents as if they had been written like this in the first place: their digests fit."""
    bodies = {k: json.dumps(d, sort_keys=True, separators=(",", ":")) for k, d in documents.items()}
    papers = {k: sha256(text.encode()).hexdigest() for k, text in bodies.items()}
    return verify({**record, "papers": {**record["papers"], **papers}}, bodies)


@pytest.mark.parametrize("place", range(7))
def test_releases_of_the_clinic_are_verified(clinic: Path, place: int) -> None:
    record, documents = evidence_of(clinic, place)
    verdict = judged(record, documents)
    assert (verdict.outcome, len(verdict.points)) == ("verified", 6), verdict.points


def _bounds(documents: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = documents["certificate"]["releases"][0]["certificates"][0]["bounds"]
    return found


def _halve_bound(record: dict[str, Any], documents: dict[str, Any]) -> None:
    for bound in _bounds(documents).values():
        bound["value"] = str(Fraction(bound["value"]) / 2)


def _halve_bound_and_step(record: dict[str, Any], documents: dict[str, Any]) -> None:
    _halve_bound(record, documents)
    for step in documents["certificate"]["steps"]:
        if step["rule"] in ("stability.sum", "stability.count"):
            step["bound"] = str(Fraction(step["bound"]) / 2)


def _halve_everything(record: dict[str, Any], documents: dict[str, Any]) -> None:
    _halve_bound_and_step(record, documents)
    for step in documents["certificate"]["steps"]:
        if step["rule"] == "stability.truncate":
            step["bound"] = "3"


def _drop_step(record: dict[str, Any], documents: dict[str, Any]) -> None:
    for step in documents["certificate"]["steps"]:
        if step["rule"] == "stability.truncate":
            step["premises"] = []


def _skip_step(record: dict[str, Any], documents: dict[str, Any]) -> None:
    steps = documents["certificate"]["steps"]
    truncate = next(i for i, s in enumerate(steps) if s["rule"] == "stability.truncate")
    for step in steps:
        step["premises"] = [
            steps[truncate]["premises"][0] if p == truncate else p for p in step["premises"]
        ]


def _no_step_for_a_measure(record: dict[str, Any], documents: dict[str, Any]) -> None:
    documents["certificate"]["releases"][0]["certificates"][0]["derivation"].pop()


def _circle(record: dict[str, Any], documents: dict[str, Any]) -> None:
    documents["certificate"]["steps"][1]["premises"] = [1]


def _measures(documents: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = documents["certificate"]["releases"][0]["measures"]
    return found


def _small_noise(record: dict[str, Any], documents: dict[str, Any]) -> None:
    for measure in _measures(documents).values():
        measure["noise"]["size"] = str(Fraction(measure["noise"]["size"]) * Fraction(99, 100))


def _no_noise(record: dict[str, Any], documents: dict[str, Any]) -> None:
    next(iter(_measures(documents).values()))["noise"] = {"kind": "none"}


def _small_charge(record: dict[str, Any], documents: dict[str, Any]) -> None:
    record["charges"][0]["epsilon"] -= 1


def _small_event(record: dict[str, Any], documents: dict[str, Any]) -> None:
    record["charges"][0]["event"]["epsilon"] = "9/10"


def _no_charge(record: dict[str, Any], documents: dict[str, Any]) -> None:
    record["charges"] = []


def _wide_clamp(record: dict[str, Any], documents: dict[str, Any]) -> None:
    for kind, fields in documents["certificate"]["nodes"]:
        if kind == "Literal" and fields["value"] == {"decimal": "1500.00"}:
            fields["value"] = {"decimal": "2500.00"}


def _more_rows(record: dict[str, Any], documents: dict[str, Any]) -> None:
    for kind, fields in documents["certificate"]["nodes"]:
        if kind == "Truncate":
            fields["limit"] = 7


def _other_owner(record: dict[str, Any], documents: dict[str, Any]) -> None:
    for kind, fields in documents["certificate"]["nodes"]:
        if kind == "Truncate":
            fields["owner"] = ["visits.visit_id"]


def _raw_afterwards(record: dict[str, Any], documents: dict[str, Any]) -> None:
    nodes = documents["certificate"]["nodes"]
    documents["certificate"]["after"] = next(i for i, n in enumerate(nodes) if n[0] == "Scan")


def _lost_protection(record: dict[str, Any], documents: dict[str, Any]) -> None:
    documents["policy"]["protections"].append(
        {**documents["policy"]["protections"][0], "name": "b"}
    )


FAULTS: tuple[tuple[str, Callable[[dict[str, Any], dict[str, Any]], None]], ...] = (
    ("a bound is halved", _halve_bound),
    ("a bound is halved, and its step with it", _halve_bound_and_step),
    ("a bound is halved, and all steps with it", _halve_everything),
    ("a step lost what it rests on", _drop_step),
    ("a step is left out", _skip_step),
    ("a measure has no step", _no_step_for_a_measure),
    ("a step rests on itself", _circle),
    ("the noise is a hundredth too small", _small_noise),
    ("there is no noise", _no_noise),
    ("the charge is a nano-epsilon too small", _small_charge),
    ("the event says less", _small_event),
    ("nothing was charged", _no_charge),
    ("the clamp is wider than the bound", _wide_clamp),
    ("more rows are kept than are counted", _more_rows),
    ("rows are limited by another column", _other_owner),
    ("rows are shown afterwards", _raw_afterwards),
    ("a protection has no certificate", _lost_protection),
)


@pytest.mark.parametrize("fault", [f for _, f in FAULTS], ids=[name for name, _ in FAULTS])
def test_a_fault_in_the_records_is_seen(
    clinic: Path, fault: Callable[[dict[str, Any], dict[str, Any]], None]
) -> None:
    record, documents = copy.deepcopy(evidence_of(clinic, 0))
    fault(record, documents)
    verdict = judged(record, documents)
    if fault is _other_owner:  # beyond the verifier, and so not verified
        assert verdict.outcome in ("wrong", "not verified")
    else:
        assert verdict.outcome == "wrong", verdict.points


def test_a_threshold_that_is_too_low_is_seen(clinic: Path) -> None:
    record, documents = evidence_of(clinic, 2)
    documents["certificate"]["releases"][0]["choice"]["threshold"] -= 1
    assert judged(record, documents).outcome == "wrong"


def test_a_sharper_choice_among_points_is_seen(clinic: Path) -> None:
    record, documents = evidence_of(clinic, 3)
    (ranked,) = documents["certificate"]["releases"][0]["ranked"].values()
    ranked["noise"]["sharpness"] = str(2 * Fraction(ranked["noise"]["sharpness"]))
    assert judged(record, documents).outcome == "wrong"


def test_rows_that_stand_for_no_single_unit_are_seen(clinic: Path) -> None:
    """An extreme counts one row of each patient; grouped by something else it would count several."""
    record, documents = evidence_of(clinic, 5)
    assert judged(record, documents).outcome == "verified"
    nodes = documents["certificate"]["nodes"]
    (units,) = [
        fields
        for kind, fields in nodes
        if kind == "Aggregate"
        and [nodes[x["node"]][1]["function"] for x in fields["aggregations"]] == ["max"]
    ]
    key = nodes[units["keys"][0]["node"]][1]
    assert nodes[key["expression"]["node"]][1]["name"] == "visits.patient_id"
    others = (
        at
        for at, (kind, fields) in enumerate(nodes)
        if kind == "Column" and fields["name"].endswith(".value0")
    )
    key["expression"] = {"node": next(others)}
    assert judged(record, documents).outcome in ("wrong", "not verified")


def test_normal_noise_that_is_too_small_is_seen(clinic: Path) -> None:
    record, documents = evidence_of(clinic, 2)
    noise = next(iter(_measures(documents).values()))["noise"]
    assert noise["law"] in ("normal", "laplace")
    noise["size"] = str(Fraction(noise["size"]) * Fraction(98, 100))
    assert judged(record, documents).outcome == "wrong"


def test_a_rule_that_is_not_known_is_not_verified(clinic: Path) -> None:
    record, documents = evidence_of(clinic, 0)
    for step in documents["certificate"]["steps"]:
        if step["rule"] == "stability.project":
            step["rule"] = "stability.something_new"
    verdict = judged(record, documents)
    assert verdict.outcome == "not verified"
    assert any("stability.something_new" in p.words for p in verdict.points)


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_that_was_changed_is_seen(clinic: Path, kind: str) -> None:
    record, documents = evidence_of(clinic, 0)
    bodies = {k: json.dumps(d, sort_keys=True, separators=(",", ":")) for k, d in documents.items()}
    assert verify(record, bodies).outcome == "verified"
    assert verify(record, {**bodies, kind: bodies[kind] + " "}).outcome == "wrong"
    del bodies[kind]
    assert verify(record, bodies).outcome == "not verified"


def test_a_release_without_papers_is_not_verified() -> None:
    assert verify({"charges": []}, {}).outcome == "not verified"


def test_what_does_not_fit_together_is_wrong(clinic: Path) -> None:
    record, documents = evidence_of(clinic, 0)
    documents["certificate"]["nodes"] = documents["certificate"]["nodes"][:3]
    assert judged(record, documents).outcome == "wrong"


def test_the_command_says_what_it_checked(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with secant.connect(policy=clinic) as database:
        name = database.ledger.history()[0].release_id
        told = database.verify(name)
    assert told.outcome == "verified"
    assert {p.about for p in told.points} >= {"chain", "records", "plan", "policy"}
    assert main(["verify", name[:8], "--policy", str(clinic)]) == 0
    assert "Verified" in capsys.readouterr().out
    assert main(["verify", name, "--policy", str(clinic), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "verified"
    assert (
        main(["verify", "feed" * 8, "--policy", str(clinic)])
        == UsageError("USE-001", "").exit_status
    )


def test_a_question_with_parameters_is_planned_again(clinic: Path) -> None:
    with secant.connect(policy=clinic) as database:
        found = database.verify(database.ledger.history()[4].release_id)
    assert [p.outcome for p in found.points if p.about == "plan"] == ["holds"]


def test_the_verifier_stands_alone() -> None:
    """It imports nothing of Secant but itself."""
    code = (
        "import sys, importlib.util, pathlib\n"
        "import secant.verifier\n"
        "print(sorted(m for m in sys.modules if m.startswith('secant.') and not m.startswith('secant.verifier')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
