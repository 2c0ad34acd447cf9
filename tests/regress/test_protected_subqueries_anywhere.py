"""Ours: a sort key, and the argument of MIN, MAX or MEDIAN, could ask a protected table for nothing.

`ORDER BY (CASE WHEN EXISTS (...) THEN -v ELSE v END) LIMIT 1` over constants, and `max(CASE WHEN EXISTS (...) THEN w
END)` over a public table, were answered exactly and charged 0: the answer said whether Bob was there. Here a question
about Bob stands in every place of SQL that can hold one; each is refused, or it is noisy and paid for.
"""

import duckdb
import pytest

import secant
from secant.errors import Refused, SqlError
from secant.plan.facts.reads import expressions
from secant.plan.rewrites.enforce import MeasuredAggregate

BOB = "EXISTS (SELECT 1 FROM b WHERE b.n > 3)"
VALUE = f"(CASE WHEN {BOB} THEN w ELSE 0 END)"
SORTED = (
    "SELECT sum(v) FROM (SELECT v FROM (VALUES (0)) t(v) UNION ALL SELECT v FROM (VALUES (1)) u(v)"
    f" ORDER BY (CASE WHEN {BOB} THEN -v ELSE v END) LIMIT 1) q"
)
RANKED = tuple(f"SELECT {f} FROM p" for f in (
    f"max({VALUE})", f"min({VALUE})", f"median({VALUE})", f"quantile_cont({VALUE}, 0.25)",
    f"quantile_disc({VALUE}, 0.75)",
))  # fmt: skip
TEXTS = (
    SORTED,
    *RANKED,
    f"SELECT w FROM p ORDER BY (CASE WHEN {BOB} THEN -w ELSE w END)",
    f"SELECT w FROM p ORDER BY (CASE WHEN {BOB} THEN -w ELSE w END) LIMIT 1",
    f"SELECT DISTINCT w FROM p ORDER BY {VALUE}",
    "SELECT w FROM p LIMIT (SELECT count(*) FROM b)",
    "SELECT w FROM p ORDER BY w LIMIT 2 OFFSET (SELECT count(*) FROM b)",
    f"SELECT w FROM p LIMIT CASE WHEN {BOB} THEN 1 ELSE 0 END",
    f"SELECT count(*) FROM (SELECT w FROM p ORDER BY {VALUE} LIMIT 1) q WHERE w > 15",
    "SELECT * FROM (VALUES ((SELECT max(n) FROM b))) t(v)",
    f"SELECT sum(v) FROM (VALUES ({VALUE.replace('w', '1')})) t(v)",
    f"SELECT row_number() OVER (ORDER BY {VALUE}) FROM p",
    f"SELECT sum(w) OVER (PARTITION BY {VALUE}) FROM p",
    f"SELECT DISTINCT ON ({VALUE}) w FROM p",
    f"SELECT count(*) FROM p JOIN p q ON p.k = q.k AND {BOB}",
    f"SELECT count(*) FROM p LEFT JOIN p q ON p.k = q.k AND {BOB}",
    f"SELECT sum(q.w) FROM p LEFT JOIN p q ON p.k = q.k AND {BOB}",
    f"SELECT p.w FROM p JOIN p q ON {BOB}",
    f"SELECT {VALUE} FROM p",
    f"SELECT sum({VALUE}) FROM p",
    f"SELECT sum(abs({VALUE})) FROM p",
    f"SELECT sum(coalesce({VALUE}, 0)) FROM p",
    f"SELECT sum(least(greatest({VALUE}, 0), 9)) FROM p",
    f"SELECT avg({VALUE}), var_pop({VALUE}), stddev_samp({VALUE}) FROM p",
    f"SELECT count(DISTINCT {VALUE}) FROM p",
    f"SELECT sum(w) FILTER (WHERE {BOB}) FROM p",
    f"SELECT max(w) FILTER (WHERE {BOB}) FROM p",
    f"SELECT count(*) FROM p HAVING {BOB}",
    f"SELECT k, count(*) FROM p GROUP BY k HAVING {BOB}",
    f"SELECT {VALUE} AS g, count(*) FROM p GROUP BY {VALUE}",
    f"SELECT count(*) FROM p GROUP BY {BOB}",
    f"SELECT count(*) FROM (SELECT {VALUE} AS g, max(w) AS m FROM p GROUP BY {VALUE}) q",
    f"SELECT count(*) FROM p WHERE w IN (10, {VALUE})",
    f"SELECT max(w) FROM p WHERE w IN (10, {VALUE})",
    "SELECT count(*) FROM p WHERE w IN (SELECT n * 5 FROM b)",
    "SELECT max(w) FROM p WHERE w IN (SELECT n * 5 FROM b)",
    f"SELECT count(*) FROM p WHERE w BETWEEN {VALUE} AND 99",
    "SELECT max(w) FROM p WHERE w BETWEEN 0 AND (SELECT max(n) FROM b)",
    f"SELECT count(*) FROM p WHERE 'a' LIKE (CASE WHEN {BOB} THEN 'a' ELSE 'b' END)",
    f"SELECT max(w) FROM p WHERE 'a' LIKE (CASE WHEN {BOB} THEN 'a' ELSE 'b' END)",
    f"SELECT max(w) FROM p WHERE {BOB}",
    f"SELECT max(w) FROM p WHERE NOT {BOB}",
    f"SELECT max(w) FROM p WHERE {BOB} IS NULL",
    f"SELECT median(w) FROM (SELECT w FROM p UNION ALL SELECT w FROM p WHERE {BOB}) q",
    f"SELECT sum(w) FROM (SELECT w FROM p UNION SELECT 77 FROM p WHERE {BOB}) q",
    f"SELECT sum(w) FROM (SELECT w FROM p EXCEPT SELECT 10 FROM p WHERE {BOB}) q",
    f"SELECT max(w) FROM (SELECT w FROM p INTERSECT SELECT w FROM p WHERE {BOB}) q",
    f"WITH q AS (SELECT w FROM p WHERE {BOB}) SELECT max(w) FROM q",
    f"WITH q AS (SELECT {BOB} AS there) SELECT max(w) FROM p, q WHERE q.there",
    f"WITH q AS (SELECT w FROM p UNION ALL SELECT w FROM p ORDER BY {VALUE} LIMIT 1) SELECT sum(w) FROM q",
    "SELECT (SELECT max(n) FROM b)",
    f"SELECT {BOB}",
    "SELECT max((SELECT max(n) FROM b)) FROM p",
    "SELECT max(w + (SELECT sum(n) FROM b)) FROM p",
    f"SELECT max((SELECT max(CASE WHEN {BOB} THEN q.w ELSE 0 END) FROM p q WHERE q.k = p.k)) FROM p",
)  # fmt: skip
KINDS = {
    "rows": 'kind = "rows"\ntables = ["b"]',
    "unit": 'kind = "unit"\nunit = "b.id"',
    "cells": 'kind = "cells"\n[protections.people.distance]\nb = "n"',
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    place = tmp_path_factory.mktemp("doors")
    with duckdb.connect(str(place / "town.duckdb")) as connection:
        connection.execute("CREATE TABLE b (id BIGINT, n BIGINT)")
        connection.execute("INSERT INTO b VALUES (1, 4), (2, 2)")
        connection.execute("CREATE TABLE p (k BIGINT, w BIGINT)")
        connection.execute("INSERT INTO p VALUES (1, 10), (2, 20)")
    for kind, written in KINDS.items():
        (place / f"{kind}.toml").write_text(
            '[database]\npublic = ["p"]\nsource = "duckdb:town.duckdb"\n'
            '[tables.b]\nkey = "id"\ncolumns = { n = { range = [0, 9] } }\n'
            '[tables.p]\nkey = "k"\ncolumns = { w = { range = [0, 99] } }\n'
            f"[protections.people]\nepsilon = 1000\ndelta = 0.1\n{written}\n"
        )
    return place


def answered_for_nothing(db, text):
    """Whether a question is answered and costs nobody anything."""
    before = db.budget["people"].spent_epsilon
    try:
        db.sql(text, epsilon=1)
    except (Refused, SqlError):
        return False
    return db.budget["people"].spent_epsilon == before


@pytest.mark.parametrize("kind", KINDS)
def test_no_place_asks_about_a_person_for_nothing(directory, kind):
    with secant.connect(policy=directory / f"{kind}.toml") as db:
        assert [text for text in TEXTS if answered_for_nothing(db, text)] == []


def test_questions_about_public_tables_alone_are_still_free(directory):
    with secant.connect(policy=directory / "rows.toml") as db:
        free = "SELECT max(CASE WHEN EXISTS (SELECT 1 FROM p q WHERE q.w > 3) THEN w ELSE 0 END) FROM p"
        assert answered_for_nothing(db, free)
        assert db.sql(free, epsilon=1).rows == [(20,)]


@pytest.mark.parametrize("kind", ["rows", "unit"])
def test_the_old_faults_are_noticed(directory, kind, monkeypatch):
    """A twin of each: order statistics are not asked what they read, and sort keys are skipped."""
    from secant.plan import nodes
    from secant.plan.facts import ownership
    from secant.sensitivity.elastic import rules as elastic
    from secant.sensitivity.stability import rules as stability

    with secant.connect(policy=directory / f"{kind}.toml") as db, monkeypatch.context() as patch:
        patch.setattr(MeasuredAggregate, "aggregates", property(lambda release: (release.exact,)))
        assert all(answered_for_nothing(db, text) for text in RANKED)
    skipping = lambda r: () if isinstance(r, nodes.Sort) else expressions(r)  # noqa: E731
    for module in (elastic, stability, ownership):
        monkeypatch.setattr(module, "expressions", skipping)
    for work in (elastic.Elastic, stability.Stabilities, ownership.Ownerships):
        monkeypatch.setattr(work, "_accounted", lambda _, relation, found: found)
    with secant.connect(policy=directory / f"{kind}.toml") as db:
        assert answered_for_nothing(db, SORTED)
