"""Streams, statistics and black boxes leave papers, too: they are verified or said not to be, and faults are seen."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secant
from private_shop import make_shop, open_shop
from secant import blackbox, stats
from secant.cli.demo_data import make_clinic
from secant.evidence import KINDS
from secant.verifier import Verdict, verify

STREAMS = """
[streams.visits]
query = "SELECT day, count(*) AS n FROM visits GROUP BY day"
step = "1 day"
start = 2025-01-01
steps = 64
epsilon = 1
append_only = true

[streams.costs]
query = "SELECT day, ward, sum(cost) AS cost, avg(cost) AS mean FROM visits GROUP BY day, ward"
step = "1 month"
start = 2025-01-01
epsilon = 1
append_only = true

[streams.smooth]
query = "SELECT day, count(*) AS n FROM visits GROUP BY day"
step = "1 day"
start = 2025-01-01
steps = 2000
epsilon = 1
delta = 1e-4
append_only = true
"""
VALUES = [float(x % 100) for x in range(1000)]


def _mean(rows: Any) -> float:
    return float(np.mean(rows))


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, Any], Any]]:
    """Name of a release -> its record, and its documents, read."""
    folder = tmp_path_factory.mktemp("clinic")
    _, policy = make_clinic(folder)
    text = policy.read_text().replace(
        "epsilon = 4.0", 'epsilon = 400.0\ngamma = 0.5\ncomposition = "basic"'
    )
    text = text.replace("delta = 1e-6", "delta = 1e-3")
    policy.write_text(f'accept = ["{blackbox.ACCEPTED}"]\n{text}{STREAMS}')
    names = []
    with secant.connect(policy=policy, create=True) as database:
        for stream in ("visits", "costs", "smooth"):
            database.stream(stream, until="2025-01-04")
            names.append(stream)
        budget = database.protection("patients")
        asked: dict[str, Callable[..., object]] = {
            "count": stats.count,
            "sum": stats.sum,
            "median": stats.median,
            "maximum": stats.maximum,
            "histogram": stats.histogram,
        }
        for name, function in asked.items():
            more = {"count": {}, "histogram": {"edges": [0, 50, 100]}}.get(
                name, {"bounds": (0, 100)}
            )
            function(VALUES, epsilon=1, budget=budget, **more)
            names.append(name)
        stats.covariance(
            [[x, 1.0] for x in VALUES], epsilon=1, bounds=[(0, 100), (0, 2)], budget=budget
        )
        stats.variance(VALUES, epsilon=1, bounds=(0, 100), budget=budget)
        stats.median(VALUES, epsilon=1, bounds=(0, 100), mechanism="smooth", budget=budget)
        data = np.random.default_rng(1).exponential(size=50)
        for method, confidence in (("exchangeability", None), ("binomial", 0.99), ("dkw", None)):
            blackbox.release(
                _mean, data, blackbox.exponential(1.0), epsilon=1, gamma=0.1, method=method,
                confidence=confidence, budget=budget, workers=0,
            )  # fmt: skip
        names += ["covariance", "variance", "smooth median", "exchangeability", "binomial", "dkw"]
        records = [r.fields for r in database.ledger.records() if r.fields["kind"] == "reserve"]
        found = {}
        for name, record in zip(names, records, strict=True):
            bodies = {kind: database.ledger.paper(record["papers"][kind]) for kind in KINDS}
            found[name] = (
                record,
                {kind: json.loads(text or "null") for kind, text in bodies.items()},
            )
            told = database.verify(record["release"])
            assert told.outcome in ("verified", "not verified"), told.points
    return found


def judged(record: dict[str, Any], documents: dict[str, Any]) -> Verdict:
    """Verify documents as if they had been written like this in the first place."""
    bodies = {k: json.dumps(d, sort_keys=True, separators=(",", ":")) for k, d in documents.items()}
    papers = {k: sha256(text.encode()).hexdigest() for k, text in bodies.items()}
    return verify({**record, "papers": {**record["papers"], **papers}}, bodies)


VERIFIED = (
    "visits", "costs", "smooth", "count", "sum", "median", "maximum", "histogram", "covariance",
    "exchangeability", "binomial", "dkw",
)  # fmt: skip


@pytest.mark.parametrize("name", VERIFIED)
def test_it_is_verified(released: Any, name: str) -> None:
    verdict = judged(*released[name])
    assert verdict.outcome == "verified", verdict.points


@pytest.mark.parametrize("name", ["variance", "smooth median"])
def test_what_the_verifier_does_not_know_is_said(released: Any, name: str) -> None:
    verdict = judged(*released[name])
    assert verdict.outcome == "not verified"
    assert [p.about for p in verdict.points if p.outcome == "not known"] == ["noise"]


@pytest.mark.parametrize("name", VERIFIED)
@pytest.mark.parametrize("kind", KINDS)
def test_an_altered_digest_is_seen(released: Any, name: str, kind: str) -> None:
    record, documents = released[name]
    bodies = {k: json.dumps(d, sort_keys=True, separators=(",", ":")) for k, d in documents.items()}
    papers = {**record["papers"], kind: "0" * 64}
    assert verify({**record, "papers": papers}, bodies).outcome == "wrong"


def _noises(document: dict[str, Any]) -> list[dict[str, Any]]:
    certificate = document["certificate"]
    if "releases" not in certificate:
        return [certificate["noise"]]
    noises = [m["noise"] for r in certificate["releases"] for m in r["measures"].values()]
    return [part for noise in noises for part in noise["parts"]]


@pytest.mark.parametrize("name", VERIFIED)
def test_noise_that_is_too_small_is_seen(released: Any, name: str) -> None:
    record, documents = copy.deepcopy(released[name])
    for noise in _noises(documents):
        if "size" in noise:
            noise["size"] = str(Fraction(noise["size"]) * Fraction(98, 100))
        else:
            noise["sharpness"] = str(Fraction(noise["sharpness"]) * Fraction(102, 100))
    assert judged(record, documents).outcome == "wrong"


@pytest.mark.parametrize("name", VERIFIED)
def test_a_charge_that_is_too_small_is_seen(released: Any, name: str) -> None:
    record, documents = copy.deepcopy(released[name])
    record["charges"][0]["epsilon"] -= 1
    assert judged(record, documents).outcome == "wrong"


@pytest.mark.parametrize("name", ["visits", "costs", "smooth"])
def test_a_lowered_bound_of_a_stream_is_seen(released: Any, name: str) -> None:
    record, documents = copy.deepcopy(released[name])
    for certificate in documents["certificate"]["releases"][0]["certificates"]:
        for bound in certificate["bounds"].values():
            bound["value"] = str(Fraction(bound["value"]) / 2)
    assert judged(record, documents).outcome == "wrong"


@pytest.mark.parametrize("name", ["visits", "smooth"])
def test_a_swapped_rule_of_a_stream_is_seen(released: Any, name: str) -> None:
    record, documents = copy.deepcopy(released[name])
    for step in documents["certificate"]["steps"]:
        step["rule"] = {"stability.truncate": "stability.filter"}.get(step["rule"], step["rule"])
    assert judged(record, documents).outcome == "wrong"


def test_normal_noise_of_an_encoder_is_among_them(released: Any) -> None:
    _, documents = released["smooth"]
    assert {part["design"] for part in _noises(documents)} == {"encoder"}


def test_the_weights_of_an_encoder_are_those_of_the_product() -> None:
    from secant.noise.continual.encoder import Encoder, coefficients
    from secant.noise.continual.records import Change
    from secant.verifier.streams import _weights

    for length, often in ((1, 1), (10, 3), (500, 6), (2000, 40)):
        used = coefficients(length, 1024)
        assert _weights(length, 1024, 1) == sum(c * c for c in used)
        moved = Change(often, often, 1, often)
        assert _weights(length, 1024, often) * often == Encoder(length).least_squared(moved)


def test_more_levels_than_the_noise_is_for_are_seen(released: Any) -> None:
    record, documents = copy.deepcopy(released["visits"])
    for part in _noises(documents):
        part["levels"] = part.get("levels", 1) + 1
    assert judged(record, documents).outcome == "wrong"


@pytest.mark.parametrize(
    ("name", "fact", "value"),
    [
        ("sum", "high", {"fraction": "200"}),
        ("median", "q", {"fraction": "1/3"}),
        ("covariance", "columns", 3),
        ("exchangeability", "order", 3),
        ("binomial", "order", 3),
        ("dkw", "order", 3),
        ("exchangeability", "sensitivity", {"fraction": "1000"}),
        ("binomial", "missed", {"fraction": "1/2"}),
    ],
)
def test_a_fact_that_does_not_fit_is_seen(released: Any, name: str, fact: str, value: Any) -> None:
    record, documents = copy.deepcopy(released[name])
    documents["certificate"]["facts"][fact] = value
    assert judged(record, documents).outcome == "wrong"


def test_a_share_that_is_not_accounted_for_is_seen(released: Any) -> None:
    record, documents = copy.deepcopy(released["exchangeability"])
    record["charges"][0]["event"]["gamma"] = "1/1000"
    assert judged(record, documents).outcome == "wrong"


def test_facts_that_were_found_leave_papers_and_are_said_to_be_unchecked(tmp_path: Any) -> None:
    _, policy = make_clinic(tmp_path)
    kept = [line for line in policy.read_text().splitlines() if "cost = " not in line]
    policy.write_text("\n".join(kept))
    with secant.connect(policy=policy, create=True) as database:
        database.sql("SELECT stddev(cost) AS c FROM visits", epsilon=1)
        _, found, asked = (database.verify(r.release_id) for r in database.ledger.history())
    assert found.outcome == "not verified"
    assert [p.words for p in found.points if p.outcome == "not known"] == [
        "releases of this kind are not checked here: facts"
    ]
    assert "wrong" not in (found.outcome, asked.outcome)


@pytest.mark.parametrize("name", ["visits", "sum"])
@pytest.mark.parametrize("lost", ["protections", "costs", "facts", "nodes"])
def test_documents_that_lack_something_are_wrong(released: Any, name: str, lost: str) -> None:
    record, documents = copy.deepcopy(released[name])
    gone = [d.pop(lost) for d in (documents["policy"], documents["certificate"]) if lost in d]
    if gone:
        assert judged(record, documents).outcome == "wrong"
    else:
        assert judged(record, documents).outcome == "verified"


def test_measures_that_are_read_off_a_survey_are_not_verified_and_not_called_wrong(
    tmp_path: Path,
) -> None:
    text = "SELECT count(*) FROM customers AS c, orders AS o, orders AS b WHERE o.customer = c.id AND b.customer = c.id"
    protected = (
        '[protections.single]\nkind = "rows"\ntables = ["customers", "orders"]\nepsilon = 100\n'
    )
    make_shop(tmp_path)
    with open_shop(tmp_path, protected) as database:
        database.sql(text, epsilon=1)
        (record,) = (r.fields for r in database.ledger.records() if r.fields["kind"] == "reserve")
        verdict = database.verify(record["release"])
        documents = json.loads(database.ledger.paper(record["papers"]["certificate"]) or "null")
    (release,) = documents["releases"]
    assert len(release["statements"]) == 1
    assert verdict.outcome == "not verified", verdict.points
    assert any("read off what a survey counts" in str(point) for point in verdict.points)
