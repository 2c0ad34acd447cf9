"""Misspelled texts: what is said is said in words of SQL, points at the place, and asks whether a keyword was meant."""

import itertools
import re

import duckdb
import pytest

import secant
from secant.errors import InternalError, SecantError

POLICY = {
    "tables": {"people": {"columns": {"age": {"range": [0, 100]}, "city": {"values": ["a", "b"]}}}},
    "protections": {"people": {"kind": "rows", "tables": ["people"], "epsilon": 5}},
}
TEXTS = (
    "SELECT city, count(*) AS n FROM people WHERE age < 30 AND city IN ('a', 'b') GROUP BY city HAVING count(*) > 2",
    (
        "WITH x AS (SELECT age AS a FROM people WHERE age BETWEEN 3 AND 40) "
        "SELECT sum(a) FROM x JOIN people AS p ON p.age = a"
    ),
    (
        "SELECT CASE WHEN age > 3 THEN 'x' ELSE 'y' END AS k, avg(CAST(age AS DOUBLE)) FROM people "
        "GROUP BY 1 ORDER BY k LIMIT 3"
    ),
    "SELECT extract(year FROM DATE '2025-01-01') + max(age) OVER () FROM people WHERE NOT age IS NULL",
)
PYTHON = re.compile(
    r"<class|<Token|TokenType|sqlglot|object at 0x|SENTINEL|Traceback|Required keyword|\bexp\.|\\x"
)


@pytest.fixture(scope="module")
def db():
    people = duckdb.sql("SELECT range % 9 AS age, 'a' AS city FROM range(20)").to_arrow_table()
    with secant.connect({"people": people}, policy=POLICY) as connection:
        yield connection


def said(db, text: str) -> str:
    """Give what is said of a text; an answer is fine, a bug is not."""
    try:
        db.explain(text)
    except InternalError:
        raise
    except SecantError as error:
        return str(error)
    return ""


def mutations():
    for text in TEXTS:
        words = re.findall(r"\w+|'[^']*'|[^\w\s]", text)
        for i, word in enumerate(words):
            others = [
                [*words[:i], *words[i + 1 :]],
                [*words[:i], word, word, *words[i + 1 :]],
                words[:i],
                [*words[:i], word[:-1] or "<", *words[i + 1 :]],
                [*words[:i], "<", *words[i + 1 :]],
                [*words[: i + 1], "(", *words[i + 1 :]],
            ]
            yield from (" ".join(other) for other in others)


def test_no_message_holds_what_python_calls_things(db):
    tried = dict.fromkeys(
        itertools.chain(mutations(), (";", ")", "<", "SELECT [1", "SELECT a -> b"))
    )
    wrong = 0
    for text in tried:
        told = said(db, text)
        wrong += bool(told)
        assert not PYTHON.search(told), (text, told)
    assert wrong > 400, "most of these are no SQL"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("SELEC", "SELECT"),
        ("SELEC age", "SELECT"),
        ("SELEC count(*) FROM people", "SELECT"),
        ("SELCT 1", "SELECT"),
        ("SELEKT city, count(*) FROM people GROUP BY city", "SELECT"),
        ("(SELEC count(*) FROM people)", "SELECT"),
        ("WIT x AS (SELECT 1) SELECT * FROM x", "WITH"),
        ("SELECT count(*) FRM people", "FROM"),
        ("SELECT count(*) FROM people WERE age > 3", "WHERE"),
        ("SELECT count(*) FROM people GROUP city", "GROUP BY"),
        ("SELECT count(*) FROM people ORDER age", "ORDER BY"),
        ("SELECT count(*) FROM people LIMT 3", "LIMIT"),
    ],
)
def test_a_misspelled_keyword_is_asked_about(db, text, word):
    assert f"did you mean {word}?" in said(db, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT count(*) FROM people WHERE age <", "something is missing here"),
        ("SELECT count(*) FROM people JOIN", "the name of a table is missing here"),
        ("SELECT count(* FROM people", "a ) is missing"),
        ("SELECT count(*) FROM people WHERE age >> 3 > 1", ">> is not accepted"),
        ("UPDATE people SET age = 1", "UPDATE is not a SELECT"),
        ("people", "PEOPLE is not a SELECT"),
        ("1", "the text is not a SELECT"),
    ],
)
def test_what_is_said_is_said_in_words_of_sql(db, text, words):
    assert words in said(db, text)


@pytest.mark.parametrize(
    "script",
    [
        "CREATE VIEW v AS\n  SELECT age FROM people;\n\nSELECT age FROM v;",
        "CREATE VIEW w AS SELECT age FROM people;\nCREATE VIEW v AS SELECT age FROM w;\nSELECT * FROM v;",
        "RELEASE t AS SELECT age FROM people;",
        "CREATE VIEW v AS SELECT years FROM people;\nSELECT count(*) FROM v;",
        "SELECT count(*) FROM people;\nSELECT sum(age) FROM people WHERE <;",
    ],
)
def test_an_error_of_a_script_shows_the_line_that_it_marks(db, script):
    """A place in a view was shown under a line of blanks: the other statements had been blanked out."""
    with pytest.raises(SecantError) as found:
        db.run(script, epsilon=1, explain=True)
    _, line, marks, *_ = str(found.value).split("\n")
    assert line.strip() in script
    start, end = marks.index("^"), marks.rindex("^") + 1
    assert line[start:end].strip()
