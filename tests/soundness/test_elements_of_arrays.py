"""Elements of arrays as rows: no unit moves an answer by more than its bound (owner.elements)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

import chance
import secant
from secant.errors import Refused
from secant.policy import fit as policy_fit

LIMIT = 2
QUESTIONS = (
    "SELECT count(*) AS n FROM person, unnest(tags) AS t(x)",
    "SELECT count(*) AS n FROM person p CROSS JOIN LATERAL unnest(p.tags) AS t(x) WHERE x <> 'a'",
    "SELECT count(*) AS n FROM visit v, unnest(v.codes) AS c(code) WHERE code BETWEEN 1 AND 3",
    "SELECT sum(code) AS n FROM visit v, unnest(v.codes) AS c(code) WHERE code BETWEEN 0 AND 3",
    "SELECT count(*) AS n FROM visit v JOIN person p ON p.id = v.owner, unnest(v.codes) AS c(code) WHERE p.old",
)
POLICY = {
    "tables": {"person": {"key": ["id"]}, "visit": {"references": {"owner": "person.id"}}},
    "protections": {
        "people": {
            "kind": "unit", "unit": "person.id", "epsilon": 1000, "truncation": "fixed",
            "limits": {"visit": LIMIT, "unnest(visit.codes)": LIMIT, "unnest(person.tags)": LIMIT},
        }
    },
}  # fmt: skip


def drawn(draw: random.Random) -> tuple[list[tuple], list[tuple]]:
    people = [
        (i, draw.random() < 0.5, draw.choice([None, [], ["a"], ["a", "b"], ["b", "b", None, "c"]]))
        for i in range(draw.randint(1, 3))
    ]
    visits = [
        (
            draw.choice([None, *(p[0] for p in people)]),
            draw.choice([None, [], [1], [1, 2, 3], [3, 3, 3, 3]]),
        )
        for _ in range(draw.randint(0, 5))
    ]
    return people, visits


def answers(folder, people, visits, question) -> dict:
    path = folder / f"{random.random()}.duckdb"
    with duckdb.connect(str(path)) as engine:
        engine.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, old BOOLEAN, tags VARCHAR[])")
        engine.execute("CREATE TABLE visit (owner INTEGER, codes INTEGER[])")
        for table, rows in (("person", people), ("visit", visits)):
            for row in rows:
                engine.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    with secant.connect(f"duckdb:{path}", policy=POLICY, ledger=":memory:") as db:
        (seen,) = db.inspect(question)
    path.unlink()
    return seen


def violations(folder, seed: int, rounds: int, questions=QUESTIONS) -> Iterator[str]:
    """Take one unit away, with all that is its own, and hold what the release computes against its bound."""
    draw = random.Random(seed)
    for _ in range(rounds):
        people, visits = drawn(draw)
        question = draw.choice(questions)
        gone = draw.choice(people)[0]
        whole = answers(folder, people, visits, question)
        less = answers(
            folder,
            [p for p in people if p[0] != gone],
            [v for v in visits if v[0] != gone],
            question,
        )
        moved = abs(float(whole["softened"] or 0) - float(less["softened"] or 0))
        if moved > float(whole["sensitivity"]) + 1e-9:
            yield f"{question}: {moved} > {whole['sensitivity']}"


def test_no_unit_moves_an_answer_by_more_than_its_bound(tmp_path):
    assert list(violations(tmp_path, chance.fresh_seed(), 400 if chance.LONG else 25)) == []


def test_elements_that_are_owned_by_themselves_are_seen(tmp_path, monkeypatch):
    """The planted fault: an element is held to be a person's whose number it is, not its row's owner's."""

    def wrong(policy, catalog):
        found = policy_fit.element_tables(policy, catalog)
        own = {"unnest(codes)": ("person", "id")}
        name = "unnest(visit.codes)"
        return found | {name: replace(found[name], references=own)}

    monkeypatch.setattr("secant.policy.check.element_tables", wrong)
    assert any(violations(tmp_path, chance.FIXED, 25, QUESTIONS[2:4]))


@pytest.mark.parametrize(
    "kind", [{"kind": "rows"}, {"kind": "rows", "tables": ["person", "visit"]}]
)
def test_where_rows_are_protected_their_elements_are_refused(tmp_path, monkeypatch, kind):
    policy = {**POLICY, "protections": {"rows": {**kind, "epsilon": 1}}}
    monkeypatch.setattr(f"{__name__}.POLICY", policy)
    with pytest.raises(Refused, match="protected row by row"):
        answers(tmp_path, [(1, True, ["a", "b"])], [], QUESTIONS[0])
