"""The multiplicity analysis against every neighbor of small databases, with planted faults, and what it refuses."""

import math
import random
import sys
from fractions import Fraction

import duckdb
import pytest

from secant.engines.print.print_sql import lower
from secant.plan import nodes as n
from secant.plan.evaluate.evaluate import prepare
from secant.plan.evaluate.values import same_key
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.rewrite import normalize
from secant.plan.verify import verify
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.certificate import Certificate, Refusal, Surveyed
from secant.sensitivity.interface import Request
from secant.sensitivity.multiplicity import conditions, copies, patterns, reading
from secant.sensitivity.multiplicity.analysis import MOST_ATOMS, MultiplicityAnalysis
from secant.sensitivity.multiplicity.filling import Growth
from secant.sql.bind import from_sql

TABLES = {"r": "ab", "s": "bc", "t": "ca", "g": "ck", "m": "abc"}
VARYING = ("r", "s", "t", "m")
CATALOG = catalog(
    *(Table(name, tuple((c, t.INTEGER) for c in columns), ()) for name, columns in TABLES.items())
)
FACTS = {c: ColumnFacts(range=(-1, 2), values=(1, 2, 3)) for c in "abck"}
POLICY = Policy(
    "",
    {
        name: TableFacts(("c",) if name == "g" else (), {}, {c: FACTS[c] for c in columns})
        for name, columns in TABLES.items()
    },
    (Protection("rows", "rows", Fraction(1), tables=VARYING),),
)
BETAS = (Fraction(1, 5), Fraction(2))


def release_of(text, policy=POLICY):
    (aggregate,) = [
        node for node in n.walk(normalize(from_sql(text, CATALOG))) if isinstance(node, n.Aggregate)
    ]
    found = enforce(aggregate, "release1", Facts(policy, CATALOG), policy.protections)
    assert isinstance(found, MeasuredAggregate), found
    return found


def asked(text, policy=POLICY):
    release = release_of(text, policy)
    request = Request(release, Facts(policy, CATALOG), policy.protections[0])
    return release, MultiplicityAnalysis().bound(request)


class Question:
    """A query that the analysis bounds, read on databases through the plan's own meaning."""

    def __init__(self, text, policy=POLICY):
        self.release, self.certificate = asked(text, policy)
        assert isinstance(self.certificate, Certificate), self.certificate
        (self.measure,) = self.release.measures
        self.bound = self.certificate.bounds[self.measure.column]
        assert isinstance(self.bound, Surveyed)
        (self.survey,) = self.bound.surveys
        for statement in self.survey.statements:
            verify(statement)
        self.exact = prepare(self.release.exact)
        self.statements = [prepare(s) for s in self.survey.statements]
        self.width = len(self.release.exact.keys)
        self.read = {}
        self.smoothed = {}

    def reading(self, database):
        key = tuple(database.items())
        if key not in self.read:
            tables = {
                name: [dict(zip(TABLES[name], row, strict=True)) for row in rows]
                for name, rows in database.items()
            }
            values = {
                tuple(map(same_key, row[: self.width])): Fraction(row[self.width] or 0)
                / self.measure.step
                for row in self.exact(tables)
            }
            figures = []
            for run, keyed in zip(self.statements, self.survey.keyed, strict=True):
                rows = run(tables)
                if keyed:
                    grouped = {}
                    for row in rows:
                        group = tuple(map(same_key, row[: self.width]))
                        grouped.setdefault(group, []).append(row[self.width :])
                    figures.append(grouped)
                else:
                    figures.append(tuple(rows))
            self.read[key] = values, figures
        return self.read[key]

    def rows(self, database, beta, group=()):
        figures = tuple(
            tuple(f.get(group, ())) if isinstance(f, dict) else f for f in self.reading(database)[1]
        )
        if (figures, beta) not in self.smoothed:
            self.smoothed[figures, beta] = self.survey.rows(beta, figures)
        return self.smoothed[figures, beta]

    def groups(self):
        return [((False, v),) for v in (1, 2, 3)] if self.width else [()]

    def faults(self, one, two):
        """Give the promises that a pair of neighbors refutes."""
        before, after = self.reading(one)[0], self.reading(two)[0]
        found = []
        moved = 0
        for group in self.groups():
            change = abs(before.get(group, 0) - after.get(group, 0))
            other = change != 0
            for beta in BETAS:
                left, right = self.rows(one, beta, group), self.rows(two, beta, group)
                if change > self.bound.each * min(left, right):
                    found.append(("moves", beta, change, float(min(left, right))))
                if max(left, right) > Fraction(math.exp(beta)) * min(left, right) * (
                    1 + Fraction(1, 10**12)
                ):
                    found.append(("smooth", beta, float(left), float(right)))
                other = other or left != right
            moved += other
        if moved > self.bound.groups:
            found.append(("groups", moved))
        return found


def drawn(draw):
    rows = {
        name: [
            tuple(draw.choice((1, 1, 2, 2, None)) for _ in columns)
            for _ in range(draw.randint(0, 3))
            for _ in range(draw.choice((1, 1, 1, 2)))
        ]
        for name, columns in TABLES.items()
    }
    rows["g"] = list({row[0]: row for row in rows["g"] if row[0] is not None}.values())
    return {name: tuple(sorted(found, key=str)) for name, found in rows.items()}


def neighbors(database, read):
    for name in VARYING:
        if name not in read:
            continue
        rows = database[name]
        for index in range(len(rows)):
            yield {**database, name: rows[:index] + rows[index + 1 :]}
        for pair in ((1, 1), (1, 2), (2, 1), (3, 3), (3, 1)):
            row = (*pair, pair[0])[: len(TABLES[name])]
            yield {**database, name: tuple(sorted((*rows, row), key=str))}


def search(question, seed=1, databases=3, steps=1):
    """Walk from drawn databases over their neighbors; give the first refuted promises."""
    draw = random.Random(seed)
    read = {s.table.lower() for s in n.walk(question.release.exact) if isinstance(s, n.Scan)}
    for _ in range(databases):
        database = drawn(draw)
        for _ in range(steps):
            around = list(neighbors(database, read))
            for other in around:
                found = question.faults(database, other)
                if found:
                    return found
            database = draw.choice(around)
    return []


TEXTS = [
    "SELECT count(*) FROM r",
    "SELECT count(*) FROM r, s WHERE r.b = s.b",
    "SELECT sum(r.a) FROM r, s WHERE r.b = s.b AND s.c > 1",
    "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c",
    "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND t.a = r.a",
    "SELECT count(*) FROM r x, r y WHERE x.b = y.b",
    "SELECT count(*) FROM r x, r y WHERE x.b = y.b AND x.a < y.a",
    "SELECT count(*) FROM r x, r y WHERE x.b = y.a",
    "SELECT count(*) FROM r x, r y, r z WHERE x.b = y.b AND y.b = z.b",
    "SELECT count(*) FROM r x, r y, r z WHERE x.a = y.b AND y.a = z.b AND z.a = x.b",
    "SELECT count(*) FROM r x, r y, r z WHERE x.a = y.b AND y.a = z.b",
    "SELECT count(*) FROM m x, m y, m z WHERE x.a = y.a AND y.b = z.b AND z.c = x.c",
    "SELECT count(*) FROM r, s WHERE r.b < s.b",
    "SELECT count(*) FROM r, s WHERE NOT (r.b = s.b)",
    "SELECT count(*) FROM r, s WHERE (r.a = 1 AND s.c = 2) OR (r.a = 2 AND NOT s.c IN (1, 2))",
    "SELECT count(*) FROM r, s WHERE r.b = s.b OR r.a = s.c",
    "SELECT count(*) FROM r, s, t",
    "SELECT count(DISTINCT r.a) FROM r, s WHERE r.b = s.b",
    "SELECT count(*) FROM (SELECT DISTINCT b FROM r) AS x, s WHERE x.b = s.b",
    "SELECT count(*) FROM (SELECT DISTINCT b FROM r) AS x, r AS y, s WHERE x.b = y.b AND y.b = s.b",
    "SELECT count(*) FROM s, g WHERE s.c = g.c",
    "SELECT sum(g.k) FROM r, s, g WHERE r.b = s.b AND s.c = g.c AND r.a <> g.k",
    "SELECT count(*) FROM r x, r y, g WHERE x.b = y.b AND x.a = g.k",
    "SELECT count(*) FROM r, s, g x, g y WHERE r.b = s.b AND s.c = x.c AND x.k = y.k",
    "SELECT count(*) FROM r x, s, r y WHERE x.b = s.b AND s.c = y.a AND x.a BETWEEN 1 AND 2",
    "SELECT b, count(*) FROM r GROUP BY b",
    "SELECT r.b, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.b",
    "SELECT r.a, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.a",
    "SELECT x.b, count(*) FROM r x, r y WHERE x.b = y.a GROUP BY x.b",
    "SELECT g.k, count(*) FROM s, g WHERE s.c = g.c GROUP BY g.k",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_no_neighbor_refutes_the_bound(text):
    assert search(Question(text)) == []


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", range(10, 14))
def test_no_neighbor_refutes_the_bound_in_a_longer_search(text, seed):
    assert search(Question(text), seed, databases=25, steps=3) == []


# ── figures by hand ──────────────────────────────────────────────────────────────────────────────


def database(**tables):
    return {name: tuple(tables.get(name, ())) for name in TABLES}


def largest(function, beta):
    return max(math.exp(-beta * k) * function(k) for k in range(400))


def test_two_tables_on_a_key_have_the_largest_frequency_plus_k():
    question = Question("SELECT count(*) FROM r, s WHERE r.b = s.b")
    full = database(r=[(1, 1)] * 4 + [(1, 2)], s=[(1, 1), (2, 1)])
    found = question.rows(full, Fraction(1, 10))
    assert float(found) == pytest.approx(largest(lambda k: 4 + k, 0.1), rel=1e-9)


def test_an_empty_partner_still_needs_noise():
    """papers.md, error 8: nothing is joined, and one row more could be."""
    question = Question("SELECT count(*) FROM r, s WHERE r.b = s.b")
    found = question.rows(database(r=[]), Fraction(1, 10))
    assert float(found) == pytest.approx(largest(lambda k: k, 0.1), rel=1e-9)


def test_three_copies_on_one_key_grow_together():
    question = Question("SELECT count(*) FROM r x, r y, r z WHERE x.b = y.b AND y.b = z.b")
    found = question.rows(database(r=[(1, 1)] * 5), Fraction(1, 10))
    by_copy = [
        largest(lambda k: (6 + k) ** 2, 0.1),
        largest(lambda k: (5 + k) * (6 + k), 0.1),
        largest(lambda k: (5 + k) ** 2, 0.1),
    ]
    assert float(found) == pytest.approx(sum(by_copy), rel=1e-9)


def test_counts_that_lie_on_different_keys_do_not_multiply():
    """A star on one column: frequent values of two tables that do not meet in one pattern."""
    question = Question("SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.b = t.a")
    apart = database(r=[(1, 1)] * 9, s=[(2, 1)] * 9, t=[(1, 3)] * 9)
    together = database(r=[(1, 1)] * 9, s=[(1, 1)] * 9, t=[(1, 1)] * 9)
    beta = Fraction(2)
    assert question.rows(together, beta) > 80
    assert question.rows(apart, beta) < 5


def overlapping():
    """Columns (a, c), (a, b) and (b, c) of one table; give the bounds of two neighbors for some betas."""
    question = Question(
        "SELECT count(*) FROM m x, m y, m z WHERE x.a = y.a AND y.b = z.b AND z.c = x.c "
        "AND x.b = 7 AND y.c = 8 AND z.a = 9"
    )
    rows = [(1, 7, 1), (1, 2, 8), (9, 1, 1)] * 20
    before, after = database(m=rows), database(m=[*rows, (1, 1, 8)])
    for beta in (Fraction(3, 10), Fraction(1, 2), Fraction(1)):
        yield beta, question.rows(before, beta), question.rows(after, beta)


def test_three_copies_whose_patterns_overlap_pairwise_stay_smooth():
    for beta, left, right in overlapping():
        assert max(left, right) <= min(left, right) * Fraction(math.exp(beta))


def test_forgetting_only_where_patterns_are_met_is_not_smooth(monkeypatch):
    """What is forgotten must follow from the shapes that there could be, not from those that have patterns."""
    right = patterns._settled

    def seen(found):
        full = right(found).parts
        return patterns.PatternMap({s: p for s, p in full.items() if not s or len(p.values)})

    monkeypatch.setattr(patterns, "_settled", seen)
    assert any(
        max(left, right) > min(left, right) * Fraction(math.exp(beta))
        for beta, left, right in overlapping()
    )


def test_a_public_key_counts_once():
    """Rows of g are met by their key: without it all of them would count."""
    text = "SELECT count(*) FROM r, s, g WHERE r.b = s.b AND s.c = g.c"
    question = Question(text)
    assert [c.table for c in question.certificate.claims] == ["g"]
    rows = database(r=[(1, 1)], s=[(1, 1)], g=[(1, 1), (2, 1), (3, 1)])
    assert question.rows(rows, Fraction(2)) < 2
    bare = Policy("", {**POLICY.tables, "g": TableFacts()}, POLICY.protections)
    free = Question(text, bare)
    assert free.certificate.claims == ()
    assert free.rows(rows, Fraction(1, 2)) > question.rows(rows, Fraction(1, 2))


def test_public_tables_do_not_grow():
    question = Question("SELECT count(*) FROM s, g WHERE s.c < g.c")
    found = question.rows(database(g=[(1, 1), (2, 1), (3, 1)]), Fraction(1, 10))
    assert float(found) == pytest.approx(3, rel=1e-9)


def test_a_condition_on_one_column_reaches_its_equals():
    question = Question("SELECT count(*) FROM r, s WHERE r.b = s.b AND s.b = 2")
    found = question.rows(database(r=[(1, 1)] * 7 + [(1, 2)]), Fraction(3))
    assert found < 2


# ── planted faults ───────────────────────────────────────────────────────────────────────────────


def caught(*texts):
    return any(
        search(Question(text), seed, databases=12, steps=2) for text in texts for seed in (1, 2)
    )


def test_charging_each_copy_by_itself_is_caught(monkeypatch):
    """papers.md, error 7."""
    monkeypatch.setattr(
        copies, "Growth", lambda tables, extra: Growth(tuple(range(len(tables))), extra)
    )
    assert caught("SELECT count(*) FROM r x, r y, r z WHERE x.b = y.b AND y.b = z.b")


def test_leaving_unseen_patterns_out_is_caught(monkeypatch):
    """papers.md, error 8."""
    monkeypatch.setattr(
        reading, "_labeled", lambda copy, top, shapes: pattern_of(0.0, copy, shapes[:1])
    )
    assert caught(
        "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.b = t.a",
        "SELECT count(*) FROM r x, r y WHERE x.b = y.a",
    )


LABELED = reading._labeled


def pattern_of(top, copy, shapes):
    return LABELED(copy, top, shapes)


def test_merging_without_stars_is_caught(monkeypatch):
    """papers.md, error 9."""
    right = patterns.merge

    def bare(one, two):
        left, other = (
            patterns.PatternMap({s: p for s, p in m.parts.items() if s} or m.parts)
            for m in (one, two)
        )
        return patterns.PatternMap({**right(left, other).parts, (): right(one, two).parts[()]})

    monkeypatch.setattr(patterns, "merge", bare)
    assert caught("SELECT count(*) FROM r x, s, r y, t WHERE x.b = s.b AND y.b = t.a")


def test_one_minus_what_is_inside_is_caught(monkeypatch):
    """papers.md, error 10."""
    right = conditions.projected

    def recursive(scalar, known, equal, *, negated=False):
        if isinstance(scalar, n.Not):
            inner = right(scalar.operand, known, equal)
            return n.Literal(False, t.BOOLEAN) if inner is None else n.Not(inner)
        return right(scalar, known, equal, negated=negated)

    monkeypatch.setattr(conditions, "projected", recursive)
    assert caught("SELECT count(*) FROM r, s WHERE NOT (r.b = s.b)")


def test_forgetting_the_row_itself_in_later_copies_is_caught(monkeypatch):
    monkeypatch.setattr(copies, "Growth", lambda tables, extra: Growth(tables, (0,) * len(extra)))
    assert caught("SELECT count(*) FROM r x, r y WHERE x.b = y.b")


def test_keys_of_protected_tables_are_not_believed():
    told = Policy("", {**POLICY.tables, "s": TableFacts(("b",), {}, {})}, POLICY.protections)
    text = "SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c"
    question = Question(text, told)
    assert question.certificate.claims == ()
    assert search(question) == []


def test_believing_them_is_caught(monkeypatch):
    monkeypatch.setattr(
        copies.Planner, "_settled",
        lambda self, place: frozenset(j for j in range(len(self.query.atoms)) if j != place),
    )  # fmt: skip
    assert caught("SELECT count(*) FROM r, s, t WHERE r.b = s.b AND s.c = t.c")


# ── what is said and refused ─────────────────────────────────────────────────────────────────────


def test_the_derivation_names_the_copies():
    _, found = asked("SELECT count(*) FROM r x, r y, s WHERE x.b = y.b AND y.a = s.c")
    rules, pending = set(), list(found.derivation)
    while pending:
        step = pending.pop()
        rules.add(step.rule)
        pending.extend(step.premises)
    assert {
        "multiplicity.measures",
        "multiplicity.merge",
        "multiplicity.fill",
        "multiplicity.pattern",
    } <= rules


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("SELECT r.b, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.b", 1),
        ("SELECT r.a, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.a", 4),
        ("SELECT x.b, count(*) FROM r x, r y WHERE x.b = y.a GROUP BY x.b", 2),
    ],
)
def test_groups_that_one_row_moves(text, groups):
    _, found = asked(text)
    assert {b.groups for b in found.bounds.values()} == {groups}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT count(*) FROM r LEFT JOIN s ON r.b = s.b", "multiplicity.shape"),
        (
            "SELECT count(*) FROM (SELECT b FROM r UNION ALL SELECT b FROM s) AS u",
            "multiplicity.shape",
        ),
        ("SELECT count(*) FROM (SELECT DISTINCT r.b FROM r, s) AS u", "multiplicity.shape"),
        ("SELECT count(*) FROM (SELECT b FROM r ORDER BY b LIMIT 2) AS u", "multiplicity.shape"),
        (
            "SELECT count(*) FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
            "multiplicity.shape",
        ),
        (
            "SELECT count(*) FROM "
            + ", ".join(f"r x{i}" for i in range(MOST_ATOMS + 1))
            + " WHERE "
            + " AND ".join(f"x{i}.b = x{i + 1}.b" for i in range(MOST_ATOMS)),
            "multiplicity.shape",
        ),
        ("SELECT median(a) FROM r", "multiplicity.rank"),
    ],
)
def test_what_has_no_rule_is_refused_with_a_hint(text, rule):
    _, found = asked(text)
    assert isinstance(found, Refusal)
    assert found.rule == rule
    assert found.reason
    assert found.hint


def test_without_numpy_there_is_a_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    _, found = asked("SELECT count(*) FROM r, s WHERE r.b = s.b")
    assert isinstance(found, Refusal)
    assert found.rule == "multiplicity.missing"
    assert "secant[numeric]" in found.hint


def test_other_kinds_of_protection_are_refused():
    units = Protection("people", "unit", Fraction(1), unit=("r", "a"), limits={"r": 1})
    release = release_of("SELECT count(*) FROM r")
    found = MultiplicityAnalysis().bound(Request(release, Facts(POLICY, CATALOG), units))
    assert isinstance(found, Refusal)
    assert found.rule == "multiplicity.kind"


def test_keys_that_are_chosen_privately_are_refused():
    bare = {
        name: TableFacts((), {}, {c: ColumnFacts() for c in columns})
        for name, columns in TABLES.items()
    }
    protection = Protection("rows", "rows", Fraction(1), Fraction(1, 1000), tables=VARYING)
    _, found = asked(
        "SELECT r.b, count(*) FROM r, s WHERE r.b = s.b GROUP BY r.b",
        Policy("", bare, (protection,)),
    )
    assert isinstance(found, Refusal)
    assert found.rule == "multiplicity.groups"


def test_ten_copies_have_a_bound():
    text = (
        "SELECT count(*) FROM "
        + ", ".join(f"r x{i}" for i in range(10))
        + " WHERE "
        + " AND ".join(f"x{i}.b = x{i + 1}.b" for i in range(9))
    )
    question = Question(text)
    found = question.rows(database(r=[(1, 1), (1, 1)]), Fraction(1, 2))
    assert found > 3**10 - 2**10


def test_a_query_over_public_tables_does_not_move():
    public = Policy("", POLICY.tables, (Protection("rows", "rows", Fraction(1), tables=("t",)),))
    _, found = asked("SELECT count(*) FROM s, g WHERE s.c = g.c", public)
    assert isinstance(found, Certificate)
    assert all(b.value == 0 for b in found.bounds.values())


@pytest.mark.parametrize("text", [TEXTS[4], TEXTS[9], TEXTS[11], TEXTS[14], TEXTS[19], TEXTS[26]])
def test_the_engine_counts_what_the_plan_means(text):
    question = Question(text)
    draw = random.Random(7)
    rows = drawn(draw)
    with duckdb.connect() as engine:
        for name, columns in TABLES.items():
            engine.execute(f"CREATE TABLE {name} ({', '.join(f'{c} BIGINT' for c in columns)})")
            for row in rows[name]:
                marks = ", ".join("?" for _ in row)
                engine.execute(f"INSERT INTO {name} VALUES ({marks})", list(row))
        tables = {
            name: [dict(zip(TABLES[name], row, strict=True)) for row in found]
            for name, found in rows.items()
        }
        for statement, run in zip(question.survey.statements, question.statements, strict=True):
            found = engine.execute(lower(statement)).fetchall()
            assert sorted(found, key=str) == sorted(map(tuple, run(tables)), key=str)
