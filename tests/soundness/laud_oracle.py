"""What the 17 queries of the calculus paper truly give when they are softened: the answer and its exact sensitivity.

In: a directory of TPC-H Parquet files, a query's name, the way in which dates of a line item are joined
in the owner's norm ("linf": profile paper; "l1": profile paper-l1). Out: the exact answer, the softened
one, and for each table the largest dual norm of the gradient over its rows. Joins and filters on public
columns are DuckDB's; the softening is numpy's, its derivative a complex step, which has no cancellation.
No code of Secant is used here, so that it can be held against Secant.

The reading that reproduces Table 4: a comparison is a sigmoid 1 / (1 + exp(-0.1 x)) in the column's own
unit (months for dates, whatever the norm's weight), strict or not; equality is a tauoid 1 / cosh(0.1 x);
BETWEEN is two sigmoids; AND multiplies; IN, and OR of exclusive branches, add; COUNT sums the filter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

SLOPE = 0.1
STEP = 1e-30
Columns = dict[str, np.ndarray]

WEIGHTS = {
    "part": {"p_size": 1.0, "p_retailprice": 0.01},
    "partsupp": {"ps_availqty": 1.0, "ps_supplycost": 0.01},
    "orders": {"o_orderdateg": 30.0, "o_totalprice": 0.01},
    "customer": {"c_acctbal": 0.01},
    "supplier": {"s_acctbal": 0.01},
    "lineitem": {
        "l_quantity": 1.0,
        "l_extendedprice": 0.0001,
        "l_discount": 50.0,
        "l_shipdateg": 30.0,
        "l_commitdateg": 30.0,
        "l_receiptdateg": 30.0,
    },
}
KEYS = {
    "part": "p_partkey",
    "partsupp": "ps_partkey * 1000000 + ps_suppkey",
    "orders": "o_orderkey",
    "customer": "c_custkey",
    "supplier": "s_suppkey",
    "lineitem": "l_orderkey * 8 + l_linenumber",
}
LINE_DATES = ("l_shipdateg", "l_commitdateg", "l_receiptdateg")


def above(x: np.ndarray) -> np.ndarray:
    """Soften x > 0, and x >= 0."""
    return 1 / (1 + np.exp(-SLOPE * x))


def zero(x: np.ndarray) -> np.ndarray:
    """Soften x = 0."""
    return 2 / (np.exp(SLOPE * x) + np.exp(-SLOPE * x))


@dataclass(frozen=True, slots=True)
class Query:
    """One query: its tables, its public condition, its sensitive columns, what a joined row adds."""

    tables: str
    public: str
    sensitive: tuple[str, ...]
    value: Callable[[Columns], np.ndarray | float]
    kept: Callable[[Columns], np.ndarray | float]
    """The filter on protected columns, softened."""
    where: str
    """The same filter in SQL, exact."""
    measure: str
    """The summed value in SQL."""
    others: tuple[str, ...] = ()
    """Public columns that the value or the filter reads."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one query gives."""

    exact: float
    softened: float
    sensitivity: float
    by_table: dict[str, float]
    value_sensitivity: float
    """The same of the summed value alone, over the rows that pass the exact filter."""


def _revenue(c: Columns) -> np.ndarray:
    return c["l_extendedprice"] * (1 - c["l_discount"])


def _one(_: Columns) -> float:
    return 1.0


REVENUE = "l_extendedprice * (1 - l_discount)"
PRICES = ("l_extendedprice", "l_discount")
SHIPPED = "l_returnflag = 'R' and l_linestatus = 'F'"


def _b1(
    value: Callable[[Columns], np.ndarray | float],
    measure: str,
    *columns: str,
    others: tuple[str, ...] = (),
) -> Query:
    return Query(
        "lineitem",
        SHIPPED,
        (*columns, "l_shipdateg"),
        value,
        lambda c: above(230.3 - 30 - c["l_shipdateg"]),
        "l_shipdateg <= 230.3 - 30",
        measure,
        others,
    )


def _b12(priority: str) -> Query:
    return Query(
        "orders, lineitem",
        f"o_orderkey = l_orderkey and ({priority}) and l_shipmode in ('TRUCK', 'SHIP')",
        LINE_DATES,
        _one,
        lambda c: (
            above(c["l_receiptdateg"] - c["l_commitdateg"])
            * above(c["l_commitdateg"] - c["l_shipdateg"])
            * above(c["l_receiptdateg"] - 183.3)
            * above(183.3 + 12 - c["l_receiptdateg"])
        ),
        "l_commitdateg < l_receiptdateg and l_shipdateg < l_commitdateg "
        "and l_receiptdateg >= 183.3 and l_receiptdateg < 183.3 + 12",
        "1",
    )


SIZES = (5, 10, 15, 20, 25, 30, 35, 40)
BRANCHES = (
    ("Brand#34", ("SM CASE", "SM BOX", "SM PACK", "SM PKG"), 35, 5),
    ("Brand#22", ("MED BAG", "MED BOX", "MED PKG", "MED PACK"), 12, 10),
    ("Brand#14", ("LG CASE", "LG BOX", "LG PACK", "LG PKG"), 90, 15),
)


def _branches(c: Columns) -> np.ndarray:
    total = 0.0
    for number, (_, _, low, size) in enumerate(BRANCHES):
        total = total + (
            c[f"branch{number}"]
            * above(c["l_quantity"] - low)
            * above(low + 10 - c["l_quantity"])
            * above(size - c["p_size"])
        )
    return above(c["p_size"] - 1) * total


def _branch(number: int) -> str:
    brand, containers, _, _ = BRANCHES[number]
    return f"(p_brand = '{brand}' and p_container in {containers})"


QUERIES: dict[str, Query] = {
    "b1_1": _b1(lambda c: c["l_quantity"], "l_quantity", "l_quantity"),
    "b1_2": _b1(lambda c: c["l_extendedprice"], "l_extendedprice", "l_extendedprice"),
    "b1_3": _b1(_revenue, REVENUE, *PRICES),
    "b1_4": _b1(
        lambda c: _revenue(c) * (1 + c["l_tax"]),
        f"{REVENUE} * (1 + l_tax)",
        *PRICES,
        others=("l_tax",),
    ),
    "b1_5": _b1(_one, "1"),
    "b3": Query(
        "customer, orders, lineitem",
        "c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey "
        "and l_orderkey = 162 and o_shippriority = 0",
        (*PRICES, "l_shipdateg", "o_orderdateg"),
        _revenue,
        lambda c: above(190 - c["o_orderdateg"]) * above(c["l_shipdateg"] - 190),
        "o_orderdateg < 190 and l_shipdateg > 190",
        REVENUE,
    ),
    "b4": Query(
        "orders, lineitem",
        "l_orderkey = o_orderkey and o_orderpriority = '1-URGENT'",
        ("o_orderdateg", "l_commitdateg", "l_receiptdateg"),
        _one,
        lambda c: (
            above(c["o_orderdateg"] - 180)
            * above(180 + 3 - c["o_orderdateg"])
            * above(c["l_receiptdateg"] - c["l_commitdateg"])
        ),
        "o_orderdateg >= 180 and o_orderdateg < 180 + 3 and l_commitdateg < l_receiptdateg",
        "1",
    ),
    "b5": Query(
        "customer, orders, lineitem, supplier, nation, region",
        "c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey "
        "and c_nationkey = s_nationkey and s_nationkey = n_nationkey and n_regionkey = r_regionkey "
        "and r_name = 'ASIA' and n_name = 'JAPAN'",
        (*PRICES, "o_orderdateg"),
        _revenue,
        lambda c: above(c["o_orderdateg"] - 213.3) * above(213.3 + 12 - c["o_orderdateg"]),
        "o_orderdateg >= 213.3 and o_orderdateg < 213.3 + 12",
        REVENUE,
    ),
    "b6": Query(
        "lineitem",
        "true",
        (*PRICES, "l_shipdateg", "l_quantity"),
        lambda c: c["l_extendedprice"] * c["l_discount"],
        lambda c: (
            above(c["l_shipdateg"] - 170.5)
            * above(170.5 + 12 - c["l_shipdateg"])
            * above(c["l_discount"] - 0.08)
            * above(0.10 - c["l_discount"])
            * above(24 - c["l_quantity"])
        ),
        "l_shipdateg >= 170.5 and l_shipdateg < 170.5 + 12 "
        "and l_discount between 0.09 - 0.01 and 0.09 + 0.01 and l_quantity < 24",
        "l_extendedprice * l_discount",
    ),
    "b7": Query(
        "supplier, lineitem, orders, customer, nation as n1, nation as n2",
        "s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey "
        "and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey "
        "and ((n1.n_name = 'JAPAN' and n2.n_name = 'INDONESIA') "
        "or (n1.n_name = 'INDONESIA' and n2.n_name = 'JAPAN'))",
        (*PRICES, "l_shipdateg"),
        _revenue,
        lambda c: above(c["l_shipdateg"] - 182.6) * above(207 - c["l_shipdateg"]),
        "l_shipdateg between 182.6 and 207",
        REVENUE,
    ),
    "b9": Query(
        "part, supplier, lineitem, partsupp, orders, nation",
        "s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey "
        "and p_partkey = l_partkey and o_orderkey = l_orderkey and s_nationkey = n_nationkey "
        "and p_name like '%violet%' and n_name = 'UNITED KINGDOM'",
        (*PRICES, "l_quantity", "ps_supplycost"),
        lambda c: _revenue(c) - c["ps_supplycost"] * c["l_quantity"],
        _one,
        "true",
        f"{REVENUE} - ps_supplycost * l_quantity",
    ),
    "b10": Query(
        "customer, orders, lineitem, nation",
        "c_custkey = o_custkey and l_orderkey = o_orderkey and l_returnflag = 'R' "
        "and c_nationkey = n_nationkey and c_custkey = 64 and n_name = 'CANADA'",
        (*PRICES, "o_orderdateg"),
        _revenue,
        lambda c: above(c["o_orderdateg"] - 183.3) * above(183.3 + 3 - c["o_orderdateg"]),
        "o_orderdateg >= 183.3 and o_orderdateg < 183.3 + 3",
        REVENUE,
    ),
    "b12_1": _b12("o_orderpriority <> '1-URGENT' or o_orderpriority <> '2-HIGH'"),
    "b12_2": _b12("o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH'"),
    "b16": Query(
        "partsupp, part, supplier",
        "p_partkey = ps_partkey and ps_suppkey = s_suppkey and p_brand <> 'Brand#34' "
        "and not (p_type like '%COPPER%') and not (s_comment like '%Customer%Complaints%')",
        ("p_size",),
        _one,
        lambda c: sum(zero(c["p_size"] - size) for size in SIZES),
        f"p_size in {SIZES}",
        "1",
    ),
    "b17": Query(
        "lineitem, part",
        "p_partkey = l_partkey and p_brand = 'Brand#34' and p_container = 'JUMBO PKG'",
        ("l_extendedprice", "l_quantity"),
        lambda c: c["l_extendedprice"] * 0.142857,
        lambda c: above(0.2 * 32 - c["l_quantity"]),
        "l_quantity < 0.2 * 32",
        "l_extendedprice * 0.142857",
    ),
    "b19": Query(
        "lineitem, part",
        "p_partkey = l_partkey and l_shipmode in ('AIR', 'AIR REG') "
        "and l_shipinstruct = 'DELIVER IN PERSON' "
        f"and ({_branch(0)} or {_branch(1)} or {_branch(2)})",
        (*PRICES, "l_quantity", "p_size"),
        _revenue,
        _branches,
        "p_size >= 1 and ("
        + " or ".join(
            f"({_branch(i)} and l_quantity >= {low} and l_quantity <= {low} + 10 and p_size <= {size})"
            for i, (_, _, low, size) in enumerate(BRANCHES)
        )
        + ")",
        REVENUE,
        tuple(f"{_branch(i)} as branch{i}" for i in range(3)),
    ),
}


def open_tables(directory: Path) -> duckdb.DuckDBPyConnection:
    """Open the Parquet files as views with month columns beside the dates."""
    connection = duckdb.connect()
    connection.execute("SET threads TO 1")
    for path in sorted(directory.glob("*.parquet")):
        table = path.stem
        names = [
            str(row[0])
            for row in connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
            if row[1] == "DATE"
        ]
        months = "".join(f", (({n} - DATE '1980-01-01') / 30.0)::DOUBLE AS {n}G" for n in names)
        connection.execute(f"CREATE VIEW {table} AS SELECT *{months} FROM '{path}'")
    return connection


def evaluate(connection: duckdb.DuckDBPyConnection, name: str, dates: str = "linf") -> Outcome:
    """Give answer, softened answer and exact derivative sensitivity of a query."""
    query = QUERIES[name]
    (exact,) = connection.execute(
        f"SELECT coalesce(sum({query.measure}), 0)::DOUBLE FROM {query.tables} "
        f"WHERE {query.public} AND {query.where}"
    ).fetchone()
    owners = [t for t, weights in WEIGHTS.items() if set(weights) & set(query.sensitive)]
    wanted = [f"{column}::DOUBLE AS {column}" for column in query.sensitive]
    wanted += [f"{KEYS[table]} AS {table}_row" for table in owners]
    for column in query.others:
        shown, _, label = column.partition(" as ")
        wanted.append(f"({shown})::DOUBLE AS {label or column}")
    wanted.append(f"({query.where}) AS passes")
    data = connection.execute(
        f"SELECT {', '.join(wanted)} FROM {query.tables} WHERE {query.public}"
    ).fetchnumpy()
    columns = {key: np.asarray(value) for key, value in data.items()}
    count = len(next(iter(columns.values())))
    added = np.broadcast_to(_added(query, columns), (count,))
    by_table = _by_table(query, columns, dates, lambda c: _added(query, c))
    passing = columns["passes"].astype(bool)
    value = _by_table(query, columns, dates, lambda c: np.where(passing, query.value(c), 0))
    return Outcome(
        exact,
        float(added.sum()),
        max(by_table.values(), default=0.0),
        by_table,
        max(value.values(), default=0.0),
    )


def _added(query: Query, columns: Columns) -> np.ndarray:
    return np.asarray(query.value(columns) * query.kept(columns))


def _by_table(
    query: Query, columns: Columns, dates: str, added: Callable[[Columns], np.ndarray]
) -> dict[str, float]:
    """Give for each table the largest dual norm, over its rows, of the gradient of the sum."""
    found = {}
    for table, weights in WEIGHTS.items():
        if f"{table}_row" not in columns:
            continue
        rows, place = np.unique(columns[f"{table}_row"], return_inverse=True)
        scaled = {}
        for column in query.sensitive:
            if column in weights:
                moved = {**columns, column: columns[column] + 1j * STEP}
                slope = np.broadcast_to(np.imag(added(moved)) / STEP, place.shape)
                # Signs are kept: what one row adds through several joined rows can cancel.
                total = np.bincount(place, slope, len(rows))
                scaled[column] = np.abs(total) / weights[column]
        if dates == "linf":
            together = [scaled.pop(column) for column in LINE_DATES if column in scaled]
            if together:
                scaled["dates"] = np.sum(together, axis=0)
        found[table] = max((float(v.max()) for v in scaled.values() if len(v)), default=0.0)
    return found
