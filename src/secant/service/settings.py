"""What the owner settles about the service: a TOML file, then the environment, then the command line.

In: text. Out: frozen records. A name that is not known is an error, wherever it comes from. No secret belongs here.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from secant.errors import UsageError

PREFIX = "SECANT_SERVE_"
"""`SECANT_SERVE_HTTP__PORT=9000` is `port` of `[http]`."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Port(_Section):
    """Where a front listens; `port = 0` lets the system choose, no port leaves the front out."""

    host: str = "127.0.0.1"
    port: int | None = Field(default=None, ge=0, le=65535)


class Http(Port):
    """The HTTP API and the console."""

    port: int | None = Field(default=8443, ge=0, le=65535)
    behind_proxy: bool = False
    """Whether a reverse proxy in front of it ends TLS: only then may it listen beyond loopback without TLS."""
    forwarded_for: bool = False
    """Whether the proxy says in X-Forwarded-For whom it speaks for: the last address there counts as the client's."""
    origin: str = ""
    """How browsers reach the console, such as https://secant.example; by default as the request says."""
    largest_request: int = Field(default=1_000_000, ge=1000, le=100_000_000)
    """Bytes of a request's body."""
    connections: int = Field(default=500, ge=1, le=100_000)
    """Connections at the same time; further ones get a 503, and those that are there stay."""


class Postgres(Port):
    """The PostgreSQL port, and what its schema-only server (the shadow) may take. No client can lift a limit."""

    database: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$")
    """How the database is called to clients; by default as the source is, by its file or database."""
    folder: Path | None = None
    """Where the shadow keeps its files; by default the system's temporary directory."""
    connections: int = Field(default=100, ge=1, le=10_000)
    """Sessions at the same time, and as many connections that have not logged in."""
    connections_of_user: int = Field(default=20, ge=1, le=10_000)
    connections_of_address: int = Field(default=50, ge=1, le=10_000)
    idle_seconds: float = Field(default=3600, gt=0, le=604_800)
    """How long a session may say nothing, in a transaction or not."""
    statement_seconds: float = Field(default=60, gt=0, le=86_400)
    """For a statement that the shadow runs; `[questions] seconds` is for what Secant answers."""
    statements_of_user: int = Field(default=4, ge=1, le=10_000)
    """Statements of one user that the shadow runs at the same time; further ones wait."""
    session_memory: int = Field(default=256_000_000, ge=64_000_000)
    """Bytes that one session may take in the shadow."""
    memory: int = Field(default=2_000_000_000, ge=128_000_000)
    """Bytes of all sessions together: the largest ends first."""
    session_disk: int = Field(default=256_000_000, ge=32_000_000)
    """Bytes of temporary tables and files of one session."""
    disk: int = Field(default=2_000_000_000, ge=128_000_000)
    """Bytes of the whole folder, and never more than half of what is free there at the start."""


class Tls(_Section):
    """TLS from files, or self-made for a first try."""

    certificate: Path | None = None
    key: Path | None = None
    self_made: bool = False


class Questions(_Section):
    """How many questions run, wait, and for how long."""

    workers: int = Field(default=4, ge=1, le=256)
    each_user: int = Field(default=2, ge=1, le=256)
    """Questions of one user that run at the same time."""
    waiting: int = Field(default=256, ge=1, le=100_000)
    waiting_of_user: int = Field(default=32, ge=1, le=100_000)
    seconds: float = Field(default=120, gt=0, le=86_400)
    """For a whole question, waiting excluded; `[limits]` of the policy is for one statement, and for memory."""


class Logins(_Section):
    """How many passwords are checked at once: a check takes a core for some 20 ms."""

    workers: int = Field(default=2, ge=1, le=64)
    """Passwords that are checked at the same time, of one address one: those who have tokens keep the other cores."""
    waiting: int = Field(default=64, ge=1, le=10_000)
    """Logins that wait for their turn; further ones get a 429 at once."""
    waiting_of_address: int = Field(default=8, ge=1, le=10_000)


class History(_Section):
    """What is kept of questions. Those that were charged stay; the rest goes by age and by size."""

    longest_text: int = Field(default=2000, ge=100, le=1_000_000)
    """Characters of the text of a question that was charged nothing; what is cut is named by its SHA-256."""
    longest_charged_text: int = Field(default=100_000, ge=100, le=1_000_000)
    """Characters of one that was charged; the ledger has the whole text."""
    keep_days: float = Field(default=90, gt=0, le=36_600)
    """For questions that were charged nothing."""
    bytes_of_user: int = Field(default=2_000_000, ge=10_000)
    """For one user's questions that were charged nothing: the oldest go."""
    page_bytes: int = Field(default=500_000, ge=10_000, le=10_000_000)
    """For one page of the history; the next page begins where it ends."""


class Reuse(_Section):
    """When the same question gives the stored answer, and costs nothing."""

    version: str = "auto"
    """What tells data from later data: `files` (times and sizes), `every 15 minutes` (the clock), `column TABLE.COLUMN`
    of a public table, `snapshot NAME`, or `none`: nothing is reused. `auto` is `files` where the source has some, else
    `every 15 minutes`."""
    keep_seconds: float = Field(default=86_400, gt=0)
    among: Literal["user", "all"] = "user"
    """Whether a user gets only answers that the same user paid for, or everybody's."""
    most: int = Field(default=10_000, ge=1)
    """Answers that are kept."""
    bytes: int = Field(default=200_000_000, ge=10_000)
    """Bytes of all answers that are kept; those that were free go first."""


class Settings(_Section):
    """The whole configuration."""

    policy: Path = Path("policy.toml")
    source: str | None = None
    anchor: Path | None = None
    """A file on another machine's disk: how far the ledger had come, to notice that an old copy was put back."""
    drain_seconds: float = Field(default=30, ge=0, le=3600)
    """How long running questions have to end when the service stops."""
    http: Http = Http()
    postgres: Postgres = Postgres()
    tls: Tls = Tls()
    questions: Questions = Questions()
    logins: Logins = Logins()
    history: History = History()
    reuse: Reuse = Reuse()

    @property
    def speaks_tls(self) -> bool:
        """Whether the service itself speaks TLS."""
        return self.tls.self_made or self.tls.certificate is not None

    @property
    def secure(self) -> bool:
        """Whether browsers reach the service by TLS, its own or a proxy's."""
        return self.speaks_tls or self.http.origin.startswith("https://")


def load_settings(
    path: Path | None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Read the file, then what the environment and the command line say instead of it."""
    settings: dict[str, Any] = {}
    if path is not None:
        try:
            settings = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            raise UsageError(
                "USE-001", f"the configuration {path} cannot be read as TOML"
            ) from None
        for key in ("policy", "anchor"):
            _beside(settings, key, path)
        for name, keys in (("tls", ("certificate", "key")), ("postgres", ("folder",))):
            if isinstance(section := settings.get(name), dict):
                for key in keys:
                    _beside(section, key, path)
    variables = os.environ if environment is None else environment
    if usual := variables.get("SECANT_POLICY"):
        settings.setdefault("policy", usual)  # a file that names another was itself named
    for name, value in sorted(variables.items()):
        if name.startswith(PREFIX):
            _put(settings, name.removeprefix(PREFIX).lower().split("__"), value)
    for name, value in (overrides or {}).items():
        if value is not None:
            _put(settings, name.split("."), value)
    try:
        return Settings.model_validate(settings)
    except ValidationError as error:
        wrong = tuple(
            f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}"
            for each in error.errors()
        )
        raise UsageError(
            "USE-001",
            "the configuration of the service has mistakes",
            details=wrong,
            hint="see docs/reference/service-configuration.md",
        ) from None


def _beside(section: dict[str, Any], key: str, path: Path) -> None:
    """Let a relative path start at the folder of the configuration."""
    if isinstance(section.get(key), str):
        section[key] = path.parent / section[key]


def _put(settings: dict[str, Any], names: list[str], value: object) -> None:
    for name in names[:-1]:
        below = settings.setdefault(name, {})
        if not isinstance(below, dict):
            raise UsageError("USE-001", f"{name} is no section of the configuration")
        settings = below
    settings[names[-1]] = value
