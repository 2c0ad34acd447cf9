"""Measures that are read off what a survey counts are those of the release, and the figures beside them the survey's.

On drawn databases with NULLs, rows that are there twice and declared keys that do not hold, by the interpreter and by
DuckDB; and planted faults that must be noticed.
"""

import random
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from engine_answers import Engine
from joins_check import Findings, analysis_of, targets_of
from joins_worlds import COLUMNS, KEYS, KINDS, draw_database, world

from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import evaluate
from secant.schema import types as t
from secant.sensitivity.residual import answers
from secant.sensitivity.residual.statements import Statements

TABLES = {
    name: tuple((c, KINDS.get(c, t.INTEGER)) for c in columns) for name, columns in COLUMNS.items()
}
READ = (
    "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
    "SELECT count(*) FROM r, s, t",
    "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND t.a = r.a",
    "SELECT count(*) FROM m, r, s WHERE m.a = r.a AND m.b = s.b AND s.c > 1",
    "SELECT count(*), count(*) AS again FROM o q1, o q2, o q3 WHERE q1.a = q2.a AND q2.a = q3.a",
    "SELECT count(*) FROM e q1, e q2, e q3, e q4 WHERE q1.y = q2.x AND q2.y = q3.x AND q3.y = q4.x",
    "SELECT sum(p.w) FROM r, p, s WHERE r.a = p.a AND r.b = s.b",
    "SELECT sum(p.w * 2 - m.b), count(*) FROM s, m, p WHERE m.b = s.b AND m.c = s.c AND m.a = p.a",
    "SELECT sum(s.c) FROM r q, s, t WHERE q.b = s.b AND s.c = t.c",
    "SELECT sum(d.z) FROM d, r, p WHERE d.k = r.a AND r.a = p.a",
    "SELECT sum(p.w), count(p.w), sum(p.w * s.b) FROM s, r, p, o WHERE s.b = r.a AND r.a = p.a AND s.c = o.a",
    "SELECT sum(g), count(*) FROM n, r, p WHERE n.k = r.b AND r.a = p.a AND p.w < 2",
    "SELECT sum(p.w), count(*) FROM s, r, p, t WHERE s.b = r.b AND r.a = p.a AND s.c = t.c AND p.w < 3",
    "SELECT count(*) FROM s, r, p, t WHERE s.b = r.b AND r.a = p.a AND s.c = t.c AND p.w < 3",
)
"""What is read together on the worlds below."""
APART = {
    "two tables": "SELECT count(*) FROM r JOIN s ON r.b = s.b",
    "a condition between tables": "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND r.a < t.a",
    "groups": "SELECT r.b, count(*) FROM r, s, t WHERE r.b = s.b AND s.b = t.c GROUP BY r.b",
    "different values": "SELECT count(DISTINCT s.c) FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
    "summands of the first and the last": "SELECT sum(r.a + t.a) FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
    "a join that grows": "SELECT sum(r.a + s.c) FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
}
DATABASES = 25


def targets(text):
    """Give what residuals accept of a text, in a world whose declared keys nobody keeps, and in one that keeps some."""
    for kept in ({}, {"p": ("a",), "o": ("a",)}):
        made = world(None, kept, KEYS)
        yield from targets_of(text, made, analysis_of("residual"), Findings())


def survey_of(target):
    surveys = {id(s): s for b in target.certificate.bounds.values() for s in b.surveys}
    (survey,) = surveys.values()
    return survey


def compared(text, run, times=DATABASES):
    """Count the databases on which measures and figures agree, and those on which they do not."""
    same = other = 0
    for target in targets(text):
        survey, draw = survey_of(target), random.Random(text)
        if survey.answered is None:
            assert not survey.statements, "with kept keys nothing is measured"
            continue
        for _ in range(times):
            rows = draw_database(draw, target.tables, target.world)
            together = run(survey.answered, rows)
            (measures,) = ([value(x) for x in r[2:]] for r in together if r[0] == answers.ANSWER)
            figures = sorted((r[0], r[1] or 0) for r in together if r[0] != answers.ANSWER)
            (exact,) = ([value(x) for x in row] for row in evaluate(target.release.exact, rows))
            asked = sorted((r[0], r[1] or 0) for s in survey.statements for r in evaluate(s, rows))
            agree = measures == exact and figures == asked
            same, other = same + agree, other + (not agree)
    return same, other


def value(found):
    """Read what a release reads: nothing was there to add up where it is NULL."""
    assert found is None or isinstance(found, (int, Decimal))
    return Fraction(found or 0)


@pytest.mark.parametrize("text", READ)
def test_one_statement_gives_the_measures_and_the_figures(text):
    same, other = compared(text, evaluate)
    assert same >= DATABASES, "read together in one world at least"
    assert other == 0


@pytest.mark.parametrize("text", READ)
def test_the_engine_gives_them_too(text, engine):
    def run(plan, rows):
        tables = {x: [dict(zip(COLUMNS[x], r, strict=True)) for r in rows[x]] for x in rows}
        return engine.rows(plan, tables)

    same, other = compared(text, run, 5)
    assert same >= 5
    assert other == 0


@pytest.fixture(scope="module")
def engine():
    made = Engine(TABLES)
    yield made
    made.close()


@pytest.mark.parametrize("reason", APART)
def test_what_cannot_be_read_together_is_asked_apart(reason):
    found = [
        s for x in targets(APART[reason]) for b in x.certificate.bounds.values() for s in b.surveys
    ]
    assert found
    assert all(survey.answered is None for survey in found)


def test_what_a_figure_and_the_measures_join_is_joined_once():
    """A join that a filter cuts down, and a table that is numbered, stand in the statement once."""
    for text in READ[12:]:
        (first, _) = targets(text)
        written = lower(survey_of(first).answered)
        read = {name: len(re.findall(f'"{name}" AS s[0-9]', written)) for name in "prst"}
        assert read == {"p": 1, "r": 1, "s": 1, "t": 2}, "t has no declared key"


def test_sums_that_could_leave_their_type_are_asked_apart(monkeypatch):
    (text,) = (x for x in READ if x.startswith("SELECT sum(g)"))
    assert all(survey_of(x).answered is not None for x in targets(text))
    monkeypatch.setattr(answers, "ROWS", 10**18)
    assert all(survey_of(x).answered is None for x in targets(text))


def _rows_are_summands(patch):
    right = answers._counts

    def wrong(release, statements, figure):
        calls = tuple(
            answers.n.Aggregation(c.name, "count", None) for c in release.exact.aggregations
        )
        changed = answers.replace(release, exact=answers.replace(release.exact, aggregations=calls))
        return right(changed, statements, figure)

    patch.setattr(answers, "_counts", wrong)


def _one_class_is_enough(patch):
    right = Statements.pair

    def wrong(self, left, one, tests=()):
        shared = sorted(left.classes.keys() & one.classes.keys())[:1]
        own = {c: x for c, x in one.classes.items() if c in shared or c not in left.classes}
        return right(self, left, answers.replace(one, classes=own), tests)

    patch.setattr(Statements, "pair", wrong)


def _what_is_read_once_is_different(patch):
    right = Statements.read_once

    def wrong(self, atoms, read):
        found = right(self, atoms, read)
        self.once[atoms] = answers.replace(found, relation=n.Distinct(found.relation))
        return self.once[atoms]

    patch.setattr(Statements, "read_once", wrong)


def _filters_are_left_to_the_figure(patch):
    def wrong(self, atoms, read):
        found = right(self, atoms, read)
        (place,) = atoms if len(atoms) == 1 else (None,)
        if place is not None:
            whole = found.relation.input
            while isinstance(whole, n.Filter):
                whole = whole.input
            self.once[atoms] = answers.replace(
                found, relation=answers.replace(found.relation, input=whole)
            )
        return self.once[atoms]

    right = Statements.read_once
    patch.setattr(Statements, "read_once", wrong)


@pytest.mark.parametrize(
    ("plant", "text"),
    [
        (_rows_are_summands, READ[6]),
        (_one_class_is_enough, READ[7]),
        (_what_is_read_once_is_different, READ[12]),
        (_filters_are_left_to_the_figure, READ[12]),
    ],
)
def test_a_planted_fault_is_noticed(plant, text, monkeypatch):
    plant(monkeypatch)
    assert compared(text, evaluate)[1] > 0
