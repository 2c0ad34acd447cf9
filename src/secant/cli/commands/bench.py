"""`secant bench`: the options of the benchmarks, which come with a clone and not with the package.

The data are generated, so true answers are shown; nothing of an owner's is ever read there, and no
ledger is touched.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

import secant
from secant.cli.options import named
from secant.errors import UsageError

ADDRESS = "SECANT_BENCH_POSTGRES"
SPARK = "SECANT_BENCH_SPARK"

Suite = Annotated[
    Literal["laud", "tpch", "joins", "honesty", "sampler", "everyday", "useful"],
    Parameter(
        help="laud: 17 queries with moving values; tpch: the 22 original texts under a policy; "
        "joins: bounds of all analyses beside the exact ones; honesty: whether printed ends hold; "
        "sampler: the figures of the sampling paper; everyday: errors of ordinary questions over an oracle's; "
        "useful: how many of 90 ordinary questions have a narrow interval that holds."
    ),
]
ProfileName = Annotated[
    str | None,
    named(
        "--profile",
        "laud: `paper` or `paper-l1`, the authors' settings; `native`: real dates, our defaults.",
        "NAME",
    ),
]
PolicyFile = Annotated[
    str | None,
    named("--policy", "tpch: by default one customer is protected.", "FILE"),
]
Scale = Annotated[
    str | None,
    named("--scale", "TPC-H scale factor, by default 0.1; not for the sampler.", "S", hyphen=True),
]
Epsilon = Annotated[
    str | None,
    named(
        "--epsilon",
        "tpch, joins, everyday, useful: privacy of one answer, by default 1.",
        "NUMBER",
        hyphen=True,
    ),
]
Delta = Annotated[
    str | None,
    named(
        "--delta",
        "tpch: for keys that are chosen privately, by default 1e-8.",
        "NUMBER",
        hyphen=True,
    ),
]
Engine = Annotated[
    Literal["duckdb", "postgres", "spark"] | None,
    Parameter(
        name="--engine",
        help=f"laud: duckdb by default; for postgres, {ADDRESS} holds an empty database's address; for spark, {SPARK} "
        "holds sc://HOST:PORT of a server that reads this machine's files.",
    ),
]
Queries = Annotated[
    str,
    named(
        "--queries",
        "Only these, such as b1_1,b6 or q1,q6; honesty, everyday, useful: data (events); sampler: figures (1,8).",
        "LIST",
    ),
]
Repeat = Annotated[
    int | None,
    named(
        ("--repeat", "--releases"),
        "laud, joins: best times of so many runs, by default 3; tpch, honesty: so many releases, 200; everyday: 20; "
        "useful: 3.",
        "N",
    ),
]
Data = Annotated[
    str | None,
    named("--data", "Where generated data are kept.", "DIR"),
]
JsonFile = Annotated[str | None, named("--json", "Write the measurements here.", "FILE")]


def bench(
    suite: Suite,
    /,
    *,
    profile: ProfileName = None,
    policy: PolicyFile = None,
    scale: Scale = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    engine: Engine = None,
    queries: Queries = "",
    repeat: Repeat = None,
    data: Data = None,
    json: JsonFile = None,
) -> int:
    """Run published benchmark queries on generated data and compare with what was published."""
    status: int = _suites().run(
        suite, profile, policy, scale, epsilon, delta, engine, queries, repeat, data, json
    )
    return status


def _suites() -> Any:
    """Import the benchmarks of the clone that this package was installed from."""
    clone = Path(secant.__file__).resolve().parents[2]
    if not (clone / "bench" / "suites" / "command.py").is_file():
        raise UsageError(
            "USE-001",
            "the benchmarks are not part of the installed package",
            hint="clone the repository, run `make setup` there, and then `.venv/bin/secant bench`",
        )
    if str(clone) not in sys.path:
        sys.path.insert(0, str(clone))
    return importlib.import_module("bench.suites.command")
