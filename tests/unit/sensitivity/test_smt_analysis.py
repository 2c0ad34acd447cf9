"""What the solver proves, what it refuses, and what it says then."""

import sys
from dataclasses import replace
from fractions import Fraction

import pytest
import z3

from secant.errors import UsageError
from secant.plan import nodes as n
from secant.plan.facts.facts import Facts
from secant.plan.rewrites.enforce import MeasuredAggregate, enforce
from secant.plan.rewrites.rewrite import normalize
from secant.policy.keys import Key, Trust
from secant.policy.policy import ColumnFacts, Policy, Protection, TableFacts
from secant.schema import types as t
from secant.schema.catalog import Table, catalog
from secant.sensitivity.certificate import Certificate, Refusal
from secant.sensitivity.interface import Request
from secant.sensitivity.smt.analysis import SmtAnalysis, smt_lib
from secant.sensitivity.smt.language import Language
from secant.sensitivity.smt.rules import EncodedKey, Encoder
from secant.sensitivity.smt.search import search
from secant.sql.bind import from_sql

CATALOG = catalog(
    Table(
        "person",
        (("id", t.INTEGER), ("city", t.TEXT), ("age", t.INTEGER), ("born", t.DATE)),
        (("id",),),
    ),
    Table(
        "visit",
        (("pid", t.INTEGER), ("slot", t.INTEGER), ("cost", t.decimal(8, 2)), ("late", t.BOOLEAN)),
        (("pid", "slot"),),
    ),
    Table("note", (("pid", t.INTEGER), ("kind", t.INTEGER), ("weight", t.DOUBLE)), ()),
    Table("beat", (("pid", t.INTEGER), ("at", t.TIMESTAMP)), (("pid", "at"),)),
    Table("city", (("name", t.TEXT), ("size", t.INTEGER)), ()),
    Table("street", (("city", t.TEXT), ("length", t.INTEGER)), ()),
)
ROWS = Protection("rows", "rows", Fraction(1), tables=("person", "visit", "note", "beat"))
FACTS = {
    "visit": TableFacts(columns={"cost": ColumnFacts(range=(0, 10))}),
    "note": TableFacts(key=("kind",), references={"pid": ("person", "id")}),
    "city": TableFacts(key=("name",)),
}
POLICY = Policy("", FACTS, (ROWS,))


def asked(text, policy=POLICY):
    plan = normalize(from_sql(text, CATALOG))
    aggregate = next(x for x in n.walk(plan) if isinstance(x, n.Aggregate))
    release = enforce(aggregate, "r", Facts(policy, CATALOG), policy.protections)
    assert isinstance(release, MeasuredAggregate), release
    return Request(release, Facts(policy, CATALOG), policy.protections[0])


def bounded(text, policy=POLICY, **limits):
    found = SmtAnalysis(**{"seconds": 60, **limits}).bound(asked(text, policy))
    assert isinstance(found, Certificate), found
    return found


def refused(text, policy=POLICY, **limits):
    found = SmtAnalysis(**{"seconds": 60, **limits}).bound(asked(text, policy))
    assert isinstance(found, Refusal), found
    return found


def rules_of(steps):
    return {s.rule for s in steps} | {r for s in steps for r in rules_of(s.premises)}


PROVED = [
    # keys
    ("SELECT count(*) FROM person", 1),
    ("SELECT count(*) FROM person p JOIN city c ON p.city = c.name", 1),
    ("SELECT count(*) FROM person p LEFT JOIN city c ON p.city = c.name", 1),
    ("SELECT count(*) FROM person p JOIN city c ON p.city = c.name AND c.size > p.age", 1),
    ("SELECT count(*) FROM person p JOIN visit v ON v.pid = p.id AND v.slot = p.age", 1),
    ("SELECT count(*) FROM person p JOIN person q ON p.id = q.id", 1),
    ("SELECT count(*) FROM city c LEFT JOIN person p ON p.city = c.name", 2),
    # small fan-outs
    ("SELECT count(*) FROM person p, visit v WHERE v.pid = p.id AND v.slot BETWEEN 1 AND 3", 3),
    ("SELECT count(*) FROM person p, visit v WHERE v.pid = p.id AND v.slot IN (1, 4)", 2),
    ("SELECT count(*) FROM person p, visit v WHERE v.pid = p.id AND abs(v.slot) <= 2", 5),
    (
        "SELECT count(*) FROM person p, visit v WHERE v.pid = p.id AND 2 * v.slot + 1 BETWEEN 0 AND 9",
        5,
    ),
    (
        (
            "SELECT count(*) FROM person p, visit v, visit w WHERE v.pid = p.id AND w.pid = p.id "
            "AND v.slot IN (1, 2) AND w.slot IN (1, 2)"
        ),
        4,
    ),
    (
        (
            "SELECT count(*) FROM person p, visit v, visit w WHERE v.pid = p.id AND w.pid = p.id "
            "AND v.slot IN (1, 2, 3) AND w.slot = v.slot + 1"
        ),
        3,
    ),
    # the same table twice in a group of three: a row is counted with itself and with two others
    (
        "SELECT count(*) FROM visit v, visit w WHERE v.pid = w.pid AND v.slot IN (1,2,3) AND w.slot IN (1,2,3)",
        5,
    ),
    ("SELECT count(*) FROM visit v, visit w WHERE v.pid = w.pid AND v.slot = 1 AND w.slot = 2", 1),
    # sets
    ("SELECT count(*) FROM (SELECT id FROM person UNION ALL SELECT id FROM person) x", 2),
    ("SELECT count(*) FROM (SELECT id FROM person UNION SELECT id FROM person) x", 1),
    (
        (
            "SELECT count(*) FROM (SELECT id FROM person WHERE age > 5 UNION ALL "
            "SELECT id FROM person WHERE age < 3) x"
        ),
        1,
    ),
    ("SELECT count(*) FROM (SELECT age FROM person EXCEPT ALL SELECT pid FROM note) x", 1),
    ("SELECT count(*) FROM (SELECT age FROM person EXCEPT ALL SELECT age FROM person) x", 2),
    (
        (
            "SELECT count(*) FROM (SELECT age FROM person WHERE age > 5 INTERSECT "
            "SELECT pid FROM note WHERE pid < 3) x"
        ),
        0,
    ),
    (
        (
            "SELECT count(*) FROM (SELECT age FROM person WHERE age > 5 EXCEPT "
            "SELECT pid FROM note WHERE pid < 3) x"
        ),
        1,
    ),
    ("SELECT count(*) FROM (SELECT DISTINCT city FROM person) x", 1),
    (
        "SELECT count(*) FROM (SELECT DISTINCT p.city FROM person p, person q WHERE p.city = q.city) x",
        1,
    ),
    (
        "SELECT count(*) FROM (SELECT DISTINCT v.slot FROM person p, visit v WHERE v.slot IN (1, 2)) x",
        2,
    ),
    ("SELECT count(*) FROM (SELECT DISTINCT late FROM person, visit) x", 3),
    # groups
    ("SELECT count(*) FROM (SELECT pid, count(*) AS c FROM note GROUP BY pid) x", 1),
    ("SELECT count(c) FROM (SELECT pid, count(*) AS c FROM note GROUP BY pid) x", 2),
    ("SELECT count(*) FROM (SELECT pid FROM note GROUP BY pid) x", 1),
    ("SELECT count(*) FROM (SELECT pid, count(*) AS c FROM note GROUP BY pid) x WHERE c > 3", 2),
    (
        (
            "SELECT count(c) FROM (SELECT v.slot, count(*) AS c FROM person p, visit v "
            "WHERE v.pid = p.id AND v.slot IN (1, 2) GROUP BY v.slot) x"
        ),
        4,
    ),
    (
        "SELECT count(*) FROM person p, (SELECT city AS c, max(length) FROM street GROUP BY city) s WHERE c = p.city",
        1,
    ),
    # conditions that cannot hold, or hold for NULL only
    ("SELECT count(*) FROM person WHERE age > 3 AND age < 2", 0),
    ("SELECT count(*) FROM person WHERE age = NULL", 0),
    ("SELECT count(*) FROM person WHERE NOT (age > 3 OR age <= 3 OR age IS NULL)", 0),
    ("SELECT count(*) FROM person WHERE NOT (age > 3 OR age <= 3)", 0),
    ("SELECT count(*) FROM person WHERE born < date '2000-01-01' AND born > date '2001-01-01'", 0),
    ("SELECT count(*) FROM person WHERE city < 'b' AND city > 'c'", 0),
    ("SELECT count(*) FROM person WHERE CASE WHEN age > 3 THEN 1 ELSE 2 END = 3", 0),
    ("SELECT count(*) FROM person WHERE coalesce(age, 0) < 0 AND age IS NULL", 0),
    ("SELECT count(*) FROM person WHERE EXISTS (SELECT 1 FROM city WHERE name = person.city)", 1),
    ("SELECT count(*) FROM city", 0),
]


@pytest.mark.parametrize(("text", "rows"), PROVED)
def test_the_number_of_rows_is_right(text, rows):
    found = bounded(text)
    assert found.rows == rows
    assert {bound.value for bound in found.bounds.values()} == {rows}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM person p JOIN note m ON m.pid = p.id",
        "SELECT count(*) FROM person p JOIN visit v ON v.pid = p.id",
        "SELECT count(*) FROM person p, visit v WHERE v.pid = p.id AND v.slot > 3",
        "SELECT count(*) FROM person p JOIN person q ON p.city = q.city AND p.id <> q.id",
        "SELECT count(*) FROM person a, person b, person c",
        "SELECT count(*) FROM person p JOIN street s ON s.city = p.city",
        "SELECT count(*) FROM person p JOIN city c ON c.size = p.age JOIN street s ON s.city = c.name",
        "SELECT count(*) FROM (SELECT DISTINCT v.slot FROM person p, visit v) x",
        "SELECT count(*) FROM (SELECT age FROM person UNION ALL SELECT v.slot FROM person, visit v) x",
        "SELECT count(*) FROM (SELECT v.slot, count(*) AS c FROM person p, visit v GROUP BY v.slot) x",
        "SELECT count(*) FROM " + ", ".join(f"person p{i}" for i in range(10)),
    ],
)
def test_what_has_no_bound_is_shown_by_rows_that_the_solver_made_up(text):
    found = refused(text)
    assert found.rule == "smt.unbounded"
    assert "made up by the solver" in found.reason
    assert " 1 (" in found.reason
    assert found.hint


def test_a_null_join_key_meets_nothing():
    # two rows whose unique key is NULL are allowed, and meet nothing
    assert (
        bounded(
            "SELECT count(*) FROM visit v JOIN person p ON p.id = v.pid AND v.pid = 3 AND v.slot = 1"
        ).rows
        == 1
    )
    old, young = "SELECT id FROM person WHERE age > 5", "SELECT id FROM person WHERE age < 3"
    found = bounded(f"SELECT count(*) FROM ({old} INTERSECT ALL {young}) x")
    assert found.rows == 1  # NULL is the one id that both a young and an old person can have


def test_whole_numbers_beside_reals_may_become_equal():
    """Rounding to floats makes 2**53 and 2**53 + 1 one number: an equal key is not one row."""
    found = refused("SELECT count(*) FROM note JOIN person ON person.id = note.weight", most=3)
    assert found.rule == "smt.large"


def test_there_may_be_many_moments_in_a_microsecond():
    span = "b.at BETWEEN timestamp '2020-01-01 00:00:00' AND timestamp '2020-01-01 00:00:00.000001'"
    found = refused(f"SELECT count(*) FROM person p, beat b WHERE b.pid = p.id AND {span}", most=3)
    assert found.rule == "smt.large"


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (
            "SELECT sum(CASE WHEN 1 / w > 0 THEN 1 ELSE 2 END) FROM (SELECT DISTINCT weight AS w FROM note) x",
            2,
        ),
        ("SELECT count(w) FROM (SELECT weight AS w FROM note GROUP BY weight) x", 2),
        ("SELECT count(w) FROM (SELECT weight AS w FROM note EXCEPT SELECT size FROM city) x", 2),
        ("SELECT count(DISTINCT weight) FROM note", 1),
    ],
)
def test_equal_floats_may_take_each_others_place(text, rows):
    """DISTINCT keeps 0.0 or -0.0, and what stands above may tell them apart."""
    assert bounded(text).rows == rows


def test_which_of_equal_floats_are_left_is_not_bounded():
    text = "SELECT count(w) FROM (SELECT weight AS w FROM note EXCEPT ALL SELECT size FROM city) x"
    assert refused(text).rule == "smt.set"


def test_keys_of_public_tables_are_claimed_only_where_the_proof_needs_them():
    joined = bounded("SELECT count(*) FROM person p JOIN city c ON p.city = c.name")
    assert joined.claims == (Key("city", ("name",), Trust.CHECKED),)
    alone = bounded(
        "SELECT count(*) FROM person WHERE EXISTS (SELECT 1 FROM city WHERE name = 'a')"
    )
    assert alone.claims == ()


DECLARED = "SELECT count(*) FROM person p JOIN note m ON m.pid = p.id AND m.kind = p.age"


def test_declared_keys_of_protected_tables_are_believed_only_if_the_owner_accepts_them():
    assert refused(DECLARED).rule == "smt.unbounded"
    found = bounded(DECLARED, replace(POLICY, accept=("keys",)))
    assert found.rows == 1
    assert "smt.key" in rules_of(found.derivation)
    assert found.claims == (Key("note", ("kind",), Trust.ACCEPTED),)


def test_a_reference_makes_its_target_a_key_if_the_owner_accepts_it():
    loose = replace(CATALOG.tables["person"], unique=())
    text = "SELECT count(*) FROM note m JOIN person p ON m.pid = p.id"
    for accept, expected in (((), "smt.unbounded"), (("keys",), "smt.unbounded")):
        request = asked(text, replace(POLICY, accept=accept))
        without = catalog(*{**CATALOG.tables, "person": loose}.values())
        request = replace(request, facts=Facts(request.policy, without))
        found = SmtAnalysis(60).bound(request)
        assert isinstance(found, Refusal)
        assert found.rule == expected
        # with the key, only rows of the referenced table meet many
        assert ("row of note" in found.reason) == (not accept)


def test_replaced_rows_count_twice():
    policy = replace(POLICY, protections=(replace(ROWS, replace=True),))
    found = bounded("SELECT count(*) FROM person", policy)
    assert found.rows == 2
    assert "smt.replace" in rules_of(found.derivation)


def test_sums_and_distinct_values_have_their_own_bounds():
    found = bounded(
        "SELECT count(*), sum(v.cost), count(DISTINCT p.city) FROM person p, visit v "
        "WHERE v.pid = p.id AND v.slot IN (1, 2)"
    )
    rows, cost, cities = (bound.value for bound in found.bounds.values())
    request = asked("SELECT sum(cost) FROM visit")
    assert rows == 2
    assert cost == 2 * 10 / request.release.measures[0].step
    assert cities == 1
    assert found.groups >= 2


def test_distinct_values_are_bounded_where_rows_are_not():
    found = bounded("SELECT count(DISTINCT p.city) FROM person p JOIN note m ON m.pid = p.id")
    assert {bound.value for bound in found.bounds.values()} == {1}


def test_a_private_key_is_chosen_by_a_number_that_moves_as_far_as_the_rows():
    text = (
        "SELECT v.slot, count(*) FROM person p, visit v WHERE v.pid = p.id AND p.age = 1 "
        "AND v.slot = p.age + 1 GROUP BY v.slot"
    )
    found = bounded(text)
    assert (found.rows, found.contribution, found.groups) == (1, 1, 1)


def test_the_table_is_bounded_precisely_or_one_use_after_another():
    three = "(1, 2, 3)"
    text = (
        "SELECT count(*) FROM visit v, visit w WHERE v.pid = w.pid "
        f"AND v.slot IN {three} AND w.slot IN {three}"
    )
    relation = asked(text).release.exact.input
    key = EncodedKey((("pid", "INTEGER"), ("slot", "INTEGER")))
    found = []
    for copy in (None, 0, 1):
        encoder = Encoder(Language(z3), "visit", lambda table: (key,), copy)
        found.append(search(encoder, relation, frozenset(), 12, float("inf")).rows)
        assert len(encoder.uses) == 2
    assert found == [5, 3, 3]


def test_uses_are_added_up_if_the_precise_search_takes_too_long(monkeypatch):
    from secant.sensitivity.smt import analysis

    def tired(encoder, relation, labels, most, deadline):
        found = search(encoder, relation, labels, most, deadline)
        late = encoder.copy is None and most > 0
        return analysis.Verdict("unknown") if late else found

    monkeypatch.setattr(analysis, "search", tired)
    text = "SELECT count(*) FROM visit v, visit w WHERE v.pid = w.pid AND v.slot = 1 AND w.slot = 2"
    found = bounded(text)
    assert found.rows == 2
    assert "smt.copies" in str(found.derivation)


def test_unknown_is_a_refusal():
    assert refused("SELECT count(*) FROM person", seconds=1e-9).rule == "smt.time"


def test_more_rows_than_were_looked_for_are_a_refusal():
    text = "SELECT count(*) FROM person p, visit v WHERE v.pid = p.id AND v.slot BETWEEN 1 AND 20"
    found = refused(text, most=4)
    assert found.rule == "smt.large"
    assert "5 rows or more" in found.reason
    assert bounded(text, most=20).rows == 20


def test_without_the_solver_there_is_a_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "z3", None)
    found = refused("SELECT count(*) FROM person")
    assert found.rule == "smt.missing"
    assert "secant[smt]" in found.hint
    assert bounded("SELECT count(*) FROM city").rows == 0


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("SELECT count(*) FROM person WHERE id IN (SELECT pid FROM note)", "smt.subquery"),
        ("SELECT count(*) FROM (SELECT id FROM person ORDER BY age LIMIT 3) x", "smt.order"),
    ],
)
def test_what_has_no_formula_is_refused(text, rule):
    assert refused(text).rule == rule


def test_other_kinds_of_protection_are_refused():
    request = asked("SELECT count(*) FROM person")
    units = Protection("people", "unit", Fraction(1), unit=("person", "id"))
    found = SmtAnalysis().bound(replace(request, protection=units))
    assert isinstance(found, Refusal)
    assert found.rule == "smt.kind"


def test_order_statistics_are_refused():
    facts = {**FACTS, "person": TableFacts(columns={"age": ColumnFacts(range=(0, 100), step=1)})}
    found = refused("SELECT median(age) FROM person", replace(POLICY, tables=facts))
    assert found.rule == "smt.rank"


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"seconds": float("nan")}, {"most": -1}])
def test_limits_are_checked(limits):
    with pytest.raises(UsageError) as error:
        SmtAnalysis(**limits)
    assert error.value.code == "USE-001"


# ── the obligation ───────────────────────────────────────────────────────────────────────────────


def answer_of(text):
    solver = z3.Solver(ctx=z3.Context())
    solver.from_string(text)
    return str(solver.check())


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT count(*) FROM person p JOIN city c ON p.city = c.name", 1),
        ("SELECT count(*) FROM person p, visit v WHERE v.pid = p.id AND v.slot IN (1, 2, 3)", 3),
        ("SELECT count(*) FROM (SELECT id FROM person UNION ALL SELECT id FROM person) x", 2),
        ("SELECT count(*) FROM person WHERE city LIKE '%a|b\\%' OR city = '|'", 1),
        ("SELECT count(*) FROM person LEFT JOIN city ON city = name WHERE upper(name) < 'b'", 1),
    ],
)
def test_another_solver_can_check_the_proof(text, rows):
    request = asked(text)
    assert answer_of(smt_lib(request)) == "unsat"
    assert answer_of(smt_lib(request, rows + 1)) == "unsat"
    assert answer_of(smt_lib(request, rows)) == "sat"


def test_the_obligation_is_the_same_text_every_time():
    text = (
        "SELECT count(*) FROM person p LEFT JOIN city c ON p.city = c.name AND upper(c.name) > 'a'"
    )
    assert smt_lib(asked(text), 2) == smt_lib(asked(text), 2)
    assert smt_lib(asked(text), 2).rstrip().endswith("(check-sat)")


def test_an_obligation_for_no_row_makes_no_sense():
    with pytest.raises(UsageError):
        smt_lib(asked("SELECT count(*) FROM person"), 0)
