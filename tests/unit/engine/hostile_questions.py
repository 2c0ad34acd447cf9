"""Texts that make work out of little: each could be planned for minutes, or for ever.

`tests/unit/sql/test_shape.py` has those that stop at the parser. Here: what doubles in the plan.
"""

from __future__ import annotations

from collections.abc import Callable


def case_of_branches(count: int) -> str:
    """Give a CASE with so many branches over a value that moves: softened, each stands for all that follow."""
    branches = " ".join(f"WHEN rate > {i / 100} THEN {i}" for i in range(count))
    return f"SELECT sum(CASE {branches} ELSE 0 END) FROM orders"


def case_in_case(count: int) -> str:
    """Give a CASE inside of a CASE, and so on."""
    inner = "1"
    for i in range(count):
        inner = f"CASE WHEN rate > {i / 100} THEN 1 ELSE {inner} END"
    return f"SELECT sum({inner}) FROM orders"


def doubled_column(count: int) -> str:
    """Give a column that each subquery adds to itself."""
    inner = "SELECT quantity AS a FROM orders"
    for _ in range(count):
        inner = f"SELECT a + a AS a FROM ({inner})"
    return f"SELECT sum(a) FROM ({inner})"


def doubled_table(count: int) -> str:
    """Give WITH tables of which each joins the one before it with itself."""
    tables = ["a0 AS (SELECT id, quantity AS q FROM orders)"]
    for i in range(1, count):
        rows = f"a{i - 1} x JOIN a{i - 1} y ON x.id = y.id"
        tables.append(f"a{i} AS (SELECT x.id, x.q FROM {rows})")
    return f"WITH {', '.join(tables)} SELECT count(*) FROM a{count - 1}"


def doubled_union(count: int) -> str:
    """Give WITH tables of which each holds the one before it twice."""
    tables = ["a0 AS (SELECT id FROM orders)"]
    for i in range(1, count):
        tables.append(f"a{i} AS (SELECT * FROM a{i - 1} UNION ALL SELECT * FROM a{i - 1})")
    return f"WITH {', '.join(tables)} SELECT count(*) FROM a{count - 1}"


def subquery_in_subquery(count: int) -> str:
    """Give averages over what is above an average."""
    inner = "(SELECT avg(total) FROM orders)"
    for _ in range(count):
        inner = f"(SELECT avg(total) FROM orders WHERE total > {inner})"
    return f"SELECT count(*) FROM orders WHERE total > {inner}"


def list_in_list(count: int) -> str:
    """Give an IN inside of an IN, and so on."""
    inner = "SELECT id FROM customers"
    for _ in range(count):
        inner = f"SELECT customer FROM orders WHERE customer IN ({inner})"
    return f"SELECT count(*) FROM orders WHERE customer IN ({inner})"


def sum_of_sums(count: int) -> str:
    """Give groups of groups."""
    inner = "SELECT customer, quantity AS n FROM orders"
    for _ in range(count):
        inner = f"SELECT customer, sum(n) AS n FROM ({inner}) GROUP BY customer"
    return f"SELECT sum(n) FROM ({inner})"


def chained(outer: str, inner: str, count: int) -> str:
    """Give a long AND of ORs, or the other way round, between two tables."""
    parts = f" {outer} ".join(f"(o.quantity > {i} {inner} c.age < {i})" for i in range(count))
    return f"SELECT count(*) FROM orders o JOIN customers c ON o.customer = c.id WHERE {parts}"


def alternating(count: int) -> str:
    """Give AND and OR in turns, each around the other."""
    inner = "quantity > 1"
    for i in range(count):
        inner = f"({inner} {'AND' if i % 2 else 'OR'} rate < {i / 100})"
    return f"SELECT count(*) FROM orders WHERE {inner}"


def joined(kind: str, condition: str, count: int) -> str:
    """Give a table joined with itself; `{i}` is a use, `{j}` the one before it."""
    joins = (f"{kind} orders o{i} ON " + condition.format(i=i, j=i - 1) for i in range(1, count))
    return f"SELECT count(*) FROM orders o0 {' '.join(joins)}"


def existing(glue: str, count: int) -> str:
    """Give many subqueries beside each other."""
    inner = "SELECT 1 FROM orders o{i} WHERE o{i}.customer = c.id AND o{i}.quantity = {i}"
    parts = f" {glue} ".join(f"EXISTS ({inner.format(i=i)})" for i in range(count))
    return f"SELECT count(*) FROM customers c WHERE {parts}"


def listed(what: str, each: Callable[[int], str], count: int, around: str = "orders") -> str:
    """Give one SELECT of many items."""
    return f"SELECT {', '.join(what.format(each(i)) for i in range(count))} FROM {around}"


NUMBERS = ", ".join(map(str, range(2000)))
TEXTS = ", ".join(f"'a{i}'" for i in range(2000))
NESTED = "greatest(least(" * 15 + "rate" + ", total), 1)" * 15
RANKS = ", ".join(
    f"rank() OVER (PARTITION BY customer ORDER BY id + {i}) AS r{i}" for i in range(40)
)
SETS = ", ".join(["(status)", "(quantity)"] * 15)

HOSTILE: dict[str, str] = {
    "16 branches": case_of_branches(16),
    "60 branches": case_of_branches(60),
    "18 nested branches": case_in_case(18),
    "a column doubled 30 times": doubled_column(30),
    "a WITH table doubled 5 times": doubled_table(5),
    "a WITH table doubled 14 times": doubled_table(14),
    "a union doubled 6 times": doubled_union(6),
    "a union doubled 20 times": doubled_union(20),
    "12 subqueries nested": subquery_in_subquery(12),
    "20 lists nested": list_in_list(20),
    "9 sums nested": sum_of_sums(9),
    "AND of ORs": chained("AND", "OR", 40),
    "OR of ANDs": chained("OR", "AND", 40),
    "AND and OR in turns": alternating(30),
    "2,000 numbers": f"SELECT big, count(*) FROM orders WHERE big IN ({NUMBERS}) GROUP BY big",
    "2,000 texts": f"SELECT count(*) FROM orders WHERE note IN ({TEXTS})",
    "30 questions united": " UNION ALL ".join(["SELECT count(*) AS n FROM orders"] * 30),
    "90 tables united": "SELECT count(*) FROM (" + " UNION ".join(["SELECT id FROM orders"] * 90) + ")",
    "a large cube": "SELECT count(*) FROM orders GROUP BY CUBE (status, day, note, id, big, rate, total)",
    "30 grouping sets": f"SELECT count(*) FROM orders GROUP BY GROUPING SETS ({SETS})",
    "60 sums": listed("sum(quantity + {})", str, 60),
    "20 variances": listed("var_samp(rate * {})", str, 20),
    "40 medians": listed("median(quantity + {})", str, 40),
    "a chain of products": f"SELECT sum({' * '.join(['rate'] * 120)}) FROM orders",
    "a long coalesce": f"SELECT sum(coalesce({', '.join(['rate'] * 400)}, 0)) FROM orders",
    "limits in limits": f"SELECT sum({NESTED}) FROM orders",
    "a long pattern": f"SELECT count(*) FROM orders WHERE note LIKE '{'%a_' * 2000}'",
    "40 windows": f"SELECT count(*) FROM (SELECT {RANKS} FROM orders) WHERE r1 < 3",
    "14 self-joins": joined("JOIN", "o{i}.id = o{j}.id", 15),
    "14 self-joins of sums": joined("JOIN", "o{i}.id = o0.id + {i}", 15),
    "14 self-joins with padding": joined("LEFT JOIN", "o{i}.id = o{j}.customer", 15),
    "40 self-joins with padding": joined("LEFT JOIN", "o{i}.id = o{j}.customer", 41),
    "8 full joins": joined("FULL JOIN", "o{i}.id = o{j}.customer", 9),
    "8 joins on either": joined("JOIN", "o{i}.id = o{j}.id OR o{i}.customer = o{j}.big", 9),
    "10 subqueries": existing("AND", 10),
    "10 subqueries or": existing("OR", 10),
    "many groups": listed("quantity % {}", lambda i: str(i + 2), 12, "orders GROUP BY ALL"),
}  # fmt: skip
