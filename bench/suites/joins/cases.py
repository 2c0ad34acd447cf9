"""The joins that are measured: their data, their policy, their text, and what is exactly true of them.

In: a directory of TPC-H Parquet files, or nothing for made-up data. Out: a source and a policy to
open it with, and a function from the open engine to the exact sensitivities. Made-up data come from
fixed seeds, so that two runs measure the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from bench.suites.joins import exact
from bench.suites.tpch.texts import customers_text
from secant.engines.backend import Session
from secant.errors import UsageError

_ROWS = """
[protections.rows]
kind = "rows"
epsilon = 1000
tables = [{tables}]
"""
REVENUE = "sum(l_extendedprice * (1 - l_discount)) AS revenue"


@dataclass(frozen=True, slots=True)
class Case:
    """One join."""

    name: str
    words: str
    text: str
    policy: str
    make: Callable[[Path], None] | None
    """Write a DuckDB file with made-up data; None means TPC-H."""
    truth: Callable[[Session, float], exact.Exact]
    """(engine, beta) -> the exact sensitivities, in rows of the join."""


def chosen_cases(names: str) -> tuple[Case, ...]:
    """Read a list such as `triangles,q3`; nothing means all."""
    wanted = {name.strip().lower() for name in names.split(",") if name.strip()}
    known = ", ".join(c.name for c in CASES)
    for name in sorted(wanted - {c.name for c in CASES}):
        raise UsageError("USE-001", f"there is no query {name!r}", hint=f"there are: {known}")
    return tuple(c for c in CASES if not wanted or c.name in wanted)


# ── made-up data ─────────────────────────────────────────────────────────────────────────────────


def _write(
    place: Path, tables: dict[str, tuple[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]]
) -> None:
    with duckdb.connect(str(place)) as connection:
        for name, (columns, rows) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns})")
            values = {f"c{i}": rows[:, i] for i in range(rows.shape[1])}
            marks = ", ".join(f"unnest(${column}) AS {column}" for column in values)
            lists = {column: numbers.tolist() for column, numbers in values.items()}
            connection.execute(f"INSERT INTO {name} SELECT {marks}", lists)


def make_graph(place: Path, nodes: int = 1500) -> None:
    """A random graph whose expected degrees follow a power law; each edge is stored once, smaller node first."""
    random = np.random.default_rng(11)
    weights = np.arange(1, nodes + 1) ** -0.6
    weights *= 4 * nodes / weights.sum()
    chances = np.minimum(1, np.outer(weights, weights) / weights.sum())
    edges = np.argwhere(np.triu(random.random((nodes, nodes)) < chances, 1))
    _write(place, {"edge": ("src INTEGER, dst INTEGER, PRIMARY KEY (src, dst)", edges)})


def make_chain(place: Path) -> None:
    """Customers with a Pareto number of orders, one order with 500 items: much to gain from residuals."""
    random = np.random.default_rng(3)
    each = np.minimum((random.pareto(1.2, 2000) * 4).astype(np.int64) + 1, 1200)
    buyers = np.repeat(np.arange(2000), each)
    orders = np.arange(len(buyers))
    items = random.integers(1, 8, len(orders))
    items[random.integers(0, len(orders))] = 500
    _write(
        place,
        {
            "buyer": ("b INTEGER", np.arange(2000)[:, None]),
            "purchase": ("b INTEGER, p INTEGER", np.stack([buyers, orders], axis=1)),
            "item": ("p INTEGER", np.repeat(orders, items)[:, None]),
        },
    )


def make_groups(place: Path) -> None:
    """Visits to places, with a Pareto number of visits each."""
    random = np.random.default_rng(7)
    sizes = np.minimum((random.pareto(1.1, 500) * 5).astype(np.int64) + 1, 3000)
    _write(place, {"visit": ("place INTEGER", np.repeat(np.arange(500), sizes)[:, None])})


# ── what is true of them ─────────────────────────────────────────────────────────────────────────


def _triangles(engine: Session, beta: float) -> exact.Exact:
    edges = [(int(str(a)), int(str(b))) for a, b in engine.rows("SELECT src, dst FROM edge")]
    return exact.triangles(edges, beta)


def _groups(engine: Session, beta: float) -> exact.Exact:
    sizes = engine.rows("SELECT count(*) FROM visit GROUP BY place")
    return exact.group_pairs([int(str(size)) for (size,) in sizes], beta)


def _chain(
    first: str, middle: str, last: str, groups: str = "SELECT 0"
) -> Callable[[Session, float], exact.Exact]:
    """Count keys with relations (c), (c, o) and (o), in which `{g}` stands for the group.

    A group is one of the answer's, or a value that both ends must share, as the nation in Q5: each row of
    an end has one, so its rows of the join lie in one group, and the worst group is the worst of all. For a
    row of the middle the sum over groups is bilinear in what is added to the ends, so one group gets all of it.
    """

    def counted(engine: Session, group: object) -> exact.Chain:
        c, co, o = (part.format(g=group) for part in (first, middle, last))
        rows = engine.rows(
            f"WITH c AS ({c}), co AS ({co}), o AS ({o}), "
            "nc AS (SELECT c, count(*) AS n FROM c GROUP BY c), "
            "nm AS (SELECT c, o, count(*) AS n FROM co GROUP BY c, o), "
            "no AS (SELECT o, count(*) AS n FROM o GROUP BY o) "
            "SELECT coalesce(nc.n, 0), nm.n, coalesce(no.n, 0), nm.c, nm.o "
            "FROM nm LEFT JOIN nc ON nm.c = nc.c LEFT JOIN no ON nm.o = no.o"
        )
        table = np.array(rows, dtype=np.int64).reshape(-1, 5)
        _, left = np.unique(table[:, 3], return_inverse=True)
        _, right = np.unique(table[:, 4], return_inverse=True)
        numbers = table.astype(np.float64)
        most = [
            float(str(engine.rows(
                f"SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM ({end}) GROUP BY {key})"
            )[0][0]))
            for end, key in ((c, "c"), (o, "o"))
        ]  # fmt: skip
        return exact.Chain(numbers[:, 0], numbers[:, 1], numbers[:, 2], left, right, *most)

    def truth(engine: Session, beta: float) -> exact.Exact:
        found = [counted(engine, key) for (key,) in engine.rows(groups)]
        return exact.chain(found[0], beta) if len(found) == 1 else exact.chains(found, beta)

    return truth


_TPCH_CHAIN = (
    "SELECT c_custkey AS c FROM customer",
    "SELECT o_custkey AS c, o_orderkey AS o FROM orders",
    "SELECT l_orderkey AS o FROM lineitem",
)
_PLAIN = '[database]\nsource = "duckdb:made"\n'
_TPCH = customers_text().split("[protections.customers]")[0] + _ROWS.format(
    tables='"customer", "orders", "lineitem"'
)
CASES = (
    Case(
        "triangles",
        "triangles of a random graph with a power law, 1500 nodes",
        "SELECT count(*) AS n FROM edge a, edge b, edge c WHERE a.src = c.src AND a.dst = b.src "
        "AND b.dst = c.dst AND a.src < a.dst AND b.src < b.dst AND c.src < c.dst",
        _PLAIN + _ROWS.format(tables='"edge"'),
        make_graph,
        _triangles,
    ),
    Case(
        "chain",
        "customer ⋈ orders ⋈ lineitem of TPC-H",
        "SELECT count(*) AS n FROM customer, orders, lineitem "
        "WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey",
        _TPCH,
        None,
        _chain(*_TPCH_CHAIN),
    ),
    Case(
        "chain-by-priority",
        "the same, grouped by the priority of orders: five declared values",
        "SELECT o_orderpriority, count(*) AS n FROM customer, orders, lineitem "
        "WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey GROUP BY o_orderpriority",
        _TPCH,
        None,
        _chain(
            _TPCH_CHAIN[0],
            f"{_TPCH_CHAIN[1]} WHERE o_orderpriority = '{{g}}'",
            _TPCH_CHAIN[2],
            "SELECT DISTINCT o_orderpriority FROM orders",
        ),
    ),
    Case(
        "heavy-chain",
        "a made-up chain with heavy tails",
        "SELECT count(*) AS n FROM buyer, purchase, item "
        "WHERE buyer.b = purchase.b AND purchase.p = item.p",
        _PLAIN + _ROWS.format(tables='"buyer", "purchase", "item"'),
        make_chain,
        _chain(
            "SELECT b AS c FROM buyer",
            "SELECT b AS c, p AS o FROM purchase",
            "SELECT p AS o FROM item",
        ),
    ),
    Case(
        "group-pairs",
        "a made-up table joined with itself by group",
        "SELECT count(*) AS n FROM visit a, visit b WHERE a.place = b.place",
        _PLAIN + _ROWS.format(tables='"visit"'),
        make_groups,
        _groups,
    ),
    Case(
        "q3",
        "Q3: revenue of a market segment's open orders",
        f"SELECT {REVENUE} FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' "
        "AND c_custkey = o_custkey AND l_orderkey = o_orderkey "
        "AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'",
        _TPCH,
        None,
        _chain(
            f"{_TPCH_CHAIN[0]} WHERE c_mktsegment = 'BUILDING'",
            f"{_TPCH_CHAIN[1]} WHERE o_orderdate < DATE '1995-03-15'",
            f"{_TPCH_CHAIN[2]} WHERE l_shipdate > DATE '1995-03-15'",
        ),
    ),
    Case(
        "q5",
        "Q5: revenue inside the nations of a region",
        f"SELECT {REVENUE} FROM customer, orders, lineitem, supplier, nation, region "
        "WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey "
        "AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey "
        "AND n_regionkey = r_regionkey AND r_name = 'ASIA' "
        "AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'",
        _TPCH,
        None,
        _chain(
            f"{_TPCH_CHAIN[0]} WHERE c_nationkey = {{g}}",
            f"{_TPCH_CHAIN[1]} WHERE o_orderdate >= DATE '1994-01-01' "
            "AND o_orderdate < DATE '1995-01-01'",
            f"{_TPCH_CHAIN[2]}, supplier WHERE l_suppkey = s_suppkey AND s_nationkey = {{g}}",
            "SELECT n_nationkey FROM nation, region "
            "WHERE n_regionkey = r_regionkey AND r_name = 'ASIA'",
        ),
    ),
    Case(
        "q10",
        "Q10: revenue lost to returns",
        f"SELECT {REVENUE} FROM customer, orders, lineitem, nation "
        "WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey "
        "AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01' "
        "AND l_returnflag = 'R' AND c_nationkey = n_nationkey",
        _TPCH,
        None,
        _chain(
            _TPCH_CHAIN[0],
            f"{_TPCH_CHAIN[1]} WHERE o_orderdate >= DATE '1993-10-01' "
            "AND o_orderdate < DATE '1994-01-01'",
            f"{_TPCH_CHAIN[2]} WHERE l_returnflag = 'R'",
        ),
    ),
)  # fmt: skip
