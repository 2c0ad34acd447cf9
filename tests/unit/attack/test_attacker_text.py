"""Attackers as they are written, and what is said of each protection."""

import datetime
import math
from fractions import Fraction

import pytest

from secant.attack import attack_lines, attack_report, guess_probability, parse_attacker, uniform
from secant.attack.beliefs import ASSUMED, belief_of
from secant.attack.goals import Allowed, goal_text
from secant.attack.priors import Uniform, Weights
from secant.attack.secrets import weight_of
from secant.errors import PolicyError, UsageError
from secant.policy.file import read_policy
from secant.policy.policy import ColumnFacts, Protection
from secant.schema.catalog import Table, catalog
from secant.schema.types import DATE, DOUBLE, INTEGER

POLICY = read_policy("""
[database]
source = "duckdb:x.duckdb"
[tables.people.columns]
age = { range = [0, 100], step = 1 }
income = { range = [1, 1000] }
born = { range = ["1950-01-01", "2000-12-31"] }
grade = { values = [1, 2, 3, 4] }
note = { values = ["a", "b"] }

[protections.cells]
kind = "cells"
epsilon = 2
[protections.cells.distance]
people = "l1(0.5*linf(0.2*age, grade), 3*ln(income), born)"

[protections.faces]
kind = "rows"
tables = ["people"]
epsilon = 3

[protections.others]
kind = "rows"
tables = ["houses"]
epsilon = 3

[protections.loose]
kind = "cells"
epsilon = 2
delta = 0.001
[protections.loose.distance]
people = "age"
""")
CATALOG = catalog(
    Table(
        "people",
        (
            ("age", INTEGER),
            ("income", DOUBLE),
            ("born", DATE),
            ("grade", INTEGER),
            ("shoe", DOUBLE),
        ),
    )
)
CHARGED = [
    {"protection": name, "epsilon": 0.5, "delta": delta}
    for name, delta in (("cells", 0.0), ("faces", 0.0), ("others", 0.0), ("loose", 1e-5))
]


def test_an_attacker_is_read():
    attacker = parse_attacker("People.AGE within 2.5 of 40 prior normal(40, 12) member 0.01")
    found = attacker.goal
    assert (found.table, found.column, found.radius) == ("people", "age", Fraction(5, 2))
    assert (found.center, found.kind, attacker.member) == (40, "normal", Fraction(1, 100))
    assert found.numbers == ((40, None), (12, None))
    dated = parse_attacker("people.born within 30 of 1970-05-17").goal
    assert dated.center == datetime.date(1970, 5, 17).toordinal()
    shares = parse_attacker("p.c within 0 prior values(1: 0.25, 2: 75%)").goal
    assert shares.numbers == ((1, Fraction(1, 4)), (2, Fraction(3, 4)))


def test_goals_are_joined():
    found = parse_attacker("a.x within 1 and (a.y exactly or b[2].note is 'it''s') dependent")
    assert found.dependent
    first, either = found.goal.parts
    assert (found.goal.joined_by, first.column, either.joined_by) == ("and", "x", "or")
    assert (either.parts[0].radius, either.parts[1].center) == (0, "it's")
    assert (either.parts[1].row, either.parts[1].name) == (2, "b[2].note")
    assert goal_text(found.goal) == "a.x within 1 and (a.y exactly or b[2].note is 'it's')"
    ball = parse_attacker("ships.(x, y) within 5 of (1, -2)").goal
    assert (ball.ball, [(p.column, p.center) for p in ball.parts]) == (True, [("x", 1), ("y", -2)])
    assert goal_text(ball) == "ships.(x, y) within 5"
    # `and` binds more tightly, and a table alone is asked about who is in it.
    assert parse_attacker("a.x exactly or a.y exactly and a.z exactly").goal.joined_by == "or"
    alone = parse_attacker("people member 10% at most 30%")
    assert (alone.goal, alone.table, alone.member) == (None, "people", Fraction(1, 10))


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("at most 30%", Allowed(Fraction(3, 10))),
        ("AT MOST 30 %", Allowed(Fraction(3, 10))),
        ("at most 0.3 on average", Allowed(Fraction(3, 10), on_average=True)),
        ("advantage at most 2.5%", Allowed(Fraction(1, 40), advantage=True)),
        ("", None),
    ],
)
def test_what_is_allowed_is_read(words, allowed):
    assert parse_attacker(f"people.age within 2 {words}").allowed == allowed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "age within 2",
        "people.age",
        "people.age within",
        "people.age within two",
        "people.age within -1",
        "people.age within nan",
        "people.age within 1 of inf",
        "people.age within 1 of 1970-02-30",
        "people.age within 1 prior cauchy(1)",
        "people.age within 1 member 1",
        "people.age within 1 member x",
        "people.age within 1 prior values(1:x)",
        "people.age within 1; drop table people",
        "people.age within 1 at most 0%",
        "people.age within 1 at most 100%",
        "people.age within 1 at most",
        "people.age within 1 at least 30%",
        "people.age within 1 advantage 30%",
        "people.age within 1 and",
        "(people.age within 1",
        "people.(age) within",
        "people.(age, age) within 1",
        "people.(age, born) within 1 of (3)",
        "people[0].age within 1",
        "people[1.5].age within 1",
        "people.age is",
        "people.age within 1 at most 30% more words",
        "(" * 100 + "people.age within 1" + ")" * 100,
        " or ".join(["people.age within 1"] * 60),
        "people.age within 1 " + " " * 20_000,
    ],
)
def test_what_cannot_be_read_is_wrong_use(text):
    with pytest.raises(UsageError) as refusal:
        parse_attacker(text)
    assert refusal.value.code == "USE-001"


@pytest.mark.parametrize(
    "prior",
    [
        "uniform(1)",
        "normal(1)",
        "normal",
        "normal(1, 0)",
        "values()",
        "values(1, 1)",
        "values(1: 1, 2)",
        "histogram(1, 2)",
        "histogram(0: 1)",
        "histogram(-5: 1, 20)",
        "histogram(0: 1, 0.25: 1, 0.75: 1, 3)",
    ],
)
def test_a_prior_that_cannot_be_meant_is_wrong_use(prior):
    with pytest.raises(UsageError) as refusal:
        attack_report(f"people.age within 1 prior {prior}", POLICY, CHARGED, CATALOG)
    assert refusal.value.code == "USE-001"


def test_a_column_without_a_range_is_a_fault_of_the_policy():
    bare = Protection("p", "cells", Fraction(1), distance={"people": "shoe"})
    with pytest.raises(PolicyError, match="declares no range of people") as refusal:
        attack_report("people.shoe within 1 prior uniform", POLICY, CHARGED[1:2], CATALOG)
    assert refusal.value.code == "POL-003"
    (entry,) = attack_report("people.shoe within 1", POLICY, CHARGED[1:2], CATALOG)
    assert entry["prior_words"] == "any"  # nothing is believed, and nothing need be
    assert entry["answer"]["advantage"] == pytest.approx(math.tanh(0.25))
    assert weight_of(bare, "people", "shoe") == (1, "x")


def test_a_column_that_does_not_exist_is_wrong_use():
    for known in (CATALOG, None):
        with pytest.raises(UsageError, match="no column"):
            attack_report("people.height within 1", POLICY, CHARGED, known)


def test_text_has_no_distance():
    facts = ColumnFacts(values=("a", "b"))
    for words in ("within 1", "is 3", "exactly prior normal(1, 2)"):
        with pytest.raises(UsageError):
            belief_of(parse_attacker(f"people.note {words}").goal, facts)
    with pytest.raises(UsageError, match="a text is guessed"):
        belief_of(
            parse_attacker("people.age is 'old'").goal, POLICY.column("people", "age"), CATALOG
        )


@pytest.mark.parametrize(
    ("column", "weight"),
    [
        ("age", (Fraction(1, 10), "x")),
        ("grade", (Fraction(1, 2), "x")),
        ("income", (Fraction(3), "ln")),
        ("born", (Fraction(1), "x")),
        ("shoe", None),
    ],
)
def test_the_weight_of_a_cell_is_the_product_of_its_factors(column, weight):
    assert weight_of(POLICY.protections[0], "people", column) == weight
    assert weight_of(POLICY.protections[0], "houses", column) is None


def test_priors_take_range_and_step_from_the_policy():
    def prior(text):
        aim = parse_attacker(text).goal
        return belief_of(aim, POLICY.column("people", aim.column), CATALOG)

    assert prior("people.age within 1")[0] == Uniform(0.0, 100.0, 1.0)
    assert prior("people.income within 1")[0] == Uniform(1.0, 1000.0, None)
    born, words = prior("people.born within 1")
    assert isinstance(born, Uniform)
    assert born.step == 1.0
    assert words == "uniform on [1950-01-01, 2000-12-31] in steps of 1" + ASSUMED
    assert prior("people.grade within 0")[0] == Weights((1.0, 2.0, 3.0, 4.0), (0.25,) * 4)
    bell, words = prior("people.age within 1 prior normal(40, 10)")
    assert isinstance(bell, Weights)
    assert len(bell.values) == 101
    assert bell.weights[40] == pytest.approx(1 / (10 * math.sqrt(2 * math.pi)), rel=1e-3)
    bins, _ = prior("people.age within 1 prior histogram(0: 1, 50: 3, 100)")
    assert isinstance(bins, Weights)
    assert sum(bins.weights[:50]) == pytest.approx(0.25)


def test_each_protection_gets_its_own_statement():
    report = attack_report("people.age within 2", POLICY, CHARGED, CATALOG)
    cells, faces, others, loose = report
    assert [entry["guesses"] for entry in report] == ["value", "attribute", "nothing", "value"]
    truth = guess_probability(uniform(0, 100, 1), None, 2, "0.5", "0.1")
    assert cells["answer"]["posterior"] == truth.posterior
    assert cells["answer"]["prior"] == pytest.approx(5 / 101)
    whole = guess_probability(uniform(0, 100, 1), None, 2, 2, "0.1")
    assert cells["budget"]["posterior"] == whole.posterior
    assert faces["answer"]["posterior"] == pytest.approx(5 / (5 + 96 * math.exp(-1)))
    assert faces["budget"]["epsilon"] == 3
    assert "not among its tables" in others["words"]
    assert loose["answer"]["posterior"] is None
    assert loose["answer"]["on_average"] == 1  # a hundred years are a hundred steps
    assert "delta is not 0" in loose["answer"]["words"]
    lines = attack_lines("people.age within 2", report)
    assert lines[0] == "attacker: guesses people.age within 2"
    assert any("uniform on [0, 100] in steps of 1" in line for line in lines)
    assert any("this answer (epsilon 0.5): from 4.95 % to at most" in line for line in lines)


def test_a_column_outside_of_the_norm_is_public():
    (entry,) = attack_report("people.income within 2", POLICY, CHARGED[3:], CATALOG)
    assert entry["guesses"] == "nothing"
    assert "not in its norm" in entry["words"]


def test_an_answer_that_costs_nothing_tells_nothing():
    free = [{"protection": "cells", "epsilon": 0.0, "delta": 0.0}]
    (entry,) = attack_report("people.age within 2 of 40", POLICY, free, CATALOG)
    assert entry["answer"]["posterior"] == pytest.approx(entry["answer"]["prior"])


def test_a_column_measured_in_ln_is_guessed_in_its_own_unit():
    (entry,) = attack_report("people.income within 5 of 100", POLICY, CHARGED[:1], CATALOG)
    truth = guess_probability(uniform(1, 1000), 100, 5, "0.5", 3, logarithmic=True)
    assert entry["answer"]["posterior"] == truth.posterior


ROOTED = """
[database]
source = "duckdb:x.duckdb"
[tables.people.columns]
income = { range = [1, 900] }
[protections.cells]
kind = "cells"
epsilon = 2
[protections.cells.distance]
people = "0.1*sqrt(income)"
"""


def best_answer(epsilon, center, radius):
    """Give what an answer tells whose likelihood falls with the distance from the goal as fast as is allowed."""
    first, last = math.sqrt(center - radius), math.sqrt(center + radius)
    hits = whole = 0.0
    for i in range(8990):
        root = math.sqrt(1 + (i + 0.5) / 10)
        away = max(0.0, first - root, root - last)
        whole += math.exp(-epsilon * 0.1 * away)
        hits += away == 0
    return hits / whole


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "2"])
@pytest.mark.parametrize(("center", "radius"), [(100, 5), (10, 9), (890, 10)])
def test_a_column_measured_in_sqrt_is_bounded_by_its_whole_range_in_the_root(
    epsilon, center, radius
):
    charged = [{"protection": "cells", "epsilon": float(epsilon), "delta": 0.0}]
    words = f"people.income within {radius} of {center}"
    (entry,) = attack_report(words, read_policy(ROOTED), charged, CATALOG)
    before, width = 2 * radius / 899, 0.1 * (30 - 1)
    raised = before / (before + (1 - before) * math.exp(-float(epsilon) * width))
    found = entry["answer"]["posterior"]
    assert found == pytest.approx(raised, rel=1e-6)
    # Never less than what an answer can tell whose law follows the distance.
    assert found >= best_answer(float(epsilon), center, radius) * (1 - 1e-3)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [("range = [-1, 900]", "without negative values"), ("", "needs a declared range")],
)
def test_nothing_is_claimed_of_a_root_that_may_not_exist(facts, sentence):
    charged = [{"protection": "cells", "epsilon": 1.0, "delta": 0.0}]
    policy = read_policy(ROOTED.replace("range = [1, 900]", facts))
    with pytest.raises(UsageError, match=sentence):
        attack_report("people.income within 5", policy, charged, CATALOG)
