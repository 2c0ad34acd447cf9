"""`inspect` calls an answer exact only where it is: every draw of such a column is the same, row by row."""

from __future__ import annotations

import pytest

from private_shop import open_shop
from secant.accuracy.noise_lineage import RELIES, NoiseLineage
from secant.plan import nodes as n
from secant.plan.rewrites.rewrite import columns_of
from secant.release import inspection

COUNTS = "(SELECT town, count(*) AS n FROM customers GROUP BY town) AS x"
LATER = (
    f"SELECT max(n) AS m FROM {COUNTS}",
    f"SELECT sum(n) AS m FROM {COUNTS}",
    f"SELECT min(n) AS low, avg(n) AS middle, count(*) AS rows FROM {COUNTS}",
    "SELECT town FROM customers GROUP BY town HAVING count(*) > 21",
    "SELECT town, count(*) AS n FROM customers GROUP BY town ORDER BY n DESC LIMIT 1",
    f"SELECT t.town, x.n FROM towns AS t LEFT JOIN {COUNTS} ON x.town = t.town ORDER BY t.town",
    f"SELECT t.country FROM towns AS t JOIN {COUNTS} ON x.n > t.people / 30000 ORDER BY t.country",
    f"SELECT DISTINCT n FROM {COUNTS} ORDER BY n",
    f"SELECT n FROM {COUNTS} UNION ALL SELECT people FROM towns",
    "SELECT country FROM towns WHERE people < 1500 * (SELECT count(*) FROM customers) ORDER BY country",
    "SELECT country, (SELECT count(*) FROM customers) AS n FROM towns ORDER BY country",
    (
        "SELECT count(*) AS m FROM towns WHERE EXISTS"
        " (SELECT 1 FROM (SELECT count(*) AS n FROM customers) AS c WHERE c.n > people / 10000)"
    ),
    "SELECT count(*) AS n FROM customers WHERE age > (SELECT avg(age) FROM customers)",
    "SELECT name, count(*) AS n FROM customers GROUP BY name",
    "SELECT CASE WHEN count(*) > 60 THEN 1 ELSE 0 END AS big FROM customers",
)


def wrongly_exact(db, text) -> list[str]:
    """Give the columns that are called exact, and differ between draws."""
    told = db.inspect(text, epsilon="0.05", delta="0.000001")
    exact = [i for i, c in enumerate(told) if c["error95"] == 0.0 and not c["noisy_rows"]]
    draws = [db.sql(text, epsilon="0.05", delta="0.000001").rows for _ in range(12)]
    seen = [{tuple(row[i] for row in rows) for rows in draws} for i in range(len(told))]
    return [told[i]["column"] for i in exact if len(seen[i]) > 1]


@pytest.mark.parametrize("text", LATER)
def test_what_is_called_exact_is_the_same_in_every_draw(people, text):
    assert wrongly_exact(people, text) == []
    told = people.inspect(text, delta="0.000001")
    assert any(c["mechanism"] != "none" for c in told)
    assert any(c["error95"] != 0.0 for c in told)


def test_what_public_tables_say_is_still_exact(people):
    (seen,) = people.inspect("SELECT max(people) AS most FROM towns")
    assert (seen["error95"], seen["mechanism"], seen["noisy_rows"]) == (0.0, "none", False)
    (town, _) = people.inspect("SELECT town, count(*) AS n FROM customers GROUP BY town")
    assert (town["error95"], town["noisy_rows"]) == (0.0, False)


def test_the_check_sees_a_reliance_that_stops_at_aggregates(people, monkeypatch):
    """The old fault: only what an expression names counted as noisy."""

    def planted(job):
        made = job.traced.made_of
        named = {o: frozenset() if made[o] is None else columns_of(made[o]) for o in made}
        noisy = {c for c, noise in job.noise.noise.items() if not noise.still}
        return NoiseLineage({o: named[o] & noisy for o in job.traced.outputs}, frozenset())

    text = f"SELECT median(n) AS m FROM {COUNTS}"  # an answer states no error here that would tell
    assert wrongly_exact(people, text) == []
    monkeypatch.setattr(inspection, "noise_lineage", planted)
    assert wrongly_exact(people, text) == ["m"]


def test_rows_that_noise_chooses_hold_for_all_candidates(people):
    grouped = (
        "SELECT town, count(*) AS n FROM customers WHERE town IN ('Riga', 'Oslo') GROUP BY town"
    )
    (_, all_shown) = people.inspect(grouped)
    (_, chosen) = people.inspect(grouped + " ORDER BY n DESC LIMIT 1")
    assert chosen["error95"] > all_shown["error95"]


def test_a_later_stage_knows_the_noise_of_the_earlier_one(people):
    (seen,) = people.inspect(LATER[12])
    assert len(seen["sensitivity"]) == 3  # its own, and the sum and the count of the average
    assert seen["error95"] is None


def test_an_order_by_noise_moves_rows_and_hides_none(people, tmp_path):
    seen = people.inspect("SELECT town, count(*) AS n FROM customers GROUP BY town ORDER BY n")
    assert [c["noisy_rows"] for c in seen] == [False, False]


def test_nothing_is_called_noisy_that_no_protection_moves(tmp_path):
    cells = '[protections.values]\nkind = "cells"\nepsilon = 10\n[protections.values.distance]\norders = "total"\n'
    with open_shop(tmp_path, cells) as db:
        (seen,) = db.inspect(
            "SELECT max(n) AS m FROM (SELECT town, count(*) AS n FROM towns GROUP BY town) AS x"
        )
        assert seen["error95"] == 0.0


def test_every_relation_has_a_rule():

    later = {x for x in n.NODES if issubclass(x, n.Relation)} - {n.Truncate, n.TruncateGroups}
    assert RELIES.covered() == later
