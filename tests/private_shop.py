"""A small shop with planted secrets, its policies, and ways to watch a release: shared by the tests of the engine.

No test may ever see a secret outside the data: `no_secret_in` is the check.
"""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import secant
from apart import apart
from naming_public import naming_public
from secant.accuracy.consistency import agree
from secant.accuracy.noise_lineage import noise_lineage
from secant.engine import Connection
from secant.engines.backend import Session
from secant.noise.calibrate import calibrate
from secant.noise.limited import LimitToChoose
from secant.noise.measure_noise import LaplaceShare, LawfulNoise, Noise, NormalShare
from secant.noise.mechanisms.whole import WholeLaplace, WholeLaw
from secant.noise.query_plan import reading_of
from secant.plan.evaluate.evaluate import evaluate
from secant.policy.policy import USUAL
from secant.release.answer import Answer
from secant.release.draw import NoisyTables, draw
from secant.release.finish import Result, closing_plan, finish, from_engine
from secant.release.print import look_up_keys, plan_release
from secant.release.release_plan import Keys, ReleasePlan
from secant.release.report import answer_of
from secant.sensitivity.certificate import ClippedContribution
from secant.sensitivity.split import split
from secant.sql.bind import bind
from secant.stages.ask import deltas_of
from secant.stages.open import open_snapshot

SECRETS = ("SECRET_SMITH", "SECRET_TOWN", "987654321", "9876543.21", "87654321")

SHOP = ("customers", "orders", "towns", "nothing", "holes")
SCHEMA = """
CREATE TABLE customers (
    id BIGINT, name VARCHAR, town VARCHAR, age INTEGER, income DOUBLE, score DECIMAL(8, 2)
);
CREATE TABLE orders (
    id BIGINT, customer BIGINT, status VARCHAR, day DATE, total DECIMAL(12, 2), quantity INTEGER,
    rate DOUBLE, note VARCHAR, big BIGINT
);
CREATE TABLE towns (town VARCHAR, country VARCHAR, people BIGINT);
CREATE TABLE nothing (id BIGINT, label VARCHAR, amount DOUBLE);
CREATE TABLE holes (id BIGINT, label VARCHAR, amount DOUBLE, whole INTEGER);
"""

ROWS = """
INSERT INTO towns VALUES ('Riga', 'LV', 600000), ('Tartu', 'EE', 95000), ('Oslo', 'NO', 700000);
INSERT INTO customers
    SELECT i, 'name' || i, ['Riga', 'Tartu', 'Oslo'][1 + i % 3], 20 + i % 50, 1000.5 * i, i
    FROM range(1, 61) AS r(i);
INSERT INTO customers VALUES
    (900, 'SECRET_SMITH', 'SECRET_TOWN', 987654321, 987654321, 87654.32),
    (901, NULL, NULL, NULL, 'NaN', NULL), (902, '', 'Riga', -5, '-Infinity', -1);
INSERT INTO orders
    SELECT i, 1 + i % 60, ['open', 'paid', 'lost'][1 + i % 3], DATE '2024-01-01' + CAST(i % 300 AS INTEGER),
           10 + i % 90, 1 + i % 9, (i % 10) / 10.0, 'note' || i, i
    FROM range(1, 201) AS r(i);
INSERT INTO orders VALUES
    (9001, 900, 'SECRET_SMITH', DATE '9999-12-31', 9876543.21, 987654321, 'NaN', 'SECRET_SMITH', 9223372036854775807),
    (9002, 900, 'open', NULL, NULL, NULL, 'Infinity', '12x', -9223372036854775808),
    (9003, 901, NULL, DATE '0001-01-01', -9876543.21, -987654321, '-Infinity', NULL, 0);
INSERT INTO holes SELECT i, NULL, NULL, NULL FROM range(1, 21) AS r(i);
"""

TABLES = """
[database]
source = "duckdb:shop.duckdb"

[tables.customers]
key = "id"
[tables.customers.columns]
age = { range = [0, 120] }
income = { range = [0, 100000] }
score = { range = [-10, 100] }
town = { values = ["Riga", "Tartu", "Oslo", "Nowhere"] }

[tables.orders]
key = "id"
references = { customer = "customers.id" }
[tables.orders.columns]
status = { values = ["open", "paid", "lost", "void"] }
total = { range = [0, 100] }
quantity = { range = [0, 10], step = 1 }
rate = { range = [0, 1] }
big = { range = [-1000, 1000] }

[tables.towns]
key = "town"

[tables.nothing.columns]
amount = { range = [0, 10] }
[tables.holes.columns]
amount = { range = [0, 10] }
whole = { range = [0, 10] }
"""

UNIT = """
[protections.people]
kind = "unit"
unit = "customers.id"
epsilon = 100000
delta = 0.001
composition = "basic"
[protections.people.limits]
orders = 5
"""

ROWWISE = """
[protections.single]
kind = "rows"
tables = ["customers", "orders", "nothing", "holes"]
epsilon = 100000
delta = 0.001
composition = "basic"
"""


def make_shop(directory: Path, *, rows: str = ROWS) -> Path:
    """Write `shop.duckdb` into the directory and give its path."""
    path = directory / "shop.duckdb"
    path.write_bytes(_shop_file(rows))
    return path


@functools.cache
def _shop_file(rows: str) -> bytes:
    """Give the bytes of a shop: hundreds of tests want one, and making it takes longer than writing it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(SCHEMA + rows)
        return path.read_bytes()


def shop_policy(
    protections: str = UNIT,
    *,
    tables: str = TABLES,
    head: str = "",
    copies: tuple[str, ...] = (),
) -> str:
    """Write a policy for the shop; what the protections leave out is named public."""
    text = head + tables + protections
    return naming_public(text, (*SHOP, *copies))


def open_shop(
    directory: Path,
    protections: str = UNIT,
    *,
    tables: str = TABLES,
    head: str = "",
    copies: tuple[str, ...] = (),
) -> Connection:
    """Open the shop of the directory under a policy with a fresh ledger beside it; `copies` are further tables."""
    if not (directory / "shop.duckdb").exists():
        make_shop(directory)
    number = len(list(directory.glob("policy*.toml")))
    policy = directory / f"policy{number}.toml"
    text = shop_policy(protections, tables=tables, head=head, copies=copies)
    policy.write_text(text, encoding="utf-8")
    return secant.connect(policy=policy)


def no_secret_in(text: str) -> bool:
    """Whether none of the planted secrets stands in the text."""
    return not any(secret in text for secret in SECRETS)


def released(job: ReleasePlan, keys: Any, session: Any, permit: Any) -> Result:
    """Draw a release and finish it, as `Connection.sql` does once budget is reserved."""
    tables = draw(job, keys, session, permit) if job.prepared.bounded else NoisyTables({}, {})
    return finish(job, tables, from_engine(session), noise_lineage(job))


@dataclass
class FreePermit:
    """A permit that nobody pays: for draws of one compiled job."""

    sent: int = 0

    def mark_sent(self) -> None:
        """Count the calls."""
        self.sent += 1


class Remembering:
    """A backend that runs the statements of a job once: the data do not change between draws.

    A statement that reads an earlier release is another one in each draw, and is run each time.
    """

    def __init__(self, inner: Session, statements: tuple[str, ...]) -> None:
        self._inner, self.dialect, self.known = inner, inner.dialect, inner.known
        self._wanted = frozenset(statements)
        self._known: dict[str, list[tuple[object, ...]]] = {}

    def catalog(self) -> Any:
        """Give the catalog of the engine."""
        return self._inner.catalog()

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Give the rows, from memory where the statement reads protected rows."""
        if statement not in self._wanted:
            return self._inner.rows(statement)
        if statement not in self._known:
            self._known[statement] = self._inner.rows(statement)
        return self._known[statement]

    def keep(self, statement: str) -> str | None:
        """Keep nothing: what is kept would be another table in each draw."""
        return None


@dataclass
class Compiled:
    """A job that can be drawn from many times, without a ledger."""

    job: ReleasePlan
    keys: dict[str, Keys | None]
    backend: Any

    def draw(self) -> Result:
        """Release once more."""
        return released(self.job, self.keys, self.backend, FreePermit())

    def draw_rows(self) -> list[tuple[object, ...]]:
        """Release once more and do the rest of the query in Python, without ends: asking the engine takes longer."""
        noisy = draw(self.job, self.keys, self.backend, FreePermit())
        tables, _ = agree(self.job.prepared.bounded, noisy.tables, noisy.noise)
        first, *_ = self.job.traced.closing()
        rows = evaluate(closing_plan(first, tables), {})
        return [tuple(row[: len(self.job.traced.outputs)]) for row in rows]

    def with_noise_times(self, factor: Fraction) -> Compiled:
        """Give the same job with a fault: all noise is larger or smaller than it should be."""
        noise = {column: louder(n, factor) for column, n in self.job.noise.noise.items()}
        ranks = self.job.noise.ranks
        bounded = self.job.prepared.bounded
        readings = {b.release.name: reading_of(b.release, noise, ranks) for b in bounded}
        changed = replace(self.job.noise, noise=noise)
        job = replace(self.job, noise=changed, readings=readings)
        return Compiled(job, self.keys, self.backend)


def louder(noise: Noise, factor: Fraction) -> Noise:
    """Give noise that is larger by a factor than it should be."""
    if isinstance(noise, LawfulNoise):
        share = noise.share
        share = (
            LaplaceShare(share.epsilon / factor)
            if isinstance(share, LaplaceShare)
            else NormalShare(share.rho / factor**2)
        )
        noise = replace(noise, share=share)
    if isinstance(noise, LimitToChoose):
        noise = replace(noise, choosing=noise.choosing / factor)
    return replace(noise, epsilon=noise.epsilon / factor)


def cost_of(bound: Any, noise: Any) -> Fraction:
    """What the noise of a measure costs, from scratch: the choice of a limit, and the limit over its scale."""
    if not isinstance(bound, ClippedContribution):
        return bound.value / noise.law.scale
    limit = bound.limits[-1]
    if len(bound.limits) == 1:
        return limit / noise.law.scale
    return noise.choosing + limit / noise.at(limit, 1).law.scale


def reaches(law: WholeLaw, k: int) -> float:
    """P(noise ≥ k) for k ≥ 1, from the definition of the law."""
    if isinstance(law, WholeLaplace):
        ratio = math.exp(-1 / float(law.scale))
        return float(ratio**k / (1 + ratio))
    return (
        math.erfc((k - 0.5) / float(law.deviation) / 2**0.5) / 2
    )  # it rounds to k from k - 1/2 on


def compile_release(db: Connection, text: str, *, epsilon: Any = 1, delta: Any = None) -> Compiled:
    """Take a query as far as `Connection.sql` takes it before it reserves budget."""
    protections = db.policy.protections
    plan = bind(text, db.catalog)
    with open_snapshot(plan, db._source) as snapshot:
        session = snapshot.session
        facts = snapshot.facts
        prepared = split(
            text, plan, db.policy, protections, db.catalog, facts.at(Fraction(epsilon))
        )
        noise = calibrate(
            prepared.bounded, protections, Fraction(epsilon), deltas_of(protections, delta)
        )
        job = plan_release(prepared, noise, Fraction(95, 100), session, USUAL)
        keys = look_up_keys(job, session)
    return Compiled(job, keys, Remembering(apart(db), tuple(job.statements.values())))


WHOLE = 20
"""Of many answers to one question, how many are asked for end to end."""


def answers(db: Connection, text: str, count: int, *, epsilon: Any = 1) -> Iterator[Answer]:
    """Give many answers to one question: some end to end, the others drawn from one job, which reads the data once."""
    for _ in range(min(count, WHOLE)):
        yield db.sql(text, epsilon=epsilon)
    if count <= WHOLE:
        return
    compiled = compile_release(db, text, epsilon=epsilon)
    for _ in range(count - WHOLE):
        drawn = compiled.draw()
        yield answer_of(drawn, compiled.job, db.policy, db.policy.protections, (), None, {})


@pytest.fixture(scope="session")
def shop_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory that holds the shop; tests only read it."""
    directory = tmp_path_factory.mktemp("shop")
    make_shop(directory)
    return directory


@pytest.fixture(scope="session")
def people(shop_directory: Path) -> Iterator[Connection]:
    """Give the shop with customers as protected units."""
    with open_shop(shop_directory, UNIT) as db:
        yield db


@pytest.fixture(scope="session")
def single(shop_directory: Path) -> Iterator[Connection]:
    """Give the shop with single rows protected."""
    with open_shop(shop_directory, ROWWISE) as db:
        yield db
