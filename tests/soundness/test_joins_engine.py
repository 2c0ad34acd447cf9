"""The figures that smooth bounds rest on come out of the engine as the interpreter computes them."""

import pytest
from engine_answers import Engine
from joins_cases import CASES
from joins_check import ANALYSES, Findings, analysis_of, targets_of
from joins_worlds import COLUMNS, KINDS, database

from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.plan.evaluate.values import same_key
from secant.schema import types as t

TABLES = {
    name: tuple((c, KINDS.get(c, t.INTEGER)) for c in columns) for name, columns in COLUMNS.items()
}
EVERY = 3
"""Each analysis gets every so many of the directed cases, a share of its own."""


def as_mappings(tables):
    return {
        name: [dict(zip(COLUMNS[name], row, strict=True)) for row in rows]
        for name, rows in tables.items()
    }


def counted(rows):
    return sorted(tuple(map(str, map(same_key, row))) for row in rows)


@pytest.fixture(scope="module")
def engine():
    made = Engine(TABLES)
    yield made
    made.close()


@pytest.mark.parametrize("name", [r for r in ANALYSES if r != "smt"])
def test_the_engine_computes_the_same_figures(name, engine):
    analysis, compared = analysis_of(name), 0
    for case in list(CASES.values())[sorted(ANALYSES).index(name) % EVERY :: EVERY]:
        for target in targets_of(case.text, case.world, analysis, Findings()):
            for statement, (run, _) in target.statements.items():
                for tables in case.databases[:3]:
                    got = engine.rows(statement, as_mappings(tables))
                    assert counted(got) == counted(run(tables)), case.text
                    compared += 1
    assert compared > 30


def test_a_statement_that_counts_otherwise_is_noticed(engine):
    scan = n.Scan("r", "r", tuple(n.Field(f"r.{c}", t.INTEGER) for c in COLUMNS["r"]))
    second = n.Column("r.b", t.INTEGER)
    every = n.Aggregate(scan, (), (n.Aggregation("n", "count", None),))
    known = n.Aggregate(scan, (), (n.Aggregation("n", "count", second),))
    rows = database(r=[(1, 1), (1, None)])
    got = counted(engine.rows(every, as_mappings(rows)))
    assert got == counted(evaluate(every, rows))
    assert got != counted(evaluate(known, rows))
