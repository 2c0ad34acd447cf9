"""The verifier is a second program: a wrong rule of the analyses, planted, is not verified by it.

Each fault lets through a bound that some neighbor refutes (test_planted_faults). The documents of such a release are
made by the product's own writer, with the fault in place, and handed to the verifier, which knows nothing of it.
"""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from directed_cases import CASES, world_of
from neighbor_check import prepared_for
from planted_faults import FAULTS, without_walls

from secant.accuracy.trace import trace
from secant.evidence import digest
from secant.ledger.amounts import Charge
from secant.ledger.state import charge_fields
from secant.noise.calibrate import calibrate
from secant.noise.query_plan import reading_of
from secant.release.evidence import evidence_of
from secant.release.release_plan import ReleasePlan
from secant.sensitivity import bound as bounding
from secant.sensitivity.bound import ANALYSES
from secant.sensitivity.split import Decomposition
from secant.sensitivity.truncation import analysis as clipping_analysis
from secant.verifier import Verdict, verify

PRINTED = (
    "the plan is printed otherwise than it is written down; `secant audit` runs what is printed"
)
UNSEEN = {
    "what can fail is left as it is": "whether a statement can fail is not in the records",
    "the clamp is lost": PRINTED,
    "what is summed is not what was clamped": PRINTED,
    "what is summed is finer than the steps that were bounded": PRINTED,
    "the truncation is lost": PRINTED,
    "the truncation of groups is lost": PRINTED,
}
"""Faults that the verifier does not look for, and why."""


def job_of(prepared: Decomposition, protections) -> ReleasePlan:
    """Settle a release without an engine: nothing is printed, and nothing can be sent."""
    deltas = {p.name: p.delta / 100 for p in protections}
    noise = calibrate(prepared.bounded, protections, Fraction(1), deltas)
    readings = {
        b.release.name: reading_of(b.release, noise.noise, noise.ranks) for b in prepared.bounded
    }
    traced = trace(prepared.post, {}, frozenset())
    return ReleasePlan(prepared, noise, {}, readings, traced, Fraction(95, 100), "", 100, {})


def verdict_on(name: str) -> Verdict | None:
    """Let the verifier look at a directed case; None if it is refused."""
    case = CASES[name]
    world = world_of(*case.protections)
    prepared = prepared_for(case.text, world)
    if prepared is None:
        return None
    protections = world.policy.protections
    job = job_of(prepared, protections)
    known = (world.policy, world.catalog)
    papers = evidence_of((case.text, None), prepared.post, job, known, protections, "")
    charges = [
        charge_fields(Charge.of_event(name, cost.event))
        for name, cost in job.noise.paid.items()
        if cost.event is not None
    ]
    record = {"papers": papers.fields, "charges": json.loads(json.dumps(charges))}
    return verify(record, papers.documents)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_found_wrong_with_a_sound_case(name):
    verdict = verdict_on(name)
    if verdict is not None:
        assert [p for p in verdict.points if p.outcome == "wrong"] == []


def test_all_sound_cases_are_verified():
    """A case that falls out of the verifier is noticed here."""
    verdicts = {name: v for name in CASES if (v := verdict_on(name)) is not None}
    assert [name for name, v in verdicts.items() if v.outcome != "verified"] == []
    assert len(verdicts) > 50


# ── joins whose bound the data decide ────────────────────────────────────────────────────────────

JOINED = "a join of two protected tables"


def _bound(certificate):
    return certificate["releases"][0]["certificates"][0]["bounds"]["release1.m0"]


def _noise(certificate):
    return certificate["releases"][0]["measures"]["release1.m0"]["noise"]


def _terms(certificate):
    growths = _bound(certificate)["surveys"][0]["formula"]["growths"]
    return [part for growth in growths for product in growth["products"] for part in product]


def _no_growth(certificate):
    _bound(certificate)["surveys"][0]["formula"]["growths"].pop()


def _no_figure(certificate):
    for part in _terms(certificate):
        part[:] = [term for term in part if not term["figures"]]


def _nothing_comes(certificate):
    for part in _terms(certificate):
        part[:] = [term for term in part if term["figures"]]


def _other_figure(certificate):
    for part in _terms(certificate):
        for term in part:
            term["figures"] = [1 - f for f in term["figures"]]


def _other_column(certificate):
    for kind, fields in certificate["nodes"]:
        if kind == "Column" and fields["name"] == "v.vid":
            fields["name"] = "v.code"
            break
    else:
        raise AssertionError("no such column")
    # The condition still speaks of the old one.
    places = [i for i, (kind, f) in enumerate(certificate["nodes"]) if kind == "Compare"]
    certificate["nodes"].append(["Column", {"name": "v.vid", "type": "INTEGER"}])
    for place in places:
        certificate["nodes"][place][1]["left"] = {"node": len(certificate["nodes"]) - 1}


def _each_is_less(certificate):
    _bound(certificate)["each"] = "1/2"


def _a_higher_rate(certificate):
    _noise(certificate)["rate"] = str(Fraction(_noise(certificate)["rate"]) * Fraction(101, 100))


def _a_rougher_bound(certificate):
    _noise(certificate)["read"] = str(2 * Fraction(_noise(certificate)["beta"]))


def _a_larger_share(certificate):
    _noise(certificate)["each"] = str(2 * Fraction(_noise(certificate)["each"]))


@pytest.mark.parametrize(
    "fault",
    [
        _no_growth, _no_figure, _nothing_comes, _other_figure, _other_column, _each_is_less, _a_higher_rate,
        _a_rougher_bound, _a_larger_share,
    ],
)  # fmt: skip
def test_a_fault_in_a_survey_is_seen(fault, monkeypatch):
    honest = verify

    def spoiled(record, documents):
        certificate = json.loads(documents["certificate"])
        fault(certificate)
        text = json.dumps(certificate, sort_keys=True, separators=(",", ":"))
        papers = {**record["papers"], "certificate": digest(text)}
        return honest({**record, "papers": papers}, {**documents, "certificate": text})

    monkeypatch.setitem(verdict_on.__globals__, "verify", spoiled)
    assert verdict_on(JOINED).outcome == "wrong"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.rule}: {f.what} ({f.case})")
def test_a_planted_fault_is_never_verified(fault, monkeypatch):
    if fault.what in UNSEEN:
        pytest.skip(UNSEEN[fault.what])
    without_walls(monkeypatch)
    # Each fault is met where it matters: limits in statements of their own, or no limits at all.
    monkeypatch.setattr(clipping_analysis, "at_once", lambda a, limits: None)
    if not fault.rule.startswith("truncation."):
        others = tuple(analysis for analysis in ANALYSES if analysis.name != "truncation")
        monkeypatch.setattr(bounding, "ANALYSES", others)
    fault.plant(monkeypatch)
    try:
        verdict = verdict_on(fault.case)
    except AssertionError:
        return  # the fault does not even fit its own certificate
    assert verdict is None or verdict.outcome != "verified"
