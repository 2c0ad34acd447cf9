"""A policy file is read whole or refused whole, with the line of every mistake."""

import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secant.errors import PolicyError
from secant.policy.file import load_policy, read_policy
from secant.policy.policy import ColumnFacts

POLICIES = Path(__file__).parents[2] / "data" / "policies"
ROWS = '[protections.p]\nkind = "rows"\nepsilon = 1\n'


def mistakes(text: str) -> tuple[str, ...]:
    with pytest.raises(PolicyError) as caught:
        read_policy(text)
    assert caught.value.code == "POL-002"
    return caught.value.details


def test_the_customers_policy_loads_as_it_is():
    policy = load_policy(POLICIES / "customers.toml")
    (customers,) = policy.protections
    assert (customers.unit, customers.epsilon) == (("customer", "c_custkey"), Fraction(10))
    assert customers.delta == Fraction(1, 10**6)
    assert customers.limits == {"orders": 41, "lineitem": 200}
    assert customers.groups is None
    assert policy.facts("LINEITEM").references["l_orderkey"] == ("orders", "o_orderkey")
    assert policy.column("lineitem", "l_tax") == ColumnFacts(
        range=(0, Decimal("0.08")), step=Decimal("0.01")
    )
    assert policy.column("orders", "o_orderdate") == ColumnFacts(
        range=(datetime.date(1992, 1, 1), datetime.date(1998, 12, 31)), step=1, null=False
    )


def test_every_key_is_kept():
    policy = load_policy(POLICIES / "everything.toml")
    assert policy.source == "csv:clinic"
    assert policy.ledger == "budgets/clinic.ledger"
    assert policy.alternatives == ("visits_rows", "cells")
    assert policy.accept == ("reference:visits.patient",)
    assert policy.path == POLICIES / "everything.toml"
    assert policy.facts("patients").key == ("id",)
    people, rows, cells, both = policy.protections
    assert (people.epsilon, people.delta) == (Fraction(5, 2), Fraction(1, 10**9))
    assert (people.renewal, people.composition) == ("monthly", "tight")
    assert people.analysts == {
        "Ann": (Fraction(3, 2), Fraction(1, 10**10)),
        "*": (Fraction(1, 2), Fraction(0)),
    }
    assert (people.limits, people.groups) == ({"visits": 30}, 4)
    assert (rows.tables, rows.replace) == (("visits",), True)
    assert (cells.row_norms, cells.table_norm) == ({"visits": "l2"}, "linf")
    assert cells.distance == {"visits": "l1(cost, 0.1*number)"}
    assert both.add_remove == {"visits": Fraction(30)}
    columns = policy.facts("visits").columns
    assert columns["cost"].range == (0, Decimal("1000.50"))
    assert columns["day"] == ColumnFacts(
        range=(datetime.date(2020, 1, 1), datetime.date(2024, 12, 31)), step=7
    )
    assert columns["started"].range[1] == datetime.datetime.fromisoformat("2024-12-31T23:59:59")
    assert columns["urgent"].values == (True, False)


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file():
    text = (
        "nonsense = 1\n"
        "[tables.t]\n"
        "kye = ['a']\n"
        "[tables.t.columns]\n"
        "q = { range = [50, 0] }\n"
        "[protections.p]\n"
        'kind = "rows"\n'
        "epsilon = 0\n"
    )
    assert mistakes(text) == (
        (
            "line 1: nonsense: unknown key; known here: "
            "database, ledger, tables, protections, alternatives, accept, streams, views"
        ),
        "line 3: tables.t.kye: unknown key; did you mean key?",
        "line 5: tables.t.columns.q.range: 0 is below 50, the range is reversed",
        "line 8: protections.p.epsilon: epsilon must lie between 1e-12 and 1e6",
    )


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ("range = [1]", "range: must be [smallest, largest]"),
        ("range = 3", "range: must be [smallest, largest]"),
        ("range = [0, nan]", "range: NaN is not a finite number"),
        ("range = [nan, nan]", "range: NaN is not a finite number"),
        ("range = [-inf, inf]", "range: -Infinity is not a finite number"),
        ('range = [0, "2020-01-01"]', "range: must be two numbers or two dates"),
        ('range = ["a", "b"]', 'range: "a" is neither a number nor a date written YYYY-MM-DD'),
        ('range = ["2020-02-30", "2020-03-01"]', '"2020-02-30" is neither a number nor a date'),
        ("range = [2020-01-02, 2020-01-01]", "2020-01-01 is below 2020-01-02"),
        ("range = [2020-01-01, 2020-01-01T00:00:00]", "range: must be two numbers or two dates"),
        ("range = [2020-01-01T00:00:00Z, 2021-01-01T00:00:00Z]", "a time with a zone"),
        ("range = [false, true]", "range: must be two numbers or two dates"),
        ("range = [0, 1e400]", "range: a number is too large or too small"),
        (f"range = [0, {'9' * 60}]", "range: a number has more than 38 digits"),
        ("range = [07:32:00, 08:00:00]", "range: must hold numbers, texts or dates"),
        ("values = []", "values: must be a list with at least one value"),
        ("values = [1, 2, 1.0]", "values: 1.0 is given twice"),
        ('values = ["a", 1]', "values: must be values of one kind"),
        ("values = [[1]]", "values: must hold numbers, texts or dates"),
        ("range = [0, 5], values = [1, 9]", "values: 9 is outside the range [0, 5]"),
        ('range = [0, 5], values = ["a"]', "values: a is outside the range [0, 5]"),
        ("step = 0", "step: must be positive and finite"),
        ("step = inf", "step: must be positive and finite"),
        ('step = "fortnight"', 'step: must be a number, or "1 day" for dates'),
        ("step = true", 'step: must be a number, or "1 day" for dates'),
        ('range = [0, 5], step = "1 day"', "step: must be a number, as the range says"),
        ("range = [2020-01-01, 2021-01-01], step = 1", "step: must be a number of days"),
        ("rnage = [0, 1]", "rnage: unknown key; did you mean range?"),
    ],
)
def test_facts_that_cannot_be_meant(facts, sentence):
    (mistake,) = mistakes(f"{ROWS}[tables.t.columns]\nc = {{ {facts} }}\n")
    assert mistake.startswith("line 5: tables.t.columns.c.")
    assert sentence in mistake


@pytest.mark.parametrize(
    ("protection", "sentence"),
    [
        ('kind = "rows"', "line 1: protections.p.epsilon: is missing"),
        ("epsilon = 1", "line 1: protections.p.kind: is missing"),
        ('kind = "people"\nepsilon = 1', "line 2: protections.p.kind: must be one of rows, unit"),
        ('kind = "rows"\nepsilon = -1', "line 3: protections.p.epsilon: epsilon must lie between"),
        ('kind = "rows"\nepsilon = inf', "protections.p.epsilon: epsilon must be a finite number"),
        ('kind = "rows"\nepsilon = nan', "protections.p.epsilon: epsilon must be a finite number"),
        ('kind = "rows"\nepsilon = "1"', "protections.p.epsilon: must be a number"),
        ('kind = "rows"\nepsilon = true', "protections.p.epsilon: must be a number"),
        ('kind = "rows"\nepsilon = 1e300', "protections.p.epsilon: epsilon must lie between"),
        ('kind = "rows"\nepsilon = 1e-300', "protections.p.epsilon: epsilon must lie between"),
        ('kind = "rows"\nepsilon = 1e99999999', "protections.p.epsilon: epsilon is out of range"),
        ('kind = "rows"\nepsilon = 1\ndelta = 1', "line 4: protections.p.delta: delta must be at"),
        ('kind = "rows"\nepsilon = 1\ndelta = -0.1', "protections.p.delta: delta must be at least"),
        ('kind = "unit"\nepsilon = 1', "line 1: protections.p.unit: is missing"),
        ('kind = "unit"\nepsilon = 1\nunit = "person"', 'unit: must be written "table.column"'),
        ('kind = "unit"\nepsilon = 1\nunit = "abc"', 'unit: must be written "table.column"'),
        ('kind = "rows"\nepsilon = 1\nunit = "a.b"', 'unit: unit belongs to kind = "unit"'),
        ('kind = "rows"\nepsilon = 1\nlimits = {t = 3}', 'limits belongs to kind = "unit"'),
        (
            'kind = "unit"\nunit = "a.b"\nepsilon = 1\nreplace = true',
            'replace belongs to kind = "rows"',
        ),
        ('kind = "rows"\nepsilon = 1\nreplace = 1', "replace: must be true or false"),
        ('kind = "rows"\nepsilon = 1\ntables = []', "tables: must be a list of names"),
        ('kind = "rows"\nepsilon = 1\ntables = ["t", "T"]', "tables: a name is given twice"),
        (
            'kind = "unit"\nunit = "a.b"\nepsilon = 1\nlimits = {t = 0}',
            "limits.t: must be a whole number of at least 1",
        ),
        (
            'kind = "unit"\nunit = "a.b"\nepsilon = 1\nlimits = {groups = 1.5}',
            "limits.groups: must be a whole number",
        ),
        (
            'kind = "unit"\nunit = "a.b"\nepsilon = 1\nlimits = {t = 1, T = 2}',
            "table t is given twice (case does not count)",
        ),
        ('kind = "rows"\nepsilon = 1\nrenewal = "weekly"', "renewal: must be monthly"),
        ('kind = "rows"\nepsilon = 1\ncomposition = 1', "composition: must be basic or tight"),
        ('kind = "rows"\nepsilon = 1\nanalysts = {a = 1}', "analysts.a: must be a table"),
        (
            'kind = "rows"\nepsilon = 1\nanalysts = {a = {epsilom = 1, epsilon = 1}}',
            "analysts.a.epsilom: unknown key; did you mean epsilon?",
        ),
        ('kind = "rows"\nepsilon = 1\nanalysts = {a = {}}', "analysts.a.epsilon: is missing"),
        (
            'kind = "rows"\nepsilon = 1\nanalysts = {a = {epsilon = 0}}',
            "line 4: protections.p.analysts.a.epsilon: epsilon must lie",
        ),
        ('kind = "rows"\nepsilon = 1\nanalysts = {" " = {epsilon = 1}}', "needs a name"),
        ('kind = "cells"\nepsilon = 1', "distance: is missing"),
        ('kind = "cells"\nepsilon = 1\ndistance = {t = " "}', "distance.t: must be a text"),
        (
            'kind = "cells"\nepsilon = 1\ndistance = {t = "a"}\nrows = {t = "max"}',
            "rows.t: must be a norm",
        ),
        (
            'kind = "rows+cells"\nepsilon = 1\ndistance = {t = "a"}\nadd_remove = {t = 0}',
            "the distance of a row must be positive",
        ),
    ],
)
def test_protections_that_cannot_be_meant(protection, sentence):
    assert sentence in "\n".join(mistakes(f"[protections.p]\n{protection}\n"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "protections: is missing"),
        ("[protections]", "line 1: protections: a policy without a protection protects nothing"),
        ("protections = 3", "line 1: protections: must be a table"),
        (f"{ROWS}[protections.P]\nkind = 'rows'\nepsilon = 1", "protection p is given twice"),
        (f"{ROWS}{ROWS}", "line 4: cannot declare ('protections', 'p') twice"),
        (f"{ROWS}[protections.'a b']\nkind = 'rows'\nepsilon = 1", "must be letters, digits"),
        (f"alternatives = ['p', 'q']\n{ROWS}", "line 1: alternatives: there is no protection q"),
        (f"alternatives = ['p']\n{ROWS}", "line 1: alternatives: needs two protections"),
        (f"accept = 3\n{ROWS}", "line 1: accept: must be a list of names"),
        (f"{ROWS}[tables.T]\n[tables.t]", "line 4: tables: table t is given twice"),
        (f"{ROWS}[tables.t]\nkey = []", "line 5: tables.t.key: must be a list of names"),
        (f"{ROWS}[tables.t.columns]\na = {{}}\nA = {{}}", "column a is given twice"),
        (f"{ROWS}[tables.t.columns]\na = 3", "line 5: tables.t.columns.a: must be a table"),
        (f"{ROWS}[tables.t.references]\na = 'b'", "line 5: tables.t.references.a: must be written"),
        (f"{ROWS}[database]\nsource = 1", "line 5: database.source: must be a text"),
        (f"{ROWS}[ledger]\nlocation = ''", "line 5: ledger.location: must be a text"),
        ("a = = 1", "line 1: invalid value"),
        ("\n\n[unclosed", "line 3: "),
        ("a = " + "[" * 5000, "values are nested too deeply"),
        ("a = " + "9" * 5000, "a number has too many digits"),
    ],
)
def test_files_that_cannot_be_meant(text, sentence):
    assert sentence in "\n".join(mistakes(text))


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(PolicyError, match="there is no policy file") as caught:
        load_policy(tmp_path / "none.toml")
    assert caught.value.code == "POL-001"
    assert "secant init" in caught.value.hint
    with pytest.raises(PolicyError, match="cannot read") as caught:
        load_policy(tmp_path)
    assert caught.value.code == "POL-001"
    (tmp_path / "latin.toml").write_bytes(b"# ok\n# caf\xe9\n")
    with pytest.raises(PolicyError, match="line 2 is not UTF-8") as caught:
        load_policy(tmp_path / "latin.toml")
    assert caught.value.code == "POL-001"
    (tmp_path / "huge.toml").write_bytes(b"#" * 5_000_000)
    with pytest.raises(PolicyError, match="larger than 4 MB"):
        load_policy(tmp_path / "huge.toml")


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    (tmp_path / "p.toml").write_bytes(b"\xef\xbb\xbf" + ROWS.encode())
    assert load_policy(tmp_path / "p.toml").protection("p") is not None


def test_lines_point_into_the_file():
    policy = load_policy(POLICIES / "everything.toml")
    written = (POLICIES / "everything.toml").read_text().splitlines()
    assert written[policy.lines[("tables", "patients")] - 1] == "[tables.Patients]"
    place = ("tables", "visits", "columns", "ward", "values")
    assert written[policy.lines[place] - 1].startswith("ward =")


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_mangled_file_gives_a_policy_error_or_a_policy(data):
    text = (POLICIES / "everything.toml").read_text()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        width = data.draw(st.integers(0, 6))
        piece = data.draw(st.text(alphabet='[]{}"=.,#\n\\ax1-', max_size=3))
        text = text[:place] + piece + text[place + width :]
    problem = None
    try:
        policy = read_policy(text)
    except PolicyError as error:
        problem = error
    if problem is not None:
        assert problem.details
    else:
        assert policy.protections
