"""Every slot that can hold a scalar or a relation, drawn and attacked under every kind of protection; none is left out.

A round has a question for each slot with each kind of subquery, protected and public. What was drawn is counted by the
types of the nodes' fields (`slot_coverage`), and a slot that was never drawn fails. SECANT_SEED repeats a run; the seed
is printed. The long profile (SECANT_PROFILE=long) draws many rounds.
"""

import contextlib
import random

import older_grammars
import pytest
import slot_places
import slot_search
import slot_targets
from engine_answers import Engine, difference
from neighbor_check import Findings
from planted_slots import forgetful
from slot_coverage import UNREACHABLE, Coverage, keys_of, wanted
from slot_questions import Target
from slot_search import (
    ACCEPTED,
    Question,
    answers_apart,
    attack,
    bounded,
    draw_round,
    refused_as_written,
    scanned,
    with_fixed_releases,
)
from slot_targets import CORES, targets
from slot_worlds import STYLES, draw_world, redrawn

from chance import LONG, fresh_seed
from secant.errors import SqlError
from secant.plan import nodes as n
from secant.plan.facts import ownership, reads
from secant.plan.rewrites.enforce import MeasuredAggregate
from secant.sensitivity.elastic import rules as elastic
from secant.sensitivity.stability import rules as stability
from secant.sql.bind import from_sql
from secant.sql.bind.statistics import PAIRS

ROUNDS = 40 if LONG else 1
# One seed in the normal profile: a slot that luck leaves out is no fault. The long profile draws new ones.
SEED = fresh_seed()


@pytest.fixture(scope="module", params=range(ROUNDS), ids=lambda number: f"round {number}")
def a_round(request):
    """Give the questions of one round and what they have drawn."""
    return draw_round(random.Random(SEED + request.param))


def test_every_slot_is_drawn(a_round):
    questions, coverage = a_round
    print(f"SECANT_SEED={SEED}: {len(questions)} questions\n{coverage.table()}")
    assert coverage.missing(ACCEPTED) == []


@pytest.fixture(scope="module")
def older():
    """Give what the grammars of the other searches draw."""
    return older_grammars.recorded(2_000 if LONG else 300)


def test_all_searches_together_draw_every_slot(a_round, older):
    _, coverage = a_round
    print(older_grammars.table({**older, "slots": coverage}))
    assert all(sum(found.drawn.values()) > 1_000 for found in older.values())
    assert together(coverage, *older.values()).missing(ACCEPTED) == []


def together(*parts):
    """Add up what several searches have drawn."""
    whole = Coverage()
    for part in parts:
        whole.add(part)
    return whole


def test_no_neighbor_refutes_a_slot(a_round, record_property):
    questions, _ = a_round
    findings = Findings()
    for number, question in enumerate(questions):
        attack(random.Random(f"{SEED} {number}"), question, findings)
        assert [str(v) for v in findings.violations[:1]] == [], f"{SEED} {question.target}"
    record_property("triples", findings.triples)
    print(f"{findings.triples} triples, {findings.accepted} of {findings.asked} accepted")
    assert findings.accepted >= 0.25 * findings.asked
    assert findings.triples >= 5 * findings.asked


@pytest.fixture(scope="module")
def engines():
    """Give an engine with the tables under each style of names."""
    found = {}
    for style in STYLES:
        world = draw_world(random.Random(0), "unit", style)
        found[style] = Engine(world.columns)
    yield found
    for engine in found.values():
        engine.close()


def test_the_engine_answers_what_was_bounded(a_round, engines, record_property):
    questions, _ = a_round
    compared = 0
    for number, question in enumerate(questions):
        if question.prepared is None:
            continue
        draw = random.Random(f"{SEED} {number}")
        engine, fixed = engines[question.world.style], with_fixed_releases(question)
        if refused_as_written(engine, question):
            continue
        read = scanned(question)
        for _ in range(2):
            drawn = question.world.as_stored(redrawn(draw, question.world, question.known))
            database = {name: rows if name in read else [] for name, rows in drawn.items()}
            turned = {name: draw.sample(list(rows), len(rows)) for name, rows in database.items()}
            for rows in (database, turned):
                told = [difference(engine, b.release, rows) for b in fixed.bounded]
                told.append(answers_apart(engine, question, rows))
                compared += len(told)
                assert told == [None] * len(told), (
                    f"{SEED} {question.target}\n{question.text}\n{rows}"
                )
    record_property("compared", compared)
    print(f"{compared} answers compared")
    assert compared >= len(questions)


# ── the search can fail ──────────────────────────────────────────────────────────────────────────


ORDERED = ("min", "max", "median")
EXISTS = "CASE WHEN EXISTS (SELECT 1 FROM {0}) THEN {1} ELSE {2} END"
SORTED = (
    "SELECT sum(v) FROM (SELECT v FROM (VALUES (0)) t(v) UNION ALL SELECT v FROM (VALUES (1)) u(v) "
    f"ORDER BY ({EXISTS.format('visit WHERE code > 1', '-v', 'v')}) LIMIT 1) q"
)
RANKED = [
    f"SELECT {f}({EXISTS.format('visit WHERE code > 1', 'w', '0')}) FROM free" for f in ORDERED
]
BESIDE = [
    f"SELECT {f}({EXISTS.format('other WHERE amount > 2', 'age', '0')}) FROM person"
    for f in ORDERED
]
DOORS = [("rows", SORTED), ("unit", SORTED), *(("rows", x) for x in RANKED),
         *(("unit and rows, others", x) for x in BESIDE), *(("rows and cells, others", x) for x in BESIDE)]  # fmt: skip
"""Questions that read somebody's presence for nothing once; in the last ones, that of another protection."""


def refuted(combination, text):
    """Give what is refuted about a question by drawn databases, always the same ones."""
    draw = random.Random(3)
    world = draw_world(draw, combination, "plain")
    target = Target("", "none", "Exists", "protected", "", combination, "plain", "plain")
    findings = Findings()
    asked = bounded(draw, Question(text, target, world, from_sql(text, world.real.catalog)))
    attack(draw, asked, findings, databases=20)
    return {violation.claim for violation in findings.violations}


def test_doors_that_were_open_are_shut():
    assert [door for door in DOORS if refuted(*door)] == []


@pytest.mark.parametrize(("combination", "text"), DOORS)
def test_a_walk_that_skips_subqueries_is_refuted(combination, text, monkeypatch):
    """The planted fault: what stands below EXISTS is not looked into."""
    monkeypatch.setattr(reads, "n", forgetful(n.Exists, "relation"))
    assert refuted(combination, text) & {"still", "charged"}


def test_order_statistics_that_nobody_asks_what_they_read_are_refuted(monkeypatch):
    """The old fault: only the statement of the measures was looked into."""
    monkeypatch.setattr(MeasuredAggregate, "aggregates", property(lambda release: (release.exact,)))
    for text in RANKED:
        assert refuted("rows", text) >= {"charged", "ranks"}
    for text in BESIDE:
        assert refuted("unit and rows, others", text) >= {"charged", "ranks"}


@pytest.mark.parametrize("combination", ["rows", "unit"])
def test_sort_keys_that_nobody_looks_into_are_refuted(combination, monkeypatch):
    """The old fault: an order has no part in which rows there are."""
    skipping = lambda r: () if isinstance(r, n.Sort) else reads.expressions(r)  # noqa: E731
    for module in (elastic, stability, ownership):
        monkeypatch.setattr(module, "expressions", skipping)
    for work in (elastic.Elastic, stability.Stabilities, ownership.Ownerships):
        monkeypatch.setattr(work, "_accounted", lambda _, relation, found: found)
    assert refuted(combination, SORTED) >= {"bound", "charged"}


@pytest.fixture
def hasty(monkeypatch):
    """Draw each target a few times, and do not bound it: what is counted is counted all the same."""
    monkeypatch.setattr(slot_search, "TRIES", 4)
    return lambda: draw_round(random.Random(1), more=0, binding=False)[1]


def test_a_place_that_is_switched_off_is_missed(hasty, monkeypatch):
    """The planted fault: questions that sort by an expression filter by it instead."""
    sorting = {f"slot Sort.keys/SortKey.expression {x} protected" for x in CORES}
    assert not sorting & set(hasty().missing())
    monkeypatch.setattr(
        slot_places,
        "EVERYWHERE",
        {**slot_places.EVERYWHERE, "Sort.keys": slot_places._filter, "shown, ordered": slot_places._filter},
    )  # fmt: skip
    assert sorting <= set(hasty().missing())


def test_a_slot_that_no_search_draws_is_missed(older):
    """Without the slot search: no other grammar tries the door that stood open."""
    missing = set(together(*older.values()).missing())
    assert {f"slot Sort.keys/SortKey.expression {x} protected" for x in CORES} <= missing


def test_a_function_that_is_switched_off_is_missed(hasty, monkeypatch):
    fewer = tuple(x for x in slot_targets.FUNCTION_WRAPS if not x.startswith("sqrt"))
    monkeypatch.setattr(slot_targets, "FUNCTION_WRAPS", fewer)
    assert "function sqrt" in hasty().missing()


WINDOWS = (
    "max({0}) OVER ()", "lag(age, 1, {0}) OVER (ORDER BY age)", "count(*) OVER (PARTITION BY age, {0})",
    "rank() OVER (ORDER BY {0})", "count(*) FILTER (WHERE CAST({0} AS INTEGER) = 1) OVER (PARTITION BY age)",
    "count(*) FILTER (WHERE {0}) OVER (PARTITION BY age)",
)  # fmt: skip
"""Window calls with a subquery in each of their parts."""


def test_what_no_text_leads_to_is_never_drawn():
    """Else it must be asked for."""
    catalog, found = draw_world(random.Random(0), "unit", "plain").real.catalog, set()
    calls = ["min(DISTINCT age)", "max(DISTINCT age)", "bool_and(DISTINCT age > 1)"]
    calls += ["mode(age)", "mode(DISTINCT age)", "mode() WITHIN GROUP (ORDER BY DISTINCT age)"]
    for name in PAIRS:
        calls += [
            f"{name}({x})"
            for x in ("age, id", "DISTINCT age, id", "age, DISTINCT id", "DISTINCT age")
        ]
    calls += [
        "array_agg(age)",
        "array_agg(DISTINCT age)",
        "list(age)",
        "rank() OVER (ORDER BY age)",
    ]
    for asked in (
        "(SELECT max(code) FROM visit)",
        "EXISTS (SELECT 1 FROM visit)",
        "age IN (SELECT code FROM visit)",
    ):
        calls += [window.format(asked) for window in WINDOWS]
    for call in calls:
        with contextlib.suppress(SqlError):
            found |= keys_of(from_sql(f"SELECT {call} FROM person", catalog), lambda table: True)
    made = {f"aggregate {x}" for x in ("min", "max", "mode", "covar_pop")}
    assert found >= {*made, "node Window"}
    assert not (found | wanted()) & UNREACHABLE.keys()


def test_questions_depend_on_their_seed_alone():
    def texts():
        draw = random.Random(11)
        return [
            slot_places.question(draw, draw_world(draw, t.combination, t.style), t)
            for _, t in zip(range(30), targets(draw), strict=False)
        ]

    assert texts() == texts()
