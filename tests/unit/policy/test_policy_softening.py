"""The keys for moving values: softening, beta, public rows, row counts, densities, norms."""

import re
from fractions import Fraction
from pathlib import Path

import pytest

from secant.errors import PolicyError
from secant.policy.file import check_policy, fit_policy, read_policy
from secant.policy.policy import PublicRows, Softening
from secant.schema.catalog import Table, catalog
from secant.schema.types import BOOLEAN, DATE, INTEGER, TEXT

TABLES = catalog(
    Table(
        "ships",
        (("id", INTEGER), ("speed", INTEGER), ("seen", DATE), ("mark", BOOLEAN), ("n", TEXT)),
    ),
    Table("ids", (("id", INTEGER), ("name", TEXT))),
    Table("secret", (("id", INTEGER),)),
)
FACTS = """
[tables.ships]
rows = 2000
[tables.ships.columns]
speed = { range = [1, 40], density = 12.5 }
seen = { density = 3 }
"""


def cells(
    *lines: str, norm: str = "l1.5(seen, 2*ln(speed))", kind: str = "cells", facts: str = FACTS
):
    extra = "add_remove = { ships = 3 }\n" if kind == "rows+cells" else ""
    told = "\n".join(lines)
    return (
        f'database.public = ["ids"]{facts}\n[protections.c]\nkind = "{kind}"\nepsilon = 1\n{extra}'
        f'distance = {{ ships = "{norm}", secret = "id" }}\n{told}\n'
    )


def details(text: str) -> str:
    with pytest.raises(PolicyError) as caught:
        fit_policy(read_policy(text), TABLES)
    return "\n".join(caught.value.details)


@pytest.mark.parametrize("kind", ["cells", "rows+cells"])
def test_every_key_is_kept(kind):
    text = cells(
        'softening = { kind = "ramp", width = 0.5 }',
        "beta = 0.1",
        'rows = { ships = "L1.5" }',
        'tables = "linf"',
        "[protections.c.public_rows]",
        'SHIPS = "speed > 3 AND mark"',
        'secret = { ids = "IDS.id", key = "id2" }',
        kind=kind,
    )
    policy = read_policy(text)
    (protection,) = policy.protections
    assert protection.softening == Softening("ramp", Fraction(1, 2))
    assert protection.beta == Fraction(1, 10)
    assert protection.row_norms == {"ships": "l1.5"}
    assert protection.table_norm == "linf"
    assert protection.public_rows == {
        "ships": PublicRows(condition="speed > 3 AND mark"),
        "secret": PublicRows(ids=("ids", "id"), key="id2"),
    }
    assert policy.facts("ships").rows == 2000
    assert policy.column("ships", "speed").density == Fraction(25, 2)


def test_nothing_said_is_none():
    (protection,) = read_policy(cells(facts="")).protections
    assert (protection.softening, protection.beta, protection.public_rows) == (None, None, {})
    assert read_policy(cells(facts="")).facts("ships").rows is None


def test_facts_survive_the_fitting():
    fitted = fit_policy(read_policy(cells()), TABLES)
    assert fitted.facts("ships").rows == 2000
    assert fitted.column("ships", "seen").density == 3


def test_a_sigmoid_may_have_a_slope():
    (protection,) = read_policy(cells('softening = { kind = "sigmoid", slope = 2 }')).protections
    assert protection.softening == Softening("sigmoid", None, Fraction(2))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("softening = { width = 1 }", "line 12: protections.c.softening.kind: is missing"),
        ('softening = { kind = "step" }', "kind: must be one of auto, exact, ramp, sigmoid"),
        ('softening = { kind = "exact", width = 1 }', 'width belongs to kind = "ramp"'),
        ('softening = { kind = "ramp", slope = 1 }', 'slope belongs to kind = "sigmoid"'),
        ('softening = { kind = "ramp", width = 0 }', "a width must be positive"),
        ('softening = { kind = "sigmoid", slope = -1 }', "a slope must be positive"),
        ('softening = { kind = "ramp", width = nan }', "a width must be a finite number"),
        ('softening = { kind = "ramp", widht = 1 }', "unknown key; did you mean width?"),
        ('softening = "ramp"', "line 12: protections.c.softening: must be a table"),
        ("beta = 0", "line 12: protections.c.beta: beta must be positive"),
        ("beta = inf", "beta must be a finite number"),
        ('beta = "1"', "beta: must be a number"),
        ('public_rows = { ships = "" }', "must be a text that is not empty"),
        ("public_rows = { ships = 3 }", "line 12: protections.c.public_rows.ships: must be a cond"),
        ('public_rows = { ships = { ids = "ids.id" } }', "must be a condition, or { ids ="),
        ('public_rows = { ships = { ids = "ids", key = "id" } }', 'must be written "table.column"'),
        ('public_rows = { ships = "a", SHIPS = "b" }', "table ships is given twice"),
        ('rows = { ships = "l0.5" }', 'must be a norm: "l1", "l1.5", "l2", ... or "linf"'),
        ("rows = { ships = 2 }", "must be a norm"),
    ],
)
def test_what_cannot_be_meant(line, sentence):
    assert sentence in details(cells(line))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('softening = { kind = "auto" }', "softening"),
        ("beta = 1", "beta"),
        ('public_rows = { ships = "mark" }', "public_rows"),
    ],
)
def test_they_belong_to_moving_values(line, sentence):
    text = f'[protections.c]\nkind = "rows"\nepsilon = 1\n{line}'
    assert f'line 4: protections.c.{sentence}: {sentence} belongs to kind = "cells"' in details(
        text
    )


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("rows = 2000", "rows = 0", "line 3: tables.ships.rows: must be a whole number"),
        ("rows = 2000", "rows = 1.5", "must be a whole number of at least 1"),
        ("density = 12.5", "density = 0", "columns.speed.density: a density must be positive"),
        ("density = 12.5", "density = true", "columns.speed.density: must be a number"),
        ("seen = {", "n = {", "a density needs a number or a date, and the column is TEXT"),
    ],
)
def test_facts_that_cannot_be_meant(old, new, sentence):
    assert sentence in details(cells(facts=FACTS.replace(old, new)))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('public_rows = { none = "mark" }', "protections.c.public_rows: there is no table none"),
        ('public_rows = { ids = "id > 3" }', "ids has no distance, so all its rows are public"),
        (
            'public_rows = { ships = "marc" }',
            "line 12: protections.c.public_rows.ships: there is no",
        ),
        ('public_rows = { ships = "speed" }', "speed is INTEGER; a column that marks rows is BOOL"),
        (
            'public_rows = { ships = { ids = "ids.id", key = "speed" } }',
            "speed is in the distance, so it cannot tell which rows are public",
        ),
        (
            'public_rows = { ships = { ids = "ids.name", key = "id" } }',
            "id is INTEGER, but ids.name is TEXT",
        ),
        ('public_rows = { ships = { ids = "ids.x", key = "id" } }', "there is no column ids.x"),
        ('public_rows = { ships = { ids = "none.x", key = "id" } }', "there is no table none"),
        ('public_rows = { ships = { ids = "ids.id", key = "x" } }', "there is no column ships.x"),
        (
            'public_rows = { ships = { ids = "secret.id", key = "id" } }',
            "secret is protected, so it cannot tell which rows are public",
        ),
    ],
)
def test_public_rows_are_held_against_the_database(line, sentence):
    assert sentence in details(cells(line))


@pytest.mark.parametrize(
    "line",
    [
        'public_rows = { ships = "Mark" }',
        'public_rows = { ships = "true" }',
        'public_rows = { ships = "speed > 3" }',
        'public_rows = { ships = { ids = "ids.id", key = "id" } }',
    ],
)
def test_public_rows_that_fit(line):
    problems = check_policy(read_policy(cells(line)), TABLES)
    assert [p for p in problems if p.severity == "error"] == []


@pytest.mark.parametrize(
    ("norm", "facts", "sentence"),
    [
        ("ln(seen)", FACTS, "ln(seen) needs a number, and the column is DATE"),
        ("ln(id)", FACTS, "ln(id) needs a declared range that starts above 0"),
        ("ln(speed)", FACTS.replace("[1, 40]", "[0, 40]"), "ln(speed) needs a declared range"),
        ("ln(speed)", FACTS.replace("range = [1, 40], ", ""), "ln(speed) needs a declared range"),
        ("sqrt(seen)", FACTS, "sqrt(seen) needs a number, and the column is DATE"),
        ("sqrt(id)", FACTS, "sqrt(id) needs a declared range that starts at 0 or above"),
        ("sqrt(speed)", FACTS.replace("[1, 40]", "[-1, 40]"), "sqrt(speed) needs a declared range"),
        ("ln(n)", FACTS, "n is TEXT; only numbers and dates have a distance"),
        ("l2(speed, gone)", FACTS, "there is no column ships.gone"),
    ],
)
def test_norms_are_held_against_the_database(norm, facts, sentence):
    assert sentence in details(cells(norm=norm, facts=facts))


@pytest.mark.parametrize("range_", ["[0, 40]", "[1, 40]"])
def test_a_root_may_start_at_0(range_):
    text = cells(norm="sqrt(speed)", facts=FACTS.replace("[1, 40]", range_))
    problems = check_policy(read_policy(text), TABLES)
    assert [p for p in problems if p.severity == "error"] == []


def test_the_examples_of_the_page_are_policies():
    page = Path(__file__).parents[3] / "docs" / "reference" / "policy-file.md"
    examples = re.findall(r"^```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    policies = [read_policy(text) for text in examples]
    assert {p.kind for policy in policies for p in policy.protections} >= {"unit", "rows", "cells"}
