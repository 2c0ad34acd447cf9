"""A bank: 6,000 clients with accounts, 150,000 transactions and some loans, in four tables.

In: nothing; a seeded generator makes the same bank for everybody. Out: tables, what an owner would declare, questions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

CLIENTS = 6_000
DISTRICTS = ("Bay", "Cross", "Dale", "East", "Ford", "Green", "Hill", "Isle", "Old Town", "West")
KINDS = ("current", "savings", "youth")
CHANNELS = ("card", "cash", "online", "standing order", "transfer")
STATUSES = ("defaulted", "late", "paid", "running")
FIRST, DAYS = np.datetime64("2024-01-01", "D"), 366

TABLES = {
    "clients": "client INTEGER PRIMARY KEY, birth_year INTEGER NOT NULL, gender VARCHAR NOT NULL, "
    "district VARCHAR NOT NULL, income INTEGER",
    "accounts": "account INTEGER PRIMARY KEY, client INTEGER NOT NULL REFERENCES clients (client), "
    "kind VARCHAR NOT NULL, opened DATE NOT NULL",
    "transactions": "transaction INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES accounts (account), "
    "day DATE NOT NULL, direction VARCHAR NOT NULL, channel VARCHAR NOT NULL, amount DECIMAL(11, 2) NOT NULL, "
    "balance DECIMAL(11, 2) NOT NULL",
    "loans": "loan INTEGER PRIMARY KEY, account INTEGER NOT NULL REFERENCES accounts (account), granted DATE NOT NULL, "
    "amount INTEGER NOT NULL, months INTEGER NOT NULL, status VARCHAR NOT NULL",
}
UNIT = "clients.client"
FRAME = None
REFERENCES = {
    "accounts": {"client": "clients.client"},
    "transactions": {"account": "accounts.account"},
    "loans": {"account": "accounts.account"},
}
LIMITS = {"accounts": 6, "transactions": 300, "loans": 6}
COLUMNS: dict[str, dict[str, Any]] = {
    "clients": {
        "birth_year": {"range": [1925, 2010], "step": 1},
        "gender": {"values": ["F", "M"]},
        "district": {"values": list(DISTRICTS)},
        "income": {"range": [0, 200_000], "step": 1},
    },
    "accounts": {
        "kind": {"values": list(KINDS)},
        "opened": {"range": ["2000-01-01", "2024-12-31"], "step": "1 day"},
    },
    "transactions": {
        "day": {"range": ["2024-01-01", "2024-12-31"], "step": "1 day"},
        "direction": {"values": ["in", "out"]},
        "channel": {"values": list(CHANNELS)},
        "amount": {"range": [0, 20_000]},
        "balance": {"range": [-10_000, 200_000]},
    },
    "loans": {
        "granted": {"range": ["2015-01-01", "2024-12-31"], "step": "1 day"},
        "amount": {"range": [0, 200_000], "step": 1},
        "months": {"values": [12, 24, 36, 48, 60]},
        "status": {"values": list(STATUSES)},
    },
}

QUESTIONS = {
    "clients": "SELECT count(*) FROM clients",
    "accounts": "SELECT count(*) FROM accounts",
    "transactions": "SELECT count(*) FROM transactions",
    "loans": "SELECT count(*) FROM loans",
    "mean income": "SELECT avg(income) FROM clients",
    "middle income": "SELECT median(income) FROM clients",
    "income by gender": "SELECT gender, avg(income), median(income) FROM clients GROUP BY gender",
    "income by district": "SELECT district, avg(income) FROM clients GROUP BY district",
    "birth years": "SELECT min(birth_year), max(birth_year) FROM clients",
    "decades": "SELECT floor(birth_year / 10) * 10 AS decade, count(*) FROM clients GROUP BY decade ORDER BY decade",
    "turnover": "SELECT sum(amount) FROM transactions",
    "mean amount": "SELECT avg(amount) FROM transactions",
    "middle amount": "SELECT median(amount) FROM transactions",
    "in and out": "SELECT direction, count(*), sum(amount) FROM transactions GROUP BY direction",
    "channels": "SELECT channel, count(*), avg(amount) FROM transactions GROUP BY channel",
    "months": "SELECT date_trunc('month', day) AS month, sum(amount) FROM transactions GROUP BY month ORDER BY month",
    "balance": "SELECT avg(balance) FROM transactions",
    "overdrawn": "SELECT count(*) FROM transactions WHERE balance < 0",
    "large transfers": "SELECT count(*) FROM transactions WHERE channel = 'transfer' AND amount > 1000",
    "share of cards": "SELECT 100.0 * sum(CASE WHEN channel = 'card' THEN 1 ELSE 0 END) / count(*) FROM transactions",
    "spread of amounts": "SELECT stddev(amount) FROM transactions WHERE channel = 'card'",
    "active accounts": "SELECT count(DISTINCT account) FROM transactions",
    "transactions per account": "SELECT avg(n) FROM (SELECT account, count(*) AS n FROM transactions GROUP BY account)",
    "turnover by district": "SELECT district, sum(amount) FROM transactions JOIN accounts USING (account) "
    "JOIN clients USING (client) GROUP BY district",
    "turnover by gender": "SELECT c.gender, avg(t.amount) FROM transactions t JOIN accounts a ON t.account = a.account "
    "JOIN clients c ON a.client = c.client GROUP BY c.gender",
    "kinds": "SELECT kind, count(*) FROM accounts GROUP BY kind",
    "loan volume": "SELECT sum(amount), avg(amount) FROM loans",
    "loans by status": "SELECT status, count(*) AS n, avg(amount) FROM loans GROUP BY status ORDER BY n DESC",
    "bad loans": "SELECT 100.0 * sum(CASE WHEN status = 'defaulted' THEN 1 ELSE 0 END) / count(*) FROM loans",
    "borrowers by district": "SELECT district, count(DISTINCT client) FROM clients JOIN accounts USING (client) "
    "JOIN loans USING (account) GROUP BY district",
}


def make() -> dict[str, Any]:
    """Give the tables as frames."""
    import pyarrow as pa

    draw = np.random.default_rng(1907)  # sample data, not noise
    client = np.arange(1, CLIENTS + 1, dtype=np.int32)
    born = np.clip(draw.normal(1978, 18, CLIENTS), 1926, 2009).astype(np.int32)
    income = np.round(np.clip(draw.lognormal(10.2, 0.55, CLIENTS), 2_000, 400_000), -1)
    unknown = draw.random(CLIENTS) < 0.04
    owner = np.concatenate([client, draw.choice(client, CLIENTS // 4)])
    owner = owner[np.argsort(draw.random(len(owner)))]
    account = np.arange(1, len(owner) + 1, dtype=np.int32)
    kind = draw.choice(3, len(owner), p=[0.7, 0.22, 0.08])
    busy = np.minimum(draw.gamma(1.6, 13, len(owner)).astype(int), 250)
    held = np.repeat(account, busy)
    size = len(held)
    channel = draw.choice(5, size, p=[0.42, 0.12, 0.22, 0.11, 0.13])
    typical = np.array([38, 120, 75, 420, 600])[channel]
    wealth = (income / 30_000)[owner[held - 1] - 1]
    amount = np.clip(typical * wealth * draw.lognormal(0, 0.8, size), 0.5, 60_000)
    balance = 2500 * wealth * draw.lognormal(0, 0.9, size) - 600
    lends = draw.random(len(owner)) < 0.13
    loans = account[lends]
    lent = np.round(np.clip(draw.lognormal(9.4, 0.7, len(loans)), 500, 200_000), -2)
    return {
        "clients": pa.table(
            {
                "client": client,
                "birth_year": born,
                "gender": np.array(["F", "M"])[draw.integers(0, 2, CLIENTS)],
                "district": np.array(DISTRICTS)[
                    draw.choice(10, CLIENTS, p=np.array([14, 8, 9, 12, 6, 11, 13, 4, 8, 15]) / 100)
                ],
                "income": pa.array(income.astype(np.int32), mask=unknown),
            }
        ),
        "accounts": pa.table(
            {
                "account": account,
                "client": owner.astype(np.int32),
                "kind": np.array(KINDS)[kind],
                "opened": FIRST - draw.integers(0, 8000, len(owner)).astype("timedelta64[D]"),
            }
        ),
        "transactions": pa.table(
            {
                "transaction": np.arange(1, size + 1, dtype=np.int32),
                "account": held,
                "day": FIRST + draw.integers(0, DAYS, size).astype("timedelta64[D]"),
                "direction": np.where(draw.random(size) < 0.35, "in", "out"),
                "channel": np.array(CHANNELS)[channel],
                "amount": np.round(amount, 2),
                "balance": np.round(balance, 2),
            }
        ),
        "loans": pa.table(
            {
                "loan": np.arange(1, len(loans) + 1, dtype=np.int32),
                "account": loans,
                "granted": FIRST - draw.integers(0, 3000, len(loans)).astype("timedelta64[D]"),
                "amount": lent.astype(np.int32),
                "months": 12 * draw.integers(1, 6, len(loans)).astype(np.int32),
                "status": np.array(STATUSES)[draw.choice(4, len(loans), p=[0.06, 0.09, 0.4, 0.45])],
            }
        ),
    }
