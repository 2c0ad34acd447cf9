"""Questions that once broke something, asked under every kind of policy: none may break anything again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fuzzing import faults, read_once, said
from worlds import KINDS, World, open_world

from secant.plan import nodes as n
from secant.plan.facts import domains
from secant.plan.rewrites import exact, rewrite
from secant.sensitivity import enforce as enforcing
from secant.sensitivity import split as splitting

WIDE = "SELECT cost, count(*) FROM visit WHERE cost = 1e18 GROUP BY cost"
SOFTENED = "SELECT count(*) FROM place WHERE x > 1 UNION SELECT count(*) FROM place WHERE y > 1"
NESTED = (
    "SELECT count(*) FROM visit v JOIN (person p JOIN city c ON c.name = v.note) ON v.pid = p.id"
)
AVERAGED = (
    "SELECT count(*) FROM (SELECT note, avg(CASE WHEN EXISTS (SELECT 1 FROM city WHERE people > 5) THEN rate ELSE 1 "
    "END) AS a FROM visit GROUP BY note) d WHERE a <= 0.6"
)
CONSTANT = (
    "CASE WHEN CAST(CASE WHEN FALSE THEN 'b' ELSE 'a' END AS DATE) <> DATE '2020-01-05' THEN 1 END"
)
CUT = "SELECT name FROM city WHERE left(name, (SELECT count(*) FROM place WHERE x > 1)) >= 'a'"
AROUND = "SELECT (SELECT count(*) FROM visit) * 9223372036854775807"
PAST = (
    # The engine met what follows the releases only after they were paid for, and failed there.
    "SELECT count(*) FROM visit ORDER BY TRUE",
    "SELECT count(*) FROM visit ORDER BY -1",
    "SELECT count(*) FROM visit ORDER BY 'x'",
    "SELECT count(*) FROM visit ORDER BY NULL",
    "SELECT 2 AS two, count(*) AS n FROM visit GROUP BY two ORDER BY two",
    WIDE,
    "SELECT age, count(*) FROM person WHERE age = 1.5 GROUP BY age",
    "SELECT born, count(*) FROM person WHERE born = TIMESTAMP '2024-01-01 12:00:00' GROUP BY born",
    "SELECT sum(rate) % count(*) FROM visit",
    "SELECT count(*), INTERVAL '999999999' YEAR FROM visit",
    "SELECT count(*), INTERVAL '9999' YEAR * 999999 FROM visit",
    # A measure that no row adds to has no scale.
    "SELECT sum(0.0 * cost) FROM visit",
    "SELECT var_pop(0.5) FROM visit",
    "SELECT avg(2) FROM visit",
    # More digits behind the point than a product of two such numbers may have.
    "SELECT avg(0.00000000000000000000000001), count(*) FROM visit",
    "SELECT count(*) FROM city WHERE 1 > (SELECT stddev_samp(0.00000000000000000000000001) FROM visit)",
    "SELECT sum(0) / sum(cost) FROM visit",
    # A failing expression around a subquery, or a subquery with several rows, after it was paid for.
    AROUND,
    "SELECT count(*) + (SELECT people FROM city) FROM visit",
    "SELECT count(*) FROM visit ORDER BY (SELECT max(people) FROM city) * 9223372036854775807",
    "SELECT c.name, (SELECT count(*) FROM person p WHERE p.city = c.name) * 9223372036854775807 FROM city c",
    "SELECT count(*) FROM visit HAVING CAST((SELECT max(name) FROM city) AS INTEGER) > 3",
    "SELECT count(*) FROM visit UNION SELECT 1 ORDER BY (SELECT max(people) FROM city) * 9223372036854775807",
    "SELECT (SELECT TRUE AS x FROM city) FROM city",
    "SELECT count(*), (SELECT name = 'Riga' FROM city) FROM visit",
    "SELECT INTERVAL 3 DAY * 2, stddev_pop(y) FROM place GROUP BY 1",
    "SELECT INTERVAL '1' MONTH * -2, count(*) FROM place GROUP BY 1",
    # An expression that must not fail, around a subquery: no engine binds that.
    AVERAGED,
    AVERAGED.replace("avg(", "sum(DISTINCT "),
    "SELECT count(*) FROM visit WHERE TRY_CAST((SELECT max(name) FROM city) AS INTEGER) > 3",
    # Engines compute constants while they read a statement, and one that fails fails inside an Attempt, too.
    f"SELECT count(*), {CONSTANT} FROM visit",
    f"SELECT count(*) FROM visit WHERE {CONSTANT} > 1",
    f"SELECT sum({CONSTANT}) FROM visit",
    # Engines give NULL types of their own, and cast the texts beside it.
    "SELECT note, count(*) FROM visit WHERE round(NULL, 40) IS NOT DISTINCT FROM note GROUP BY 1",
    "SELECT count(*) FROM visit v JOIN (SELECT NULL AS k) d ON v.note IS NOT DISTINCT FROM abs(k)",
    # A softened value is a real number, beside which no date stands.
    "SELECT born FROM person WHERE FALSE INTERSECT ALL SELECT max(TIMESTAMP '2020-02-29 00:00:01') FROM place",
    # Plans that were not well formed.
    SOFTENED,
    CUT,
    CUT.replace("SELECT name FROM city", "SELECT count(*) FROM visit, city"),
    "SELECT left('abc', count(*)), substring('abc', count(*), 1), repeat('a', count(*)) FROM place WHERE x > 1",
    "SELECT count(*) FROM place WHERE x > 1 UNION ALL SELECT count(*) FROM visit",
    "SELECT sum((0 % 1) / (c.k + 5e-324)) FROM (SELECT DISTINCT 0e0 AS k FROM city) c WHERE NULL",
    "SELECT avg((v.x / v.x) + 5e-324) FROM (SELECT 1e18 AS x FROM visit ORDER BY vid LIMIT 0) v",
    "SELECT avg(1e0 + 5e-324) FROM visit",
    "SELECT -TRUE",
    "SELECT percentile_cont(0.25) WITHIN GROUP () FROM visit",
    "SELECT count(*) FROM visit v JOIN (SELECT note AS vid FROM visit) w USING (vid)",
    NESTED,
    "WITH a AS (SELECT 1 AS x, 2 AS x) SELECT * FROM a",
    "WITH a AS (WITH b AS (SELECT vid, vid FROM visit) SELECT * FROM b) SELECT count(*) FROM a",
    "SELECT count(*) FROM (SELECT (NULL OR NULL) AS x FROM visit) v WHERE v.x",
)


@pytest.fixture(scope="module", params=range(len(KINDS)), ids=lambda i: KINDS[i].name)
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Give one world of each kind."""
    opened = open_world(request.param, tmp_path_factory.mktemp("world"))
    yield opened
    opened.close()


def found(world: World, text: str) -> list[tuple[str, Any]]:
    return [(kind, what) for kind, what in faults(world, text, "1") if kind != "told"]


@pytest.mark.parametrize("text", PAST)
def test_a_question_that_broke_something_breaks_nothing_now(world: World, text: str) -> None:
    with read_once():
        assert found(world, text) == []


@pytest.mark.parametrize(
    ("kind", "text", "seen"),
    [
        ("rows", "SELECT -TRUE", "SQL-004"),
        ("rows", NESTED, "SQL-002"),
        ("rows", "SELECT count(*), INTERVAL '999999999' YEAR FROM visit", "SQL-006"),
        ("rows", "SELECT count(*) FROM visit ORDER BY NULL", ""),
        ("rows", AVERAGED, ""),
        ("unit", "SELECT avg(2) FROM visit", ""),
        ("cells", SOFTENED, ""),
        ("cells", CUT, "REF-101"),
        ("cells", CUT.replace("count(*)", "CAST(count(*) AS INTEGER)"), ""),
    ],
)
def test_what_becomes_of_them(kind: str, text: str, seen: str, tmp_path: Path) -> None:
    opened = open_world([k.name for k in KINDS].index(kind), tmp_path)
    try:
        assert said(lambda: opened.first.sql(text, epsilon=1)).code == seen
    finally:
        opened.close()


def test_a_key_that_no_row_can_have_is_a_planted_fault_that_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domains, "_of_kind", lambda value, kind: value)
    opened = open_world(0, tmp_path)
    try:
        assert "charged" in {k for k, _ in found(opened, WIDE)}
    finally:
        opened.close()


def test_an_expression_that_fails_after_it_is_paid_for_is_a_planted_fault_that_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "unfailing", lambda plan: plan)
    monkeypatch.setattr(splitting, "still_failing", lambda plan: None)
    opened = open_world(0, tmp_path)
    try:
        assert "charged" in {k for k, _ in found(opened, AROUND)}
    finally:
        opened.close()


def test_a_subquery_in_an_attempt_is_a_planted_fault_that_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful = SimpleNamespace(**{**vars(exact.n), "has_subquery": lambda scalar: False})
    monkeypatch.setattr(exact, "n", forgetful)
    opened = open_world(0, tmp_path)
    try:
        assert not said(lambda: opened.first.sql(AVERAGED, epsilon=1)).yes
    finally:
        opened.close()


def test_a_union_that_keeps_its_types_is_a_planted_fault_that_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "_columns_of_both", lambda node: node.columns)
    opened = open_world([k.name for k in KINDS].index("cells"), tmp_path)
    try:
        assert "bug" in {k for k, _ in found(opened, SOFTENED)}
    finally:
        opened.close()


def test_a_real_number_for_a_whole_one_is_a_planted_fault_that_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "retype", lambda plan: plan)
    opened = open_world([k.name for k in KINDS].index("cells"), tmp_path)
    try:
        assert "bug" in {k for k, _ in found(opened, CUT)}
    finally:
        opened.close()


def left(world: World) -> int:
    """Ask some questions, and count the nodes that are still held by somebody."""
    for text in PAST[:5]:
        world.first.sql(text, epsilon=1)
    gc.collect()
    return sum(isinstance(held, n.Node) for held in gc.get_objects())


def test_nodes_of_answered_questions_are_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_world(0, tmp_path)
    try:
        usual = left(opened)  # what a connection keeps for itself
        assert left(opened) == usual
        held: list[object] = []
        original = enforcing.enforce

        def keeping(*given: Any, **named: Any) -> Any:  # planted: somebody keeps all plans
            held.append(given)
            return original(*given, **named)

        monkeypatch.setattr(enforcing, "enforce", keeping)
        assert left(opened) > usual
    finally:
        opened.close()
