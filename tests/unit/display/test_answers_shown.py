"""An answer on a screen, in a notebook and as a frame: the same numbers everywhere, and every text escaped."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction

import pytest

from secant.errors import Span, SqlError, UsageError
from secant.ledger.opening import Account, Accounts
from secant.release.answer import Answer
from secant.release.report import Explanation

BUDGET = Accounts(patients=Account(*(Fraction(x) for x in (4, 0, 1, 0, 3, 0))))
NASTY = '<script>alert("x")</script>'


def answer(ward="Eye"):
    low, high = [[None, 8.0], [None, 17.5]], [[None, 12.0], [None, None]]
    error = {
        "level": 0.95,
        "values": [[None, 2.0], [None, None]],
        "low": low,
        "high": high,
        "noise": [[None, 2.0], [None, 2.5]],
        "ranks": None,
        "noisy": [False, True],
        "leaves_out": None,
    }
    guarantee = [
        {"protection": "patients", "protects": "one patient", "epsilon": 1.0, "delta": 0.0}
    ]
    rows = [(ward, 10), ("Ear", 20)]
    return Answer(["ward", "n"], rows, guarantee, error, [], BUDGET, "r1", raw=rows)


def test_printed_as_the_command_line_shows_it():
    lines = str(answer()).splitlines()
    assert lines[0].split() == ["ward", "n", "±", "(95", "%)"]
    assert lines[2].split() == ["Eye", "10", "±2.0"]
    assert lines[3].split() == ["Ear", "20", "≥", "17.5,", "noise", "±2.5"]
    assert "Guarantee: one patient" in lines
    assert "ε 1 of 4 spent, 3 left" in str(answer())
    assert "ε 1 of 4 spent, 3 left" in str(BUDGET)


def test_ends_have_the_shape_of_the_rows():
    assert answer().low == [(None, 8.0), (None, 17.5)]
    assert answer().high == [(None, 12.0), (None, None)]
    exact = Answer(["n"], [(1,)], [], {"level": 0.95, "low": None, "high": None}, [], {}, None)
    assert (exact.low, exact.high) == ([(None,)], [(None,)])


def test_json_has_one_shape_however_many_protections():
    told = json.loads(json.dumps(answer().to_dict()))
    assert [g["protection"] for g in told["guarantee"]] == ["patients"]
    assert told["budget"] == [
        {
            "protection": "patients",
            "total": {"epsilon": 4.0, "delta": 0.0},
            "spent": {"epsilon": 1.0, "delta": 0.0},
            "remaining": {"epsilon": 3.0, "delta": 0.0},
        }
    ]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_carry_ends_if_asked(kind):
    pytest.importorskip("pyarrow" if kind == "arrow" else kind)
    plain = getattr(answer(), f"to_{kind}")()
    wide = getattr(answer(), f"to_{kind}")(errors=True)
    names = wide.column_names if kind == "arrow" else list(wide.columns)
    assert names == ["ward", "n", "n_low", "n_high"]
    low = wide["n_low"].to_pylist() if kind == "arrow" else list(wide["n_low"])
    assert low == [8.0, 17.5]
    assert len(plain.column_names if kind == "arrow" else list(plain.columns)) == 2


def test_ends_never_take_a_name_that_is_there():
    pytest.importorskip("pandas")
    taken = answer()
    renamed = Answer(
        ["n_low", "n"],
        *(
            getattr(taken, f)
            for f in ("rows", "guarantee", "error", "mechanisms", "budget", "release_id")
        ),
    )
    assert list(renamed.to_pandas(errors=True).columns) == ["n_low", "n", "n_low_", "n_high"]


def test_the_page_of_an_answer_escapes_what_it_shows():
    page = answer(NASTY)._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<circle") == 1  # the second number has no upper end
    ET.fromstring(page)  # every tag is closed


def test_the_page_of_an_explanation_can_be_opened():
    record = {
        "guarantee": answer().guarantee,
        "releases": [
            {
                "noise": ["rows: Laplace"],
                "enforced": ["clamp"],
                "refusals": [],
                "certificates": [{"analysis": "stability", "derivation": [NASTY]}],
            }
        ],
        "statements": ["SELECT 1"],
        "warnings": [],
    }
    page = Explanation("all of it", record, ("SELECT 1",))._repr_html_()
    assert page.count("<details>") == 3
    assert "<script" not in page
    ET.fromstring(page)
    ET.fromstring(f"<div>{BUDGET._repr_html_()}</div>")


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "no rows"),
        ([("Eye", None), ("Ear", None)], "n is NULL in every row"),
        ([("Eye", "x"), ("Ear", None)], "n has no numbers"),
    ],
)
def test_a_plot_of_nothing_says_why(rows, why):
    """An average that came out as NULL was told to be without noise, and to ask for averages."""
    empty = replace(answer(), rows=rows)
    with pytest.raises(UsageError, match=why) as found:
        empty.plot("n" if rows else None)
    assert "noisy" not in str(found.value)
    assert "averages" not in str(found.value)


def test_a_plot_is_a_picture_of_one_noisy_column(tmp_path):
    picture = answer(NASTY).plot()
    root = ET.fromstring(picture.svg)
    assert len(root.findall("{*}circle")) == 2
    picture.save(tmp_path / "answer.svg")
    assert (tmp_path / "answer.svg").read_text(encoding="utf-8") == picture._repr_svg_()
    with pytest.raises(UsageError, match="the columns are: ward, n"):
        answer().plot("age")


def test_an_error_says_all_that_the_command_line_says():
    error = SqlError(
        "SQL-002",
        "there is no column agee",
        text="SELECT agee FROM t",
        span=Span(7, 11),
        hint="the columns here are: age",
    )
    assert str(error) == error.render() == error.to_dict()["text"]
    assert "^^^^" in str(error)
    assert "Now: the columns here are: age" in str(error)


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "secant", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip()
