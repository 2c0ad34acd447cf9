"""`explain --attacker`, `inspect --curve`, `--plot` and the one number for grouped answers."""

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest
from fake_engine import Explanation

from private_shop import ROWWISE, TABLES, UNIT, no_secret_in, open_shop
from secant.attack import attack_lines, attack_report
from secant.cli import show
from secant.cli.curve import GRID, Curve, bar, curves_of, error_of, svg
from secant.policy.file import read_policy
from secant.schema.catalog import Table, catalog
from secant.schema.types import DATE

COUNT = "SELECT count(*) AS n FROM customers"
GROUPS = """
SELECT status, count(*) AS n FROM orders WHERE status IN ('open', 'paid', 'lost') GROUP BY status
"""


@pytest.fixture
def shop(tmp_path):
    """Give the policy file of a shop with customers as units."""
    with open_shop(tmp_path, UNIT) as db:
        return str(db.policy.path)


def test_explain_bounds_what_an_attacker_guesses(shop, run):
    words = ("explain", COUNT, "--epsilon", "1", "-p", shop)
    status, out, err = run(*words, "--attacker", "customers.age within 2 member 0.1")
    assert (status, err) == (0, "")
    assert "attacker: guesses customers.age within 2" in out
    assert "this answer (epsilon 1)" in out
    assert "from 10 % to at most 23.2 %" in out
    assert "the whole budget (epsilon 100000)" in out
    assert "attacker" not in run(*words)[1]


def test_explain_as_json_holds_the_attacker(tmp_path, run):
    with open_shop(tmp_path, ROWWISE) as db:
        policy = str(db.policy.path)
    status, out, _ = run(
        "explain", COUNT, "--json", "-p", policy, "--attacker", "customers.age within 2"
    )
    assert status == 0
    (entry,) = json.loads(out)["attacker"]
    assert entry["protection"] == "single"
    before = entry["answer"]["prior"]
    assert before == pytest.approx(5 / 121)
    assert entry["answer"]["posterior"] == pytest.approx(
        before / (before + (1 - before) * math.exp(-2))
    )
    assert entry["budget"]["posterior"] is None


@pytest.mark.parametrize(
    ("attacker", "code"),
    [("nonsense", "USE-001"), ("customers.height within 1", "USE-001")],
)
def test_an_attacker_that_cannot_be_meant(shop, run, attacker, code):
    status, out, err = run("explain", COUNT, "-p", shop, "--attacker", attacker)
    assert (status, out) == (2, "")
    assert code in err


def test_an_attacker_is_read_before_anything_is_opened(connection, run):
    connection.result = Explanation()
    status, _, _ = run("explain", "SELECT 1", "--attacker", "nonsense")
    assert status == 2
    assert connection.asked == []


def test_the_curve_falls_with_epsilon(shop, run):
    status, out, err = run("inspect", COUNT, "--curve", "--json", "-p", shop)
    assert status == 0
    assert "OWNER ONLY" in err
    (line,) = out.splitlines()
    record = json.loads(line)
    assert (record["column"], record["level"]) == ("n", 0.95)
    points = record["curve"]
    assert [p["epsilon"] for p in points] == [float(e) for e in GRID]
    errors = [p["error"] for p in points]
    assert errors == sorted(errors, reverse=True)
    # 63 customers; at epsilon 0.01 the error at 95 % is about ln(20)/0.01.
    assert points[0]["error"] == pytest.approx(math.log(20) / 0.01, rel=0.01)
    assert points[0]["relative_error"] == pytest.approx(points[0]["error"] / 63)


def test_the_curve_on_a_screen(shop, run):
    status, out, _ = run("inspect", COUNT, "--curve", "--level", "0.5", "-p", shop)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "n"
    assert lines[1].split()[:4] == ["epsilon", "±", "(50", "%)"]
    rows = [line.split() for line in lines[3:]]
    assert [row[0] for row in rows] == list(GRID)
    assert len(rows[0][-1]) > len(rows[3][-1]) > 0
    assert set(rows[0][-1]) == {"#"}


def test_the_plot_is_a_drawing_with_one_line_a_column(shop, tmp_path, run):
    plot = tmp_path / "curve.svg"
    query = 'SELECT count(*) AS n, sum(age) AS "a<b&\'" FROM customers'
    status, _, _ = run("inspect", query, "--curve", "--plot", str(plot), "-p", shop)
    assert status == 0
    text = plot.read_text(encoding="utf-8")
    assert no_secret_in(text)
    root = ElementTree.fromstring(text)
    space = {"s": "http://www.w3.org/2000/svg"}
    lines = root.findall("s:polyline", space)
    assert len(lines) == 2
    words = [t.text for t in root.findall("s:text", space)]
    assert "a<b&'" in words
    assert "error at 95 %, relative to the answer" in words
    for line in lines:
        places = [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()]
        xs, ys = zip(*places, strict=True)
        assert list(xs) == sorted(xs)
        assert list(ys) == sorted(ys)  # downwards on the page: less error
        assert all(0 <= x <= 640 and 0 <= y <= 400 for x, y in places)


def test_grouped_answers_get_one_number(tmp_path, run):
    with open_shop(tmp_path, UNIT, tables=TABLES.replace(', "void"', "")) as db:
        policy = str(db.policy.path)
    status, out, _ = run("inspect", GROUPS, "-p", policy)
    assert status == 0
    (line,) = [x for x in out.splitlines() if x.startswith("‖errors‖₂/‖answers‖₂ at 95 %")]
    _, records, _ = run("inspect", GROUPS, "--json", "-p", policy)
    column = json.loads(records.splitlines()[1])
    assert column["exact"] == [67, 67, 67]
    # All three counts have the same noise: the length of their errors is √3 times one of them.
    expected = column["error95"] * math.sqrt(3) / math.sqrt(3 * 67**2)
    assert float(line.split(":")[1].rstrip(" %")) == pytest.approx(100 * expected, rel=0.01)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--plot", "x.svg"), "--curve"),
        (("--curve", "--epsilon", "1"), "--epsilon"),
        (("--curve", "--level", "1.5"), "level"),
    ],
)
def test_options_that_contradict_each_other(shop, run, options, word):
    status, out, err = run("inspect", COUNT, *options, "-p", shop)
    assert (status, out) == (2, "")
    assert word in err


def test_a_plot_that_cannot_be_written(shop, run, tmp_path):
    status, _, err = run("inspect", COUNT, "--curve", "--plot", str(tmp_path), "-p", shop)
    assert status == 2
    assert "cannot be written" in err


def test_a_public_answer_has_no_curve(shop, run):
    status, out, _ = run("inspect", "SELECT town FROM towns", "--curve", "-p", shop)
    assert status == 0
    assert "exact at every epsilon" in out


def test_a_curve_never_rises_and_says_with_which_epsilon_to_ask(capsys):
    """Public choices may suit the data at hand better at a smaller epsilon, which a larger one can pay for."""
    errors = {"2": 744.0, "5": 785.0, "10": 300.0}

    def inspected(epsilon):
        error = errors.get(epsilon, 1000 / float(epsilon))
        return [{"column": "n", "error95": error, "relative_error95": error / 1000}]

    (curve,) = curves_of(inspected)
    assert list(curve.errors) == sorted(curve.errors, reverse=True)
    at = dict(
        zip(
            curve.epsilons, zip(curve.errors, curve.relative, curve.asked, strict=True), strict=True
        )
    )
    assert at[2.0] == (744.0, 0.744, 2.0)
    assert at[5.0] == (744.0, 0.744, 2.0)
    assert at[10.0] == (300.0, 0.3, 10.0)
    assert curve.to_dict(0.95)["curve"][8]["asked_with"] == 2.0
    show.print_curves([curve], 0.95)
    (line,) = [x for x in capsys.readouterr().out.splitlines() if "asked with" in x]
    assert line.split()[0] == "5"
    assert line.rstrip().endswith("(asked with 2)")


def test_errors_of_columns_as_lists_or_unknown():
    assert error_of({"error95": [1, 3.0]}) == 3.0
    assert error_of({"error": [1, None]}) is None
    assert error_of({"error95": None}) is None
    curve = curves_of(lambda e: [{"column": "n", "error95": 1 / float(e)}])[0]
    assert curve.relative == (None,) * len(GRID)
    text = svg([curve], 0.95, "t")
    assert "n (no relative error)" in text
    assert "polyline" not in text


def test_an_error_that_nobody_can_state_is_not_exact(run, shop):
    (curve,) = curves_of(
        lambda e: [{"column": "m", "error95": None}, {"column": "k", "error95": 0.0}]
    )
    assert curve.column == "m"
    assert "m (no relative error)" in svg([curve], 0.95, "t")
    text = "SELECT max(n) AS m FROM (SELECT town, count(*) AS n FROM customers GROUP BY town) AS x"
    status, out, _ = run("inspect", text, "--curve", "-p", shop)
    assert status == 0
    assert "exact at every epsilon" not in out


def test_bars_are_logarithmic():
    values = (1.0, 10.0, 100.0, None, 0.0)
    lengths = [len(bar(v, values)) for v in values]
    assert lengths[0] == 1
    assert lengths[2] == 30
    assert abs(lengths[1] - 15.5) <= 1
    assert lengths[3:] == [0, 0]
    assert bar(2.0, (2.0, 2.0)) == "#" * 30
    flat = Curve("n", (1.0, 2.0), (1.0, 1.0), (0.5, 0.5), (1.0, 2.0))
    assert "polyline" in svg([flat], 0.95, "t")


def test_a_value_under_a_norm_is_bounded_for_the_answer_and_the_budget():
    policy = read_policy(
        '[tables.t.columns]\nday = { range = ["2024-01-01", "2024-12-31"], distribution = "uniform" }\n'
        '[protections.cells]\nkind = "cells"\nepsilon = 4\n'
        '[protections.cells.distance]\nt = "0.1*day"\n'
    )
    charge = [{"protection": "cells", "epsilon": 0.5, "delta": 0.0}]
    schema = catalog(Table("t", (("day", DATE),)))
    lines = attack_lines("t.day within 3", attack_report("t.day within 3", policy, charge, schema))
    assert "  cells: the value, prior uniform on [2024-01-01, 2024-12-31] in steps of 1" in lines
    # 7 of 366 days; at an end of the range (1 - q^7)/(1 - q^366), q = exp(-epsilon/10).
    assert "    this answer (epsilon 0.5): from 1.91 % to at most 29.6 %" in lines
    assert "    the whole budget (epsilon 4): from 1.91 % to at most 94 %" in lines


def test_the_picture_shows_where_we_stand(shop, tmp_path, run):
    plot = tmp_path / "guess.svg"
    words = ("explain", COUNT, "--epsilon", "0.5", "-p", shop, "--plot", str(plot))
    assert run(*words)[0] == 2  # there is nothing to draw without an attacker
    assert not plot.exists()
    assert run(*words, "--attacker", "customers.age within 2 member 10%")[0] == 0
    text = plot.read_text(encoding="utf-8")
    assert no_secret_in(text)
    root = ElementTree.fromstring(text)
    space = {"s": "http://www.w3.org/2000/svg"}
    said = [t.text for t in root.findall("s:text", space)]
    assert "this answer" in said
    lines = root.findall("s:polyline", space)
    assert len(lines) == 6  # before, after and on average, of the value and of who is in
    for line in lines:
        places = [tuple(map(float, p.split(","))) for p in line.attrib["points"].split()]
        heights = [y for _, y in places]
        assert heights == sorted(heights, reverse=True)  # upwards on the page, or level
    public = run(*words, "--attacker", "items.id within 2")
    assert public[0] in (0, 2)
