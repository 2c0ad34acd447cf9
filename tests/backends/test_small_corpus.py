"""The small corpus on every engine, and by the interpreter: the plan gives what DuckDB gives for the user's text."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from engines import ENGINES, OTHERS, PROMPT, on_engines
from order_statistics import EXACT, RELEASED, counted
from random_queries import HOSTILE, Writer
from row_compare import difference, ordered

from chance import LONG
from secant.engines.print.print_sql import lower
from secant.errors import BackendError, SqlError
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import Failure
from secant.plan.rewrites.null_on_error import make_total
from secant.plan.rewrites.rewrite import normalize
from secant.sql.bind import from_sql

TEXTS = (Path(__file__).parent.parent / "data" / "small_queries.sql").read_text().splitlines()
SMALL = [line for line in TEXTS if line and not line.startswith("--")]
SHAPES: dict[str, Callable[[n.Relation], n.Relation]] = {
    "bound": lambda plan: plan,
    "normalized": normalize,
    "total": lambda plan: make_total(normalize(plan)),
}
ROUNDS, STATEMENTS = (60, 100) if LONG else (4, 100)


@cache
def planned(small, query: str, shape: str) -> n.Relation:
    """Give the plan of a text, made once for all engines: plans never change."""
    if shape == "bound":
        return from_sql(query, small.catalog())
    return SHAPES[shape](planned(small, query, "bound"))


@cache
def answered(small, query: str) -> list[tuple[object, ...]]:
    """Give what DuckDB answers to a text."""
    return small.rows(query)


@cache
def answered_safely(small, query: str) -> list[tuple[object, ...]]:
    """Give what DuckDB answers to the statement of a text's plan that cannot fail."""
    return small.rows(lower(planned(small, query, "total")))


def refused(engine, query: str) -> bool:
    return any(part in query for part in engine.refuses)


@on_engines(
    "query shape",
    [(q, s) for q in SMALL for s in SHAPES],
    few=[(q, "total") for q in SMALL[::8]],
)
def test_small_queries(small, small_rows, small_there, engine, query, shape):
    plan = planned(small, query, shape)
    if refused(engine, query):
        with pytest.raises(BackendError) as caught:
            lower(plan, small_there.backend.dialect)
        assert caught.value.code == "BAK-003"
        return
    if shape != "total":
        want = answered(small, query)
    else:
        # A plan that cannot fail leaves out what the text would fail on: there DuckDB's statement is the measure, and
        # of that one the interpreter.
        want = answered_safely(small, query) if engine in OTHERS else evaluate(plan, small_rows)
    assert difference(small_there.answer(plan), want, ordered=ordered(plan)) is None


@pytest.mark.parametrize("shape", ["bound", "normalized"])
@pytest.mark.parametrize("query", SMALL)
def test_small_queries_by_the_interpreter(small, small_rows, query, shape):
    plan = planned(small, query, shape)
    want = answered(small, query)
    assert difference(evaluate(plan, small_rows), want, ordered=ordered(plan)) is None


def test_the_comparison_can_fail():
    assert difference([(1,)], [(1,), (1,)], ordered=False) is not None
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=True) is not None
    assert difference([(1,), (2,)], [(2,), (1,)], ordered=False) is None
    assert difference([(1.0,)], [(1.0 + 1e-6,)], ordered=False) is not None
    assert difference([(1.0,)], [(1.0 + 1e-12,)], ordered=False) is None
    assert difference([(1,)], [(1.0,)], ordered=False) is not None
    assert difference([(None,)], [(0,)], ordered=False) is not None
    assert difference([(float("nan"),)], [(float("nan"),)], ordered=False) is None


def test_most_of_the_corpus_is_answered():
    assert len(SMALL) > 190
    for engine in ENGINES:
        assert sum(refused(engine, query) for query in SMALL) <= 1


# ── drawn statements ─────────────────────────────────────────────────────────────────────────────


@cache
def drawn(small, seed, most):
    """Draw statements that DuckDB and Secant take: text, plan, rows. What is refused has a reason."""
    writer, taken = Writer(seed), []
    for _ in range(most):
        query = writer.statement()
        try:
            want = small.rows(query)
            taken.append((query, from_sql(query, small.catalog()), want))
        except (BackendError, SqlError):
            continue
    assert len(taken) > most / 3
    return taken


@on_engines("seed", [(seed,) for seed in range(ROUNDS)], few=[(0,)])
def test_random_statements(small, small_there, engine, seed):
    """As bound and as normalized; on other engines also unable to fail, as releases use them."""
    most = STATEMENTS if LONG or engine not in OTHERS else STATEMENTS // 2
    answered = refusals = 0
    for query, bound, wanted in drawn(small, seed, min(most, 15) if engine.sparing else most):
        plain = normalize(bound)
        safe = make_total(plain)
        if engine not in OTHERS:
            cases = [(bound, wanted), (plain, wanted)]
        else:
            cases = [] if engine.sparing else [(plain, wanted)]
            cases.append((safe, small.rows(lower(safe))))
        for plan, want in cases:
            try:
                lower(plan, small_there.backend.dialect)
            except BackendError:
                refusals += 1
                continue
            try:
                got = small_there.answer(plan)
            except BackendError as failed:
                pytest.fail(f"{failed.message}: {query}")
            assert difference(got, want, ordered=False) is None, query
            answered += 1
    assert answered > refusals * 2
    assert not refusals or not engine.writes_floats


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_random_statements_by_the_interpreter(small, small_rows, seed):
    for query, plan, want in drawn(small, seed, STATEMENTS):
        for shape in (plan, normalize(plan)):
            try:
                by_hand = evaluate(shape, small_rows)
            except Failure:
                pytest.fail(f"the interpreter fails where the engine does not: {query}")
            assert difference(by_hand, want, ordered=False) is None, query


def test_every_hostile_name_is_drawn():
    names = set()
    for seed in range(ROUNDS):
        writer = Writer(seed)
        for _ in range(STATEMENTS):
            writer.statement()
        names |= writer.named.keys()
    assert names == set(HOSTILE)


@on_engines()
def test_an_alias_like_ours_is_kept_apart(small, small_there):
    query = "SELECT s1.id, s2.j FROM person AS s1 JOIN (SELECT id + 1 AS j FROM person) AS s2 ON s2.j = s1.id"
    want = small.rows(query)
    plan = normalize(from_sql(query, small.catalog()))
    assert difference(small_there.answer(plan), want, ordered=False) is None
    assert want


# ── aggregates and order statistics ──────────────────────────────────────────────────────────────

AGGREGATED = """
SELECT city, count(*), count(age), count(DISTINCT age), sum(age), avg(age), min(age), max(name), sum(balance),
  avg(balance), sum(id * 1000000007), avg(id * 1000000007), min(active), max(active), sum(DISTINCT age), max(height),
  var_samp(age), var_pop(age), stddev_samp(age), stddev_pop(age), covar_pop(age, id), corr(age, id),
  mode(age), mode(name), median(age), quantile_disc(age, 0.3), quantile_disc(name, 0.5), quantile_cont(age, 0.7),
  min(born), max(seen)
FROM person GROUP BY city
"""


@on_engines()
def test_aggregates(small, small_rows, small_there):
    plan = make_total(normalize(from_sql(AGGREGATED, small.catalog())))
    want = evaluate(plan, small_rows)
    assert difference(small_there.answer(plan), want, ordered=False) is None
    assert len(want) >= 5


@on_engines()
def test_a_sum_of_whole_numbers_has_more_than_64_bits(small, small_rows, small_there):
    text = "SELECT sum(CASE WHEN TRUE THEN 9223372036854775807 END), avg(id * 0 + 9223372036854775807) FROM person"
    plan = make_total(normalize(from_sql(text, small.catalog())))
    assert difference(small_there.answer(plan), evaluate(plan, small_rows), ordered=False) is None


@on_engines("text", [(text,) for text in EXACT], engines=PROMPT)
def test_exact_order_statistics(small, small_rows, small_there, engine, text):
    plan = normalize(from_sql(text, small.catalog()))
    want = evaluate(plan, small_rows)
    assert difference(small_there.answer(plan), want, ordered=False) is None
    # DuckDB gives a timestamp between two dates.
    if engine not in OTHERS and "median(born)" not in text:
        assert difference(small.rows(text), want, ordered=False) is None


@on_engines("text", [(text,) for text in RELEASED])
def test_cells_of_order_statistics(small, small_rows, small_there, text):
    for cells in counted(text, small.catalog()):
        want = evaluate(cells, small_rows)
        assert difference(small_there.answer(cells), want, ordered=False) is None
        assert want or "nothing" in text


# ── what is refused ──────────────────────────────────────────────────────────────────────────────


@on_engines(engines=OTHERS)
def test_what_an_engine_computes_otherwise_is_refused_by_name(small, small_there, engine):
    for expression in sorted(engine.refuses):
        text = f"SELECT {expression} FROM person"
        bound = from_sql(text, small.catalog())
        # Scalars are refused where they cannot be guarded, so in plans that cannot fail; aggregates everywhere.
        everywhere = any(isinstance(node, n.Aggregation) for node in n.walk(bound))
        for shape in SHAPES if everywhere else ["total"]:
            plan = SHAPES[shape](bound)
            with pytest.raises(BackendError) as caught:
                lower(plan, small_there.backend.dialect)
            assert caught.value.code == "BAK-003", expression
            assert caught.value.hint
    assert engine.refuses
