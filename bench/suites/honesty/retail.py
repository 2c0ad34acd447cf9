"""Shops, customers and what they bought: the store channel of TPC-DS, at about its scale 0.01.

In: a directory. Out: a DuckDB file. Tables, columns, their sizes and what is missing follow the specification; the
numbers come from a seeded generator of our own, since the original generator cannot be shipped. Sales of a year peak in
November and December, a ticket has several items, and some sales have no customer.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb

CUSTOMERS, ITEMS, STORES, PROMOTIONS, HOUSEHOLDS, KINDS = 1000, 180, 4, 3, 720, 1920
TICKETS = 2400
FIRST, LAST = datetime.date(1998, 1, 1), datetime.date(2002, 12, 31)
NO_CUSTOMER = 0.02
CATEGORIES = (
    "Books", "Children", "Electronics", "Home", "Jewelry", "Men", "Music", "Shoes", "Sports", "Women",
)  # fmt: skip
STATES = ("GA", "OH", "TN", "TX", "WA")
EDUCATION = (
    "2 yr Degree", "4 yr Degree", "Advanced Degree", "College", "Primary", "Secondary", "Unknown",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

POLICY = """\
# One customer is protected. Shops, items, days and promotions are everybody's.
[database]
source = "duckdb:retail.duckdb"
public = ["date_dim", "household_demographics", "customer_demographics", "item", "promotion", "store", "time_dim"]

[tables.customer]
key = ["c_customer_sk"]
[tables.date_dim]
key = ["d_date_sk"]
[tables.time_dim]
key = ["t_time_sk"]
[tables.item]
key = ["i_item_sk"]
[tables.store]
key = ["s_store_sk"]
[tables.promotion]
key = ["p_promo_sk"]
[tables.household_demographics]
key = ["hd_demo_sk"]
[tables.customer_demographics]
key = ["cd_demo_sk"]
[tables.store_sales]
key = ["ss_item_sk", "ss_ticket_number"]
[tables.store_sales.references]
ss_customer_sk = "customer.c_customer_sk"
ss_sold_date_sk = "date_dim.d_date_sk"
ss_sold_time_sk = "time_dim.t_time_sk"
ss_item_sk = "item.i_item_sk"
ss_store_sk = "store.s_store_sk"
ss_promo_sk = "promotion.p_promo_sk"
ss_hdemo_sk = "household_demographics.hd_demo_sk"
ss_cdemo_sk = "customer_demographics.cd_demo_sk"
[tables.store_sales.columns]
ss_quantity = { range = [1, 100], step = 1 }
ss_list_price = { range = [0, 200] }
ss_sales_price = { range = [0, 200] }
ss_coupon_amt = { range = [0, 20000] }
ss_ext_sales_price = { range = [0, 20000] }
ss_net_profit = { range = [-10000, 10000] }
[tables.customer.columns]
c_birth_year = { range = [1920, 1995], step = 1 }
c_preferred_cust_flag = { values = ["N", "Y"] }

[protections.customers]
kind = "unit"
unit = "customer.c_customer_sk"
epsilon = 10.0
delta = 1e-6
[protections.customers.limits]
store_sales = 300
"""
SALES = "FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk JOIN item ON ss_item_sk = i_item_sk"
QUESTIONS = {
    "sales": "SELECT count(*), sum(ss_quantity) FROM store_sales",
    "d03": f"SELECT d_year, i_brand_id, sum(ss_ext_sales_price) AS sold {SALES} "
    "WHERE i_manufact_id = 2 AND d_moy = 11 GROUP BY d_year, i_brand_id",
    "d07": "SELECT i_category, avg(ss_quantity), avg(ss_list_price), avg(ss_coupon_amt), avg(ss_sales_price) "
    f"{SALES} JOIN customer_demographics ON ss_cdemo_sk = cd_demo_sk JOIN promotion ON ss_promo_sk = p_promo_sk "
    "WHERE cd_gender = 'M' AND cd_marital_status = 'S' AND (p_channel_email = 'N' OR p_channel_event = 'N') "
    "AND d_year = 2000 GROUP BY i_category",
    "d09": "SELECT count(*), avg(ss_ext_sales_price), avg(ss_net_profit) FROM store_sales "
    "WHERE ss_quantity BETWEEN 21 AND 40",
    "d13": "SELECT avg(ss_quantity), avg(ss_ext_sales_price), sum(ss_coupon_amt) FROM store_sales, store, "
    "customer_demographics, date_dim WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk "
    "AND cd_demo_sk = ss_cdemo_sk AND d_year = 2001 AND (cd_education_status = 'College' AND ss_sales_price "
    "BETWEEN 50 AND 150 OR cd_marital_status = 'M' AND ss_sales_price < 100)",
    "d19": f"SELECT i_category, sum(ss_ext_sales_price) AS sold {SALES} JOIN customer ON ss_customer_sk = "
    "c_customer_sk JOIN store ON ss_store_sk = s_store_sk WHERE d_moy = 12 AND d_year = 1999 "
    "AND c_birth_year >= 1960 GROUP BY i_category ORDER BY sold DESC LIMIT 5",
    "d28": "SELECT avg(ss_list_price), count(ss_list_price) FROM store_sales "
    "WHERE ss_quantity BETWEEN 0 AND 5 AND ss_list_price BETWEEN 8 AND 90",
    "d34": "SELECT count(*) FROM (SELECT ss_ticket_number, ss_customer_sk, count(*) AS n FROM store_sales "
    "GROUP BY ss_ticket_number, ss_customer_sk) WHERE n BETWEEN 13 AND 16",
    "d42": f"SELECT d_year, i_category, sum(ss_ext_sales_price) AS sold {SALES} "
    "WHERE d_moy = 11 AND d_year = 2000 GROUP BY d_year, i_category ORDER BY sold DESC",
    "d43": "SELECT s_store_name, sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price ELSE 0 END) AS sunday, "
    "sum(CASE WHEN d_day_name = 'Friday' THEN ss_sales_price ELSE 0 END) AS friday FROM store_sales "
    "JOIN date_dim ON ss_sold_date_sk = d_date_sk JOIN store ON ss_store_sk = s_store_sk "
    "WHERE d_year = 2000 GROUP BY s_store_name",
    "d48": "SELECT sum(ss_quantity) FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk "
    "WHERE d_year = 2000 AND ss_sales_price BETWEEN 100 AND 150",
    "d52": f"SELECT d_year, i_brand_id, sum(ss_ext_sales_price) AS sold {SALES} "
    "WHERE i_manager_id = 1 AND d_moy = 11 AND d_year = 2000 GROUP BY d_year, i_brand_id ORDER BY sold DESC LIMIT 10",
    "d61": "SELECT sum(CASE WHEN p_channel_email = 'Y' THEN ss_ext_sales_price ELSE 0 END) / "
    "sum(ss_ext_sales_price) * 100 AS promoted FROM store_sales JOIN promotion ON ss_promo_sk = p_promo_sk "
    "JOIN date_dim ON ss_sold_date_sk = d_date_sk WHERE d_year = 1998",
    "d79": "SELECT s_state, sum(ss_net_profit) AS profit FROM store_sales JOIN store ON ss_store_sk = s_store_sk "
    "GROUP BY s_state",
    "d88": "SELECT count(*) FROM store_sales, household_demographics, time_dim WHERE ss_sold_time_sk = t_time_sk "
    "AND ss_hdemo_sk = hd_demo_sk AND t_hour BETWEEN 9 AND 11 AND hd_dep_count = 4",
    "d96": "SELECT count(*) FROM store_sales, household_demographics, time_dim, store WHERE ss_sold_time_sk = "
    "t_time_sk AND ss_hdemo_sk = hd_demo_sk AND ss_store_sk = s_store_sk AND t_hour >= 20 AND hd_dep_count = 7",
    "d98": f"SELECT i_category, sum(ss_ext_sales_price) AS sold, sum(ss_ext_sales_price) * 100 / "
    f"sum(sum(ss_ext_sales_price)) OVER () AS share {SALES} WHERE d_year = 1999 GROUP BY i_category",
}
"""After the queries of these numbers: their joins, conditions and aggregates, with parameters that fit these data."""


def make_retail(directory: Path) -> Path:
    """Write the database, and give its file."""
    place = directory / "retail.duckdb"
    draw = random.Random("shops that never existed")  # sample data, not noise
    with duckdb.connect(str(place)) as db:
        for table, columns, rows in (*_public_tables(draw), *_people(draw), _sales(draw)):
            db.execute(f"CREATE TABLE {table} ({columns})")
            made = [list(column) for column in zip(*rows, strict=True)]
            unnested = ", ".join("unnest(?)" for _ in made)
            db.execute(f"INSERT INTO {table} SELECT {unnested}", made)
    return place


Table = tuple[str, str, Iterable[Sequence[object]]]


def _public_tables(draw: random.Random) -> list[Table]:
    days = [FIRST + datetime.timedelta(i) for i in range((LAST - FIRST).days + 1)]
    return [
        (
            "date_dim",
            "d_date_sk INTEGER PRIMARY KEY, d_date DATE, d_year INTEGER, d_moy INTEGER, d_day_name VARCHAR",
            [(i + 1, d, d.year, d.month, WEEKDAYS[d.weekday()]) for i, d in enumerate(days)],
        ),
        (
            "time_dim",
            "t_time_sk INTEGER PRIMARY KEY, t_hour INTEGER, t_minute INTEGER",
            [(i, i // 60, i % 60) for i in range(24 * 60)],
        ),
        (
            "item",
            "i_item_sk INT PRIMARY KEY, i_category VARCHAR, i_brand_id INT, i_manufact_id INT, i_manager_id INT",
            [(i + 1, CATEGORIES[i % 10], 1 + i % 30, 1 + i % 12, 1 + i % 8) for i in range(ITEMS)],
        ),
        (
            "store",
            "s_store_sk INTEGER PRIMARY KEY, s_store_name VARCHAR, s_state VARCHAR",
            [(i + 1, ("ought", "able", "ese", "anti")[i], STATES[i]) for i in range(STORES)],
        ),
        (
            "promotion",
            "p_promo_sk INTEGER PRIMARY KEY, p_channel_email VARCHAR, p_channel_event VARCHAR",
            [(1, "N", "N"), (2, "Y", "N"), (3, "N", "Y")],
        ),
        (
            "household_demographics",
            "hd_demo_sk INTEGER PRIMARY KEY, hd_dep_count INTEGER, hd_vehicle_count INTEGER",
            [(i + 1, i % 10, i // 10 % 6 - 1) for i in range(HOUSEHOLDS)],
        ),
        (
            "customer_demographics",
            "cd_demo_sk INTEGER PRIMARY KEY, cd_gender VARCHAR, cd_marital_status VARCHAR, cd_education_status VARCHAR",
            [
                (i + 1, "MF"[i % 2], "MSDWU"[i // 2 % 5], EDUCATION[i // 10 % 7])
                for i in range(KINDS)
            ],
        ),
    ]


def _people(draw: random.Random) -> list[Table]:
    return [
        (
            "customer",
            "c_customer_sk INTEGER PRIMARY KEY, c_birth_year INTEGER, c_preferred_cust_flag VARCHAR",
            [(i + 1, draw.randint(1924, 1992), draw.choice("NY")) for i in range(CUSTOMERS)],
        ),
    ]


def _sales(draw: random.Random) -> Table:
    days = range((LAST - FIRST).days + 1)
    busy = [3 if (FIRST + datetime.timedelta(i)).month >= 11 else 1 for i in days]
    # A few customers come often: about one in forty has ten times as many tickets as others.
    often = [10 if i % 40 == 0 else 1 for i in range(CUSTOMERS)]
    rows: list[tuple[object, ...]] = []
    for ticket in range(1, TICKETS + 1):
        day = draw.choices(days, busy)[0] + 1
        who: int | None = draw.choices(range(1, CUSTOMERS + 1), often)[0]
        kind, home, store = (
            draw.randint(1, KINDS),
            draw.randint(1, HOUSEHOLDS),
            draw.randint(1, STORES),
        )
        minute = draw.randint(8 * 60, 22 * 60 - 1)
        if draw.random() < NO_CUSTOMER:
            who = None
        for item in draw.sample(range(1, ITEMS + 1), draw.randint(8, 16)):
            quantity, listed = draw.randint(1, 100), _money(draw, 1, 200)
            paid = round(listed * draw.random(), 2)
            sold = round(quantity * paid, 2)
            coupon = round(sold * draw.random(), 2) if draw.random() < 0.2 else 0.0
            profit = round(max(-10000.0, sold - coupon - quantity * listed * 0.5), 2)
            promotion = draw.choices((1, 2, 3), (8, 1, 1))[0]
            rows.append(
                (
                    item, ticket, day, minute, who, kind, home, store, promotion, quantity, listed, paid, coupon,
                    sold, profit,
                )
            )  # fmt: skip
    keys = (
        "item",
        "ticket_number",
        "sold_date",
        "sold_time",
        "customer",
        "cdemo",
        "hdemo",
        "store",
        "promo",
    )
    names = [f"ss_{k}" if k == "ticket_number" else f"ss_{k}_sk" for k in keys]
    columns = ", ".join(f"{name} INTEGER" for name in (*names, "ss_quantity"))
    money = (
        "ss_list_price",
        "ss_sales_price",
        "ss_coupon_amt",
        "ss_ext_sales_price",
        "ss_net_profit",
    )
    return "store_sales", columns + "".join(f", {c} DECIMAL(7,2)" for c in money), rows


def _money(draw: random.Random, least: int, most: int) -> float:
    return round(draw.uniform(least, most), 2)
