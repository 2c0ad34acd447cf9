"""`explain --ranges`: what was derived and from what, as text, as JSON and beside a refusal."""

import json

import pytest

from private_shop import ROWWISE, UNIT, no_secret_in, open_shop

SUM = "SELECT status, sum(rate * (1 - rate)) FROM orders WHERE total > 20 GROUP BY status"


@pytest.fixture
def shop(tmp_path):
    with open_shop(tmp_path, ROWWISE) as db:
        return str(db.policy.path)


def test_ranges_are_shown_on_request(shop, run):
    words = ("explain", SUM, "--epsilon", "1", "-p", shop)
    status, out, err = run(*words, "--ranges")
    assert (status, err) == (0, "")
    assert "ranges: what values are clamped to, and why" in out
    assert "sum (orders.rate * (1 - orders.rate)): [0, 0.25]" in out
    assert "orders.rate: declared range [0, 1]" in out
    assert "rows pass perhaps: (orders.total > 20)" in out
    no_secret_in(out)
    assert "ranges" not in run(*words)[1]


def test_ranges_are_in_the_json(shop, run):
    status, out, _ = run("explain", SUM, "--json", "--ranges", "-p", shop)
    assert status == 0
    (entry,) = json.loads(out)["ranges"]
    assert entry["values"][0]["range"] == [0, 0.25]
    assert entry["keys"][0]["possible_values"] == ["open", "paid", "lost", "void"]
    assert not entry["empty"]


UNDECLARED = "SELECT avg(id) FROM orders"


def test_a_fact_that_will_be_found_is_shown_as_missing(shop, run):
    status, out, err = run("explain", UNDECLARED, "--ranges", "-p", shop)
    assert (status, err) == (0, "")
    assert "no range is declared for orders.id: found privately, once, with epsilon 0.2" in out
    assert "orders.id: nothing is declared" in out
    no_secret_in(out)


def test_a_refusal_shows_which_fact_is_missing(tmp_path, run):
    with open_shop(tmp_path, ROWWISE + UNIT) as db:  # for two protections nothing is found
        shop = str(db.policy.path)
    status, out, err = run("explain", UNDECLARED, "--ranges", "-p", shop)
    assert status != 0
    assert "REF-" in err
    assert "orders.id: nothing is declared" in out
