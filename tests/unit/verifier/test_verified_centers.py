"""Papers of averages about a center (truncation.center): they are verified, and altered ones are not."""

import json
from hashlib import sha256

import pyarrow as pa
import pytest

import secant
from secant.verifier.verdict import verify

ROWS = {"u": ["a", "a", "b", "c"], "g": [1, 2, 1, 2], "x": [10, 30, 40, None]}
POLICY = {
    "tables": {"t": {"columns": {"g": {"values": [1, 2]}, "x": {"range": [0, 100], "step": 1}}}},
    "protections": {"people": {"kind": "unit", "unit": "t.u", "epsilon": 10}},
}


@pytest.fixture(
    scope="module", params=["SELECT avg(x) FROM t", "SELECT g, avg(x) FROM t GROUP BY g"]
)
def papers(request, tmp_path_factory):
    """Release once; give the record and the documents."""
    ledger = str(tmp_path_factory.mktemp("ledger") / "ledger.sqlite")
    with secant.connect({"t": pa.table(ROWS)}, policy=POLICY, ledger=ledger) as db:
        answer = db.sql(request.param, epsilon=1)
        assert db.verify(answer.release_id).outcome == "verified"
        (record,) = [r.fields for r in db.ledger.records() if r.fields["kind"] == "reserve"]
        return record, {k: db.ledger.paper(d) for k, d in record["papers"].items()}


def judged(papers, change):
    """Verify papers as if they had been written otherwise in the first place."""
    record, bodies = papers
    altered = {k: json.loads(text or "null") for k, text in bodies.items()}
    change(altered)
    bodies = {k: json.dumps(d, sort_keys=True, separators=(",", ":")) for k, d in altered.items()}
    digests = {k: sha256(text.encode()).hexdigest() for k, text in bodies.items()}
    return verify({**record, "papers": digests}, bodies)


def releases(documents):
    """Find the parts of documents that describe a release."""
    found, stack = [], list(documents.values())
    while stack:
        part = stack.pop()
        if isinstance(part, dict):
            if "statements" in part and "measures" in part:
                found.append(part)
            stack += part.values()
        elif isinstance(part, list):
            stack += part
    return found


def without(kind):
    """Leave a kind of statements out of the papers."""

    def change(documents):
        for release in releases(documents):
            release["statements"] = {
                k: v for k, v in release["statements"].items() if kind not in k
            }

    return change


def test_papers_as_they_are_hold(papers):
    assert judged(papers, lambda documents: None).outcome == "verified"


def test_a_center_that_no_statement_chooses_is_wrong(papers):
    assert judged(papers, without(" places")).outcome == "wrong"


def test_a_limit_that_no_tally_chooses_is_wrong(papers):
    assert judged(papers, without("about")).outcome == "wrong"


def test_other_limits_than_those_of_the_statements_are_wrong(papers):
    def change(documents):
        stack = list(documents.values())
        while stack:
            part = stack.pop()
            if isinstance(part, dict):
                if part.get("centered"):
                    part["limits"] = [x + 1 for x in part["limits"]]
                stack += part.values()
            elif isinstance(part, list):
                stack += part

    assert judged(papers, change).outcome == "wrong"


def test_a_center_that_is_not_paid_for_is_wrong(papers):
    def change(documents):
        stack = list(documents.values())
        while stack:
            part = stack.pop()
            if isinstance(part, dict):
                if "choosing" in part:
                    part["choosing"] = "1"
                stack += part.values()
            elif isinstance(part, list):
                stack += part

    assert judged(papers, change).outcome == "wrong"
