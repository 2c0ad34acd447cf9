"""The 17 queries of the calculus paper over tiny tables like those of TPC-H; every join and public filter is met.

In: a profile and the name of a query. Out: the world of that profile, the query's text, and databases of a few rows
whose keys and words are drawn from those that the queries ask for. Protected cells are filled in by a mover.
"""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from bench.suites.laud.forms import policy_of, profile_of, text_of
from derivative_check import World
from derivative_distance import Database

from secant.policy.check import fit_policy
from secant.schema import types as t
from secant.schema.catalog import Table, catalog

MONEY = t.decimal(15, 2)
N, T, D, F = t.INTEGER, t.TEXT, t.DATE, t.DOUBLE
COLUMNS: dict[str, tuple[tuple[str, t.Type], ...]] = {
    "region": (("r_regionkey", N), ("r_name", T)),
    "nation": (("n_nationkey", N), ("n_name", T), ("n_regionkey", N)),
    "part": (
        ("p_partkey", N), ("p_name", T), ("p_brand", T), ("p_type", T), ("p_size", N),
        ("p_container", T), ("p_retailprice", MONEY),
    ),
    "supplier": (("s_suppkey", N), ("s_nationkey", N), ("s_acctbal", MONEY), ("s_comment", T)),
    "partsupp": (
        ("ps_partkey", N), ("ps_suppkey", N), ("ps_availqty", N), ("ps_supplycost", MONEY),
    ),
    "customer": (("c_custkey", N), ("c_nationkey", N), ("c_acctbal", MONEY), ("c_mktsegment", T)),
    "orders": (
        ("o_orderkey", N), ("o_custkey", N), ("o_totalprice", MONEY), ("o_orderdate", D),
        ("o_orderpriority", T), ("o_shippriority", N), ("o_orderdateg", F),
    ),
    "lineitem": (
        ("l_orderkey", N), ("l_partkey", N), ("l_suppkey", N), ("l_linenumber", N),
        ("l_quantity", MONEY), ("l_extendedprice", MONEY), ("l_discount", MONEY), ("l_tax", MONEY),
        ("l_returnflag", T), ("l_linestatus", T), ("l_shipdate", D), ("l_commitdate", D),
        ("l_receiptdate", D), ("l_shipinstruct", T), ("l_shipmode", T), ("l_shipdateg", F),
        ("l_commitdateg", F), ("l_receiptdateg", F),
    ),
}  # fmt: skip
WORDS: dict[str, tuple[Any, ...]] = {
    "r_name": ("ASIA", "ASIA", "EUROPE"),
    "n_name": ("JAPAN", "INDONESIA", "CANADA", "UNITED KINGDOM"),
    "p_name": ("pale violet lace", "dim green"),
    "p_brand": ("Brand#34", "Brand#22", "Brand#14"),
    "p_type": ("SMALL BRUSHED STEEL", "LARGE COPPER"),
    "p_container": ("JUMBO PKG", "SM CASE", "MED BAG", "LG BOX"),
    "s_comment": ("quick", "Customer x Complaints"),
    "c_mktsegment": ("BUILDING", "BUILDING", "MACHINERY"),
    "o_orderpriority": ("1-URGENT", "2-HIGH", "5-LOW"),
    "o_shippriority": (0, 0, 1),
    "l_returnflag": ("R", "R", "N"),
    "l_linestatus": ("F", "F", "O"),
    "l_shipinstruct": ("DELIVER IN PERSON",),
    "l_shipmode": ("TRUCK", "SHIP", "AIR", "AIR REG"),
    "o_orderkey": (162, 1), "l_orderkey": (162, 162, 1), "c_custkey": (64, 1), "o_custkey": (64, 64, 1),
}  # fmt: skip
KEYS = {
    "region": ("r_regionkey",), "nation": ("n_nationkey",), "part": ("p_partkey",),
    "supplier": ("s_suppkey",), "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",), "orders": ("o_orderkey",), "lineitem": ("l_orderkey", "l_linenumber"),
}  # fmt: skip
MOST = {"region": 1, "nation": 2, "lineitem": 3}


def laud_world(profile: str, query: str) -> tuple[World, str]:
    """Give the world of a profile and the text of a query in it."""
    chosen = profile_of(profile)
    known = catalog(*(Table(name, columns) for name, columns in COLUMNS.items()))
    return World(known, fit_policy(policy_of(chosen, query), known)), text_of(chosen, query)


def tax_ends(table: str, column: str) -> tuple[Fraction, Fraction] | None:
    """Give the smallest and the largest value of the one public column that is summed."""
    return (Fraction(0), Fraction(8, 100)) if column == "l_tax" else None


def laud_database(text: str) -> Callable[[random.Random], Database]:
    """Give a drawer of databases that keep the declared keys and mostly meet the public filters of a query."""
    asked = {
        column: tuple(w for w in words if re.search(rf"\b{re.escape(str(w).split()[-1])}\b", text))
        for column, words in WORDS.items()
    }

    if "COPPER" in text:  # b16 asks for what is not so
        asked |= {"p_brand": ("Brand#22",), "p_type": WORDS["p_type"][:1], "s_comment": ("quick",)}
    two = "n2.n_name" in text  # b7 trades between two nations

    def databases(draw: random.Random) -> Database:
        found: dict[str, list[dict[str, Any]]] = {}
        for table, columns in COLUMNS.items():
            seen: set[tuple[Any, ...]] = set()
            rows = []
            for number in range(draw.randint(1, MOST.get(table, 2))):
                row = {
                    name: _value(draw, name, kind, asked.get(name, ()), plain=number == 0)
                    for name, kind in columns
                }
                key = tuple(row[c] for c in KEYS[table])
                if key not in seen:
                    seen.add(key)
                    rows.append(row)
            found[table] = rows
        if two and draw.random() < 0.9:
            pairs = ((1, "JAPAN"), (2, "INDONESIA"))
            found["nation"] = [{"n_nationkey": k, "n_name": w, "n_regionkey": 1} for k, w in pairs]
            found["supplier"][0]["s_nationkey"], found["customer"][0]["c_nationkey"] = 1, 2
        return found

    return databases


def _value(
    draw: random.Random, name: str, kind: t.Type, asked: tuple[Any, ...], *, plain: bool
) -> Any:
    likely = draw.random() < (0.97 if plain else 0.7)
    if asked and likely:
        return draw.choice(asked)
    if name in WORDS:
        return WORDS[name][0] if likely else draw.choice(WORDS[name])
    if kind.kind == "DATE":
        return datetime.date(1995, 1, 1)
    if kind.kind == "INTEGER":
        return 1 if likely else draw.choice((1, 2))
    return 0.05 if kind.kind == "DOUBLE" else Decimal(draw.choice(("0.00", "0.05")))
