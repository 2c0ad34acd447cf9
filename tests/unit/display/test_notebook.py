"""`%%secant`: a cell of SQL, its options, and the variables of the notebook."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

import secant
from secant.display.page import derivation_tree
from secant.errors import Refused, UsageError
from secant.notebook import answered

pandas = pytest.importorskip("pandas")
SQL = "SELECT ward, count(*) AS n FROM data WHERE ward IS NOT NULL GROUP BY ward"


@pytest.fixture
def names():
    frame = pandas.DataFrame({"who": range(400), "ward": ["Eye", "Ear"] * 200, "cost": [5.0] * 400})
    db = secant.protect(frame, unit="who", epsilon=9, values={"ward": ["Eye", "Ear"]})
    yield {"db": db, "least": 3}
    db.close()


def test_a_cell_is_answered(names):
    found = answered("db --epsilon 1 --into seen", SQL, names)
    assert names["seen"] is found
    assert {row[0] for row in found.rows} == {"Ear", "Eye"}
    assert "<table" in found._repr_html_()


def test_the_only_connection_need_not_be_named(names):
    assert answered("--epsilon 0.5", SQL, names).rows
    assert names["_secant"].rows
    with pytest.raises(UsageError, match="there is no connection"):
        answered("--epsilon 0.5", SQL, {})
    with pytest.raises(UsageError, match="which connection: there are a, b"):
        answered("--epsilon 1", SQL, {"a": names["db"], "b": secant.protect(
            pandas.DataFrame({"x": [1]}), epsilon=1)})  # fmt: skip


def test_variables_are_values_for_placeholders(names):
    text = "SELECT count(*) AS n FROM data WHERE who > :least"
    assert answered("db --epsilon 1", text, names).rows
    with pytest.raises(UsageError, match="there is no value for :most"):
        answered("db --epsilon 1", "SELECT count(*) AS n FROM data WHERE who > :most", names)


def test_an_explanation_spends_nothing_and_unfolds(names):
    found = answered("db --explain --epsilon 1", SQL, names)
    assert names["db"].budget["who"].spent_epsilon == 0
    page = found._repr_html_()
    assert page.count("<details") >= 3


@pytest.mark.parametrize("line", ["db --epsilom 1", 'db "open', "nobody --epsilon 1"])
def test_a_slip_in_the_first_line_is_told(line, names):
    with pytest.raises(UsageError) as caught:
        answered(line, SQL, names)
    assert caught.value.hint


def test_the_extension_loads_and_a_refusal_stops_the_notebook(names):
    shell = InteractiveShell.instance()
    try:
        shell.run_line_magic("load_ext", "secant")
        shell.user_ns.update(names)
        found = shell.run_cell_magic("secant", "db --epsilon 1", SQL)
        assert len(found.rows) == 2
        with pytest.raises(Refused):
            shell.run_cell_magic("secant", "db --epsilon 1", "SELECT who FROM data")
    finally:
        InteractiveShell.clear_instance()


def test_a_derivation_is_a_tree_with_every_step_once():
    lines = [
        "  1. stability.scan  t: 1",
        "  2. stability.filter  f: 1  (from 1)",
        "  3. stability.sum  s: 2  (from 2, 1)",
    ]
    page = derivation_tree(lines)
    assert page.startswith("<details")
    assert page.count("stability.filter") == 1
    assert (
        page.index("stability.sum") < page.index("stability.filter") < page.index("stability.scan")
    )
    assert derivation_tree(["no step at all"]) == ""
