"""An option is obeyed or refused: every option of every command, in every way in which the command is called.

The table has a row for each. A row is words that must change what a command does (what it prints, writes, or asks its
engine), or words that must be refused. An option that is declared and has no row fails, and so does a new command.
"""

from __future__ import annotations

import datetime
import io
import sys
import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import duckdb
import pytest
from fake_engine import ERROR, Answer, Connection

import secant
from secant.cli import main
from secant.cli.program import COMMANDS, program
from secant.errors import UsageError
from secant.release.inferred_facts import Found, Lacking, outcome_text

sys.path.insert(0, str(Path(secant.__file__).resolve().parents[2]))  # where the benchmarks are
BUG = 70
KEPT = SimpleNamespace(
    token_id="t1", holder="ada", kind="token", note="", created=datetime.datetime.now(datetime.UTC),
    expires=datetime.datetime.now(datetime.UTC), parent="",
)  # fmt: skip


class Given(Answer):
    """An answer that remembers what was done to it."""

    def afterwards(self, **options: Any) -> Answer:
        self.told.append(("afterwards", options))
        return self


FOUND = Found(Lacking("people", "age", "people"), Fraction(0), Fraction(90), Fraction(1), 2)
COUNT = "SELECT count(*) AS n FROM people WHERE age < 40"
BY_NAME = "SELECT name, count(*) AS n FROM people GROUP BY name"
POLICY = """
alternatives = ["people", "rows"]
[database]
source = "duckdb:people.duckdb"
[tables.people]
key = "id"
[tables.people.columns]
age = { range = [0, 100], distribution = "uniform" }
day = { range = ["2025-01-01", "2025-12-31"] }
[protections.people]
kind = "unit"
unit = "people.id"
epsilon = 50.0
delta = 1e-3
[protections.rows]
kind = "rows"
tables = ["people"]
epsilon = 20.0
[streams.visits]
query = "SELECT day, sum(age) AS n FROM people GROUP BY day"
step = "1 day"
start = "2025-01-01"
steps = 4
protection = "rows"
epsilon = 1.0
"""


@dataclass(frozen=True)
class Way:
    """One way of calling a command."""

    words: tuple[str, ...]
    """What is typed before an option is added."""
    obeyed: dict[str, tuple[str, ...]]
    """Option -> words that change what happens."""
    refused: tuple[str, ...] = ()
    """Options that say nothing here."""
    instead: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Option -> what is typed before it in place of `words`."""

    @property
    def options(self) -> set[str]:
        return {*self.obeyed, *self.refused, *(w for w in self.words if w.startswith("--"))}


ELSEWHERE = ("--source", "duckdb:missing.duckdb")
OTHER = ("--policy", "other.toml")
SAMPLE = {  # a value for each option, where all that matters is that it is refused
    "--discard": ("people.day",), "--find": ("people.age",),
    "--parameter": ("1",), "--epsilon": ("1",), "--error": ("20",), "--delta": ("1e-6",), "--level": ("0.9",),
    "--protection": ("rows",), "--attacker": ("people.age within 2",), "--plot": ("x.svg",), "--smt": ("x.smt2",),
    "--rule": ("stability.count",), "--stream": ("visits",), "--share": ("0.9",), "--policy": ("policy.toml",),
    "--source": ("duckdb:people.duckdb",), "--http": ("0",), "--role": ("owner",), "--days": ("3",),
    "--note": ("x",), "--scale": ("0.2",), "--repeat": ("2",), "--profile": ("paper",), "--engine": ("duckdb",),
    "--until": ("2025-01-02",), "--analyst": ("ada",),
}  # fmt: skip
QUESTION_ONLY = (
    "--parameter", "--epsilon", "--error", "--delta", "--level", "--protection", "--attacker", "--plot", "--ranges",
    "--components", "--smt", "--certain",
)  # fmt: skip
ATTACKED = ("inspect", "SELECT sum(age) AS n FROM people", "--attacker", "people.age within 2")
BELONG = {
    "laud": ("--profile", "--engine", "--scale", "--repeat"),
    "tpch": ("--policy", "--epsilon", "--delta", "--scale", "--repeat"),
    "joins": ("--epsilon", "--scale", "--repeat"),
    "honesty": ("--scale", "--repeat"),
    "sampler": (),
    "everyday": ("--epsilon", "--repeat"),
    "useful": ("--epsilon", "--repeat"),
}
BENCH_VALUES = {**SAMPLE, "--policy": ("other.toml",), "--epsilon": ("2",), "--delta": ("1e-7",),
                "--engine": ("spark",)}  # fmt: skip


SCRIPT = {
    "--delta": ("--delta", "1e-6"), "--level": ("--level", "0.9"), "--plot": ("--plot", "flow.svg"),
    "--protection": ("--protection", "rows"), "--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",),
}  # fmt: skip


def bench(suite: str) -> Way:
    own = BELONG[suite]
    common = {"--queries": ("b6",), "--data": ("elsewhere",), "--json": ("out.json",)}
    obeyed = {o: (o, *BENCH_VALUES[o]) for o in own} | {o: (o, *v) for o, v in common.items()}
    return Way(
        ("bench", suite), obeyed, tuple(o for o in BELONG["laud"] + BELONG["tpch"] if o not in own)
    )


def user(action: str, *name: str, obeyed: tuple[str, ...] = ()) -> Way:
    rows = {"--role": ("--role", "owner"), "--stdin": ("--stdin",), "--days": ("--days", "3"),
            "--note": ("--note", "for a test")}  # fmt: skip
    return Way(
        ("user", action, *name),
        {o: rows[o] for o in obeyed} | {"--policy": OTHER, "--json": ("--json",)},
        tuple(o for o in rows if o not in (*obeyed, *name)),
    )


WAYS: tuple[Way, ...] = (
    Way(("demo",), {"--keep": ("--keep", "kept"), "--serve": ("--serve",), "--json": ("--json",)}, ("--http",)),
    Way(("demo", "--serve"), {"--keep": ("--keep", "kept"), "--http": ("--http", "0")}, ("--json",)),
    Way(
        ("init", "duckdb:people.duckdb"),
        {
            "--policy": ("--policy", "new.toml"), "--look": ("--look", "--policy", "new.toml"),
            "--force": ("--force",), "--json": ("--json", "--policy", "new.toml"),
        },
        instead={
            "--look": ("init", "duckdb:people.duckdb", "--policy", "new.toml", "--force"),
            "--json": ("init", "duckdb:people.duckdb", "--policy", "new.toml", "--force"),
        },
    ),
    Way(("check",), {"--policy": OTHER, "--source": ELSEWHERE, "--look": ("--look",), "--json": ("--json",)}),
    Way(
        ("check", "policy.toml"),
        {"--source": ELSEWHERE, "--look": ("--look",), "--json": ("--json",)},
        ("--policy",),
    ),
    Way(
        ("query", COUNT, "--epsilon", "1"),
        {
            "--parameter": ("--parameter", "40"), "--error": ("--error", "20"),
            "--max-error": ("--max-error", "5"), "--attacker": ("--attacker", "people.age within 2 at most 90%"),
            "--delta": ("--delta", "1e-6"), "--level": ("--level", "0.9"), "--protection": ("--protection", "rows"),
            "--analyst": ("--analyst", "ada"), "--policy": OTHER, "--source": ELSEWHERE,
            "--no-create": ("--no-create",), "--isotonic": ("--isotonic",), "--json": ("--json",),
            "--certain": ("--certain",),
        },
        instead={
            "--error": ("query", COUNT),
            "--parameter": ("query", COUNT.replace("40", "?"), "--epsilon", "1"),
        },
    ),
    Way(
        ("run", "script.sql", "--epsilon", "1"),
        {**SCRIPT, "--explain": ("--explain",), "--no-create": ("--no-create",), "--analyst": ("--analyst", "ada")},
    ),
    Way(("run", "script.sql", "--epsilon", "1", "--explain"), SCRIPT, ("--analyst", "--no-create")),
    Way(
        ("stream", "visits"),
        {
            "--until": ("--until", "2025-01-02"), "--plot": ("--plot", "x.svg"), "--revised": ("--revised",),
            "--isotonic": ("--isotonic",), "--filter": ("--filter", "3"), "--follow": ("--follow",),
            "--analyst": ("--analyst", "ada"), "--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",),
        },
    ),
    Way(
        ("stream", "visits", "--follow"),
        {
            "--plot": ("--plot", "x.svg"), "--revised": ("--revised",), "--isotonic": ("--isotonic",),
            "--filter": ("--filter", "3"), "--analyst": ("--analyst", "ada"), "--policy": OTHER,
            "--source": ELSEWHERE, "--json": ("--json",),
        },
        ("--until",),
    ),
    Way(
        ("explain", COUNT, "--epsilon", "1"),
        {
            "--parameter": ("--parameter", "40"), "--error": ("--error", "20"), "--delta": ("--delta", "1e-6"),
            "--level": ("--level", "0.9"), "--protection": ("--protection", "rows"), "--sql": ("--sql",),
            "--attacker": ("--attacker", "people.age within 2"), "--plot": ("--plot", "x.svg"),
            "--ranges": ("--ranges",), "--components": ("--components",), "--smt": ("--smt", "x.smt2"),
            "--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",), "--certain": ("--certain",),
        },
        ("--rule", "--stream"),
        instead={
            "--parameter": ("explain", COUNT.replace("40", "?"), "--epsilon", "1"),
            "--error": ("explain", COUNT),
            "--delta": ("explain", BY_NAME, "--epsilon", "1", "--protection", "people"),
            "--plot": ("explain", COUNT, "--epsilon", "1", "--attacker", "people.age within 2"),
            "--smt": ("explain", COUNT, "--epsilon", "1", "--protection", "rows"),
            "--certain": ("explain", "SELECT sum(id) AS n FROM people", "--epsilon", "1", "--protection", "people"),
        },
    ),
    Way(
        ("explain", "--rule", "stability.count"),
        {"--json": ("--json",)},
        ("--stream", "--sql", "--policy", "--source", *QUESTION_ONLY),
    ),
    Way(
        ("explain", "--stream", "visits"),
        {"--json": ("--json",), "--sql": ("--sql",), "--policy": OTHER, "--source": ELSEWHERE},
        ("--rule", *QUESTION_ONLY),
    ),
    Way(
        ("inspect", COUNT),
        {
            "--epsilon": ("--epsilon", "3"), "--delta": ("--delta", "2"), "--level": ("--level", "0.9"),
            "--protection": ("--protection", "rows"), "--curve": ("--curve",), "--components": ("--components",),
            "--attacker": ATTACKED[2:], "--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",),
        },
        ("--stream", "--share", "--plot"),
        instead={
            "--attacker": ATTACKED[:2],
        },
    ),
    Way(
        ("inspect", COUNT, "--curve"),
        {
            "--level": ("--level", "0.9"), "--protection": ("--protection", "rows"), "--plot": ("--plot", "x.svg"),
            "--delta": ("--delta", "2"), "--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",),
        },
        ("--stream", "--share", "--epsilon", "--components", "--attacker"),
    ),
    Way(
        ATTACKED,
        {
            "--protection": ("--protection", "rows"), "--plot": ("--plot", "x.svg"), "--policy": OTHER,
            "--source": ELSEWHERE, "--json": ("--json",),
        },
        ("--stream", "--share", "--epsilon", "--delta", "--level", "--components", "--curve"),
    ),
    Way(
        ("inspect", "--stream", "visits"),
        {"--share": ("--share", "0.5"), "--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",)},
        (
            "--epsilon", "--delta", "--level", "--protection", "--curve", "--components", "--attacker", "--plot",
        ),
    ),
    Way(
        ("serve",),
        {
            "--config": ("--config", "serve.toml"), "--policy": OTHER, "--http": ("--http", "1"),
            "--postgres": ("--postgres", "2"), "--self-made-tls": ("--self-made-tls",),
        },
    ),
    Way(
        ("mcp",),
        {
            "--config": ("--config", "serve.toml"), "--policy": OTHER, "--cap": ("--cap", "2"),
            "--analyst": ("--analyst", "ada"),
        },
    ),
    user("add", "bob", obeyed=("--role", "--stdin")),
    user("password", "ada", obeyed=("--stdin",)),
    user("token", "ada", obeyed=("--days", "--note")),
    user("role", "ada", "--role", "owner"),
    user("remove", "ada"),
    user("revoke", "t1"),
    user("list"),
    user("log"),
    Way(
        ("ledger",),
        {
            "--history": ("--history",), "--export": ("--export", "out.csv"), "--verify": ("--verify",),
            "--restored": ("--restored",), "--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",),
        },
    ),
    Way(
        ("ledger", "--export", "-"),
        {"--policy": OTHER, "--source": ELSEWHERE},
        ("--history", "--verify", "--restored", "--json"),
    ),
    Way(
        ("audit", COUNT, "--databases", "2", "--seed", "7"),
        {
            "--epsilon": ("--epsilon", "0"), "--delta": ("--delta", "2"), "--protection": ("--protection", "rows"),
            "--seconds": ("--seconds", "0"), "--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",),
        },
    ),
    Way(
        ("facts",),
        {"--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",)},
        ("--discard", "--find", "--epsilon"),
    ),
    Way(("verify", "last"), {"--policy": OTHER, "--source": ELSEWHERE, "--json": ("--json",)}),
    Way(("completion", "bash"), {}),
    *map(bench, BELONG),
)  # fmt: skip


def declared(command: str) -> set[str]:
    """Give the first long name of every option of a command."""
    long = (
        [n for n in x.names if n.startswith("--")]
        for x in program()[command].assemble_argument_collection()
    )
    return {names[0] for names in long if names}


@pytest.mark.parametrize("command", [name for name, _, _ in COMMANDS])
def test_every_declared_option_has_a_row(command):
    ways = [way for way in WAYS if way.words[0] == command]
    assert ways, "a new command needs rows"
    for way in ways:
        assert way.options == declared(command), way.words


# ── what a command does ──────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def origin(tmp_path_factory) -> Path:
    """Make data, policies, a ledger with one release, and a user."""
    folder = tmp_path_factory.mktemp("origin")
    for name, rows in (("people", 60), ("fewer", 30)):
        with duckdb.connect(str(folder / f"{name}.duckdb")) as connection:
            connection.execute(
                "CREATE TABLE people AS SELECT range AS id, CAST(range % 90 AS INTEGER) AS age, "
                "'n' || range % 3 AS name, DATE '2025-01-01' + CAST(range % 4 AS INTEGER) AS day "
                f"FROM range({rows})"
            )
    (folder / "policy.toml").write_text(POLICY)
    other = (
        POLICY.replace("people.duckdb", "fewer.duckdb")
        .replace("steps = 4", "steps = 3")
        .replace("100]", "90]")
    )
    other = other.replace("epsilon = 50.0", "epsilon = 40.0").replace(
        '"people", "rows"', '"folks", "rows"'
    )
    (folder / "other.toml").write_text(other.replace("protections.people", "protections.folks"))
    (folder / "script.sql").write_text(f"RELEASE t AS {COUNT};\nSELECT n FROM t;\n")
    (folder / "serve.toml").write_text('policy = "other.toml"\n')
    for policy in ("policy.toml", "other.toml"):
        with secant.connect(policy=folder / policy) as db:
            if policy == "policy.toml":
                with db.ledger.reserve((), note={"facts": 1}) as kept:
                    kept.mark_sent()
                    kept.settle(outcome_text((FOUND,)))
            db.sql(COUNT, epsilon=1, protection="rows")
    return folder


@pytest.fixture
def place(origin, monkeypatch) -> Path:
    monkeypatch.chdir(origin)
    monkeypatch.delenv("SECANT_POLICY", raising=False)
    monkeypatch.setattr(time, "perf_counter", lambda: 1.0)  # `inspect` prints how long things take
    return origin


@pytest.fixture
def calls(place, monkeypatch) -> list[Any]:
    """Put recorders in the place of all that draws noise, spends, listens or takes long."""
    told: list[Any] = []

    def recorder(name: str, result: Any = None):
        def call(*words: Any, **named: Any) -> Any:
            told.append((name, repr(words), repr(sorted(named.items()))))
            return result() if callable(result) else result

        return call

    def patch(where: str, result: Any = None) -> None:
        monkeypatch.setattr(where, recorder(where, result))

    answer = Given(["n"], [(1,)], ERROR)
    answer.told = told
    whole = SimpleNamespace(
        answers={},
        flow=(),
        stopped=None,
        to_dict=dict,
        plot=lambda: SimpleNamespace(save=recorder("save")),
    )
    fake = Connection(result=answer, asked=told)
    fake.run = recorder("run", whole)

    def connect(source=None, **options):
        told.append(("connect", source, sorted(options.items(), key=str)))
        return fake

    monkeypatch.setitem(secant.__dict__, "connect", connect)
    patch("secant.display.flow.flow_text", [])

    def pause() -> float | None:
        return None if any("_wait" in str(call) for call in told) else 1.0

    series = SimpleNamespace(name="visits", rows=[1], steps=(), seconds_to_next=None)
    series.afterwards = recorder("afterwards", lambda: series)
    patch("secant.cli.commands.stream._released", lambda: (series, None, pause()))
    for name in ("_print", "_draw", "_wait"):
        patch(f"secant.cli.commands.stream.{name}")
    patch("secant.cli.commands.demo_service.serve_clinic", 0)
    patch("secant.cli.demo_data.make_clinic", (place / "people.duckdb", place / "policy.toml"))
    patch("secant.cli.commands.demo._true_answers", [[(1,)]] * 3)
    patch("secant.cli.commands.demo._refusal", UsageError("USE-001", "a refusal"))
    patch("secant.service.serving.Server", MagicMock)
    patch("secant.service.serving.ended_by_signal", MagicMock)
    patch("secant.service.asking.Service", MagicMock)
    patch("secant.service.agents.build", MagicMock)
    patch("secant.service.store.open_store", MagicMock)
    patch("secant.service.verifiers.generated_password", "a password")
    users = MagicMock()
    users.return_value.found.side_effect = recorder("found", ("ada",))
    users.return_value.make_token.side_effect = recorder("token", ("secret", KEPT))
    users.return_value.all.return_value = users.return_value.log.return_value = ()
    for name in ("add", "set_password", "remove", "revoke", "set_role"):
        getattr(users.return_value, name).side_effect = recorder(name)
    monkeypatch.setattr("secant.service.users.Users", users)
    for name in ("laud", "tpch", "joins", "sampler", "honesty", "everyday", "useful"):
        patch(f"bench.suites.command._{name}", 0)
    return told


DRAWN = ("query", "run", "stream", "demo", "serve", "mcp", "user", "bench")
"""Commands that spend, draw, listen or take long; the others run as they are."""


def done(words: tuple[str, ...], calls: list[Any], place: Path, capsys, monkeypatch) -> Any:
    """Run a command; give all that can be seen of it, and take away what it wrote."""
    before = {file: file.read_bytes() for file in place.iterdir() if file.is_file()}
    calls.clear()
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse battery staple\n"))
    status = main(list(words))
    said = capsys.readouterr()
    wrote = {}
    for file in place.iterdir():
        if file.is_dir():
            wrote[file.name] = b"a folder"
            file.rmdir()
        elif file not in before and not file.name.startswith(("policy.", "other.")):
            wrote[file.name] = file.read_bytes()
            file.unlink()
    for name in ("policy.toml", "other.toml"):  # `init --force` writes one anew
        wrote |= {} if (place / name).read_bytes() == before[place / name] else {name: b"anew"}
        (place / name).write_bytes(before[place / name])
    return status, said.out, said.err, wrote, list(map(str, calls))


OBEYED = [
    pytest.param(way, option, id=" ".join((*way.words[:1], *way.words[-1:], option)))
    for way in WAYS
    for option in way.obeyed
]
REFUSED = [
    pytest.param(way, option, id=" ".join((*way.words[:1], *way.words[-1:], option)))
    for way in WAYS
    for option in way.refused
]


@pytest.mark.parametrize(("way", "option"), OBEYED)
def test_an_option_is_obeyed(way, option, place, request, capsys, monkeypatch):
    calls = request.getfixturevalue("calls") if way.words[0] in DRAWN else []
    plain = way.instead.get(option, way.words)
    without = done(plain, calls, place, capsys, monkeypatch)
    given = done((*plain, *way.obeyed[option]), calls, place, capsys, monkeypatch)
    assert BUG not in (without[0], given[0]), (without, given)
    assert given != without, given


@pytest.mark.parametrize(("way", "option"), REFUSED)
def test_an_option_is_refused(way, option, place, request, capsys, monkeypatch):
    calls = request.getfixturevalue("calls") if way.words[0] in DRAWN else []
    status, out, err, wrote, asked = done(
        (*way.words, option, *SAMPLE.get(option, ())), calls, place, capsys, monkeypatch
    )
    assert status == 2, out
    assert "USE-001" in err
    assert option in err or "--plot" in (option, *way.words), err
    assert (out, wrote, asked) == ("", {}, [])


@pytest.mark.parametrize("words", [("user", "list", "ada"), ("check", "a.toml", "-p", "b.toml")])
def test_a_word_that_means_nothing_is_refused(words, calls, capsys):
    assert main(list(words)) == 2
    assert "USE-001" in capsys.readouterr().err


def test_the_option_goes_before_the_environment_and_that_before_the_folder(
    place, capsys, monkeypatch
):
    def budget(*words: str) -> str:
        assert main(["ledger", *words]) == 0
        return capsys.readouterr().out

    assert "of 50" in budget()
    monkeypatch.setenv("SECANT_POLICY", "other.toml")
    assert "of 40" in budget()
    assert "of 50" in budget("--policy", "policy.toml")
    monkeypatch.setenv("SECANT_POLICY", "")
    assert "of 50" in budget()
    monkeypatch.setenv("SECANT_POLICY", "missing.toml")
    assert main(["ledger"]) == 2
    assert "missing.toml" in capsys.readouterr().err
    for command, *_ in COMMANDS:
        if "--policy" in declared(command) - ({"--policy"} if command == "bench" else set()):
            main([command, "--help"])
            assert "SECANT_POLICY" in " ".join(capsys.readouterr().out.split()), command
