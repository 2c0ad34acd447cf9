"""The PostgreSQL port over a shop with planted secrets, started once a session for the tests of its clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from private_shop import TABLES, make_shop, shop_policy
from secant.service.postgres.front import PostgresFront
from secant.service.serving import Server
from secant.service.settings import Postgres, Settings, Tls

USER, PASSWORD = "ana", "correct horse battery"
GROUPS = "SELECT status, count(*) AS n FROM orders GROUP BY status ORDER BY status"
STATUSES = ["lost", "open", "paid", "void"]


@dataclass(frozen=True, slots=True)
class RunningPort:
    """A service with a PostgreSQL port."""

    server: Server
    folder: Path
    host: str
    port: int

    @property
    def front(self) -> PostgresFront:
        """Give the port itself."""
        return next(f for f in self.server.fronts if isinstance(f, PostgresFront))

    @property
    def certificate(self) -> Path:
        """Give the self-made certificate."""
        return self.folder / "secant-self-made.pem"

    def address(self, scheme: str = "postgresql", *, epsilon: object = 50, more: str = "") -> str:
        """Give the address with which a client connects; what it may spend is set by an option."""
        secret = PASSWORD.replace(" ", "%20")
        options = f"?options=-csecant.epsilon%3D{epsilon}" if epsilon is not None else "?"
        return f"{scheme}://{USER}:{secret}@{self.host}:{self.port}/shop{options}{more}"

    def shadow(self, user: str = "secant_shadow") -> psycopg.Connection:
        """Connect to the shadow itself, past the port; by default as its superuser."""
        place = self.front.port.shadow_socket
        return psycopg.connect(
            f"host={place.parent} port=5432 user={user} dbname=shop", autocommit=True
        )

    def spent(self) -> float:
        """Give what was spent so far."""
        with self.server.service.opened(self.server.service.users.all()[0]) as connection:
            return float(connection.budget["people"].spent_epsilon)


@pytest.fixture(scope="session")
def secant_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPort]:
    """A service over the shop, with one analyst."""
    with start(tmp_path_factory.mktemp("port")) as server:
        yield running(server)


def start(place: Path, **limits: object) -> Server:
    """Start a service with a PostgreSQL port over a new shop at a place; `limits` are settings of [postgres]."""
    make_shop(place)
    # Clients are shown the four keys that are declared, and no group of NULL beside them.
    tables = TABLES.replace('"void"] }', '"void"], null = false }')
    (place / "policy.toml").write_text(shop_policy(tables=tables), encoding="utf-8")
    settings = Settings(
        policy=place / "policy.toml",
        http={"port": None},
        postgres=Postgres(port=0, **limits),
        tls=Tls(self_made=True),
        drain_seconds=1,
    )
    server = Server(settings)
    server.service.users.add(USER, "analyst", PASSWORD)
    return server


def running(server: Server) -> RunningPort:
    """Give where a service listens."""
    front = next(f for f in server.fronts if isinstance(f, PostgresFront))
    host, _, number = front.address.rpartition("/")[2].rpartition(":")
    return RunningPort(server, server.service.settings.policy.parent, host, int(number))
