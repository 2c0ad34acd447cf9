"""Ours: an error carried the errors before it and the frames that it came through, and in these stood engine texts that
quote rows, and exact results. `public_api` cuts both off where an error leaves.

A number stands in the data. Failures are made at every stage, and everything that can be reached from what is raised is
searched for it.
"""

import inspect
import numbers
import traceback
import types
from collections.abc import Mapping

import duckdb
import numpy as np
import pytest

import secant
from secant import blackbox, stats
from secant.cli import program
from secant.engines.duckdb import session as engine
from secant.errors import BackendError, InternalError, public_api
from secant.noise.mechanisms import whole
from secant.release import run

SECRET = 7001234
POLICY = """
[database]
source = "duckdb:town.duckdb"
[tables.people]
key = "id"
[tables.people.columns]
pay = { range = [0, 10000000] }
[protections.people]
kind = "rows"
epsilon = 1000
"""
QUESTION = "SELECT sum(pay) AS total FROM people"


@pytest.fixture
def town(tmp_path):
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute("CREATE TABLE people (id BIGINT, pay BIGINT, name VARCHAR)")
        connection.execute(f"INSERT INTO people VALUES (1, {SECRET}, 'S{SECRET}')")
    (tmp_path / "policy.toml").write_text(POLICY)
    with secant.connect(policy=tmp_path / "policy.toml") as database:
        yield database


def tells(value, seen, depth=0):
    """Whether the secret can be reached from a value."""
    if isinstance(value, str):
        return str(SECRET) in value
    if isinstance(value, bytes):
        return str(SECRET).encode() in value
    if isinstance(value, numbers.Number):
        return value == SECRET
    if id(value) in seen or depth > 40 or isinstance(value, (type, types.ModuleType)):
        return False
    seen[id(value)] = value  # kept, so that its number is not given to another
    return any(tells(part, seen, depth + 1) for part in parts(value))


def parts(value):
    if isinstance(value, BaseException):
        yield from (value.args, value.__context__, value.__cause__, str(value), repr(value))
        yield from frames(value.__traceback__)
    if isinstance(value, types.FrameType):
        if value.f_globals.get("__name__") != __name__:  # what the test holds, it need not be told
            yield from value.f_locals.values()
        return
    if isinstance(value, types.FunctionType):
        yield from (c.cell_contents for c in value.__closure__ or () if c != types.CellType())
        return
    if isinstance(value, Mapping):
        yield from (*value.keys(), *value.values())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif isinstance(value, np.ndarray):
        yield from value.flat
    yield from getattr(value, "__dict__", {}).values()
    for kind in type(value).__mro__:
        for slot in getattr(kind, "__slots__", ()):
            if isinstance(slot, str) and hasattr(value, slot):
                yield object.__getattribute__(value, slot)


def frames(trace):
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def ours(error):
    """Give the names of our functions in a trace."""
    return [
        f.f_code.co_name
        for f in frames(error.__traceback__)
        if f.f_globals["__name__"].startswith("secant")
    ]


def caught(call):
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - whatever is raised is looked at
        return error
    pytest.fail("nothing was raised")


def assert_clean(error):
    assert error.__context__ is None
    assert error.__cause__ is None
    assert not getattr(error, "__notes__", [])
    assert ours(error) in (["guarded"], [])
    assert not tells(error, {})
    assert str(SECRET) not in "".join(traceback.format_exception(error))


# ── where it can fail ────────────────────────────────────────────────────────────────────────────────


def noted():
    error = ValueError(f"row {SECRET}")
    error.add_note(f"note {SECRET}")
    return error


def wrapped():
    error = BackendError("BAK-002", "the engine failed")
    error.add_note(f"note {SECRET}")
    error.__cause__ = noted()
    return error


FAILURES = {
    "value": noted,
    "engine": lambda: duckdb.ConversionException(f"Could not convert {SECRET}"),
    "typed": wrapped,
    "assertion": lambda: AssertionError(SECRET),
    "type": lambda: TypeError(f"{SECRET} is odd"),
    "key": lambda: KeyError(SECRET),
    "stop": lambda: StopIteration(SECRET),
    "memory": MemoryError,
    "recursion": lambda: RecursionError(f"{SECRET}"),
    "system": lambda: OSError(5, f"{SECRET}"),
    "interrupt": KeyboardInterrupt,
    "exit": lambda: SystemExit(5),
}
PLACES = [
    (run, "measured"),
    (whole, "add_discrete_laplace"),
    (run, "table_of"),
    (run, "finish"),
    (run, "lower"),
    (engine.DuckDBSession, "rows"),
    (engine.DuckDBSession, "check"),
]


def fails_after(place, name, failure, monkeypatch):
    """Let a function do its work, keep what it found in its frame, and fail."""
    real = getattr(place, name)

    def failing(*args, **kwargs):
        exact = [SECRET, real(*args, **kwargs)]
        raise failure() from ValueError(f"{exact[0]}")  # what is sealed would refuse

    monkeypatch.setattr(place, name, failing)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("place", PLACES, ids=lambda p: f"{p[0].__name__}.{p[1]}")
def test_no_failure_of_a_question_carries_data(town, monkeypatch, place, failure):
    fails_after(*place, FAILURES[failure], monkeypatch)
    error = caught(lambda: town.sql(QUESTION, epsilon=1))
    assert_clean(error)
    if failure == "exit":
        assert error.code == 5


@pytest.mark.parametrize("method", ["explain", "ranges", "obligation", "inspect"])
def test_no_failure_of_another_method_carries_data(town, monkeypatch, method):
    for place in (
        "release.inspection.lower", "settling.planned", "settling.from_sql", "engine.from_sql",
        "plan.facts.range_report.range_report", "sensitivity.smt.analysis.obligations",
    ):  # fmt: skip
        monkeypatch.setattr(f"secant.{place}", lambda *a, **k: [][SECRET], raising=True)
    assert_clean(caught(lambda: getattr(town, method)(QUESTION)))


def test_planted_without_the_border_the_data_leave(town, monkeypatch):
    fails_after(whole, "add_discrete_laplace", FAILURES["value"], monkeypatch)
    bare = inspect.unwrap(type(town).sql)
    error = caught(lambda: bare(town, QUESTION, epsilon=1))
    assert tells(error, {})
    monkeypatch.undo()
    # exact results also stand in frames, where no text quotes them
    monkeypatch.setattr(whole, "add_discrete_laplace", lambda *a, **k: {}[0])
    error = caught(lambda: bare(town, QUESTION, epsilon=1))
    assert str(SECRET) not in str(error)
    assert tells(error, {})


def test_a_file_that_cannot_be_read_is_not_quoted(tmp_path):
    (tmp_path / "people.csv").write_bytes(b"id\n\xff\xfe" + str(SECRET).encode() + b'\n"\xff')
    (tmp_path / "people.parquet").write_text(f"PAR1 {SECRET}")
    (tmp_path / "policy.toml").write_text('[protections.p]\nkind = "rows"\nepsilon = 1\n')
    for kind in ("parquet", "csv"):
        error = caught(
            lambda kind=kind: secant.connect(
                f"{kind}:{tmp_path}", policy=tmp_path / "policy.toml"
            ).sql("SELECT nothing FROM people", epsilon=1)
        )
        assert_clean(error)


def test_a_policy_with_a_password_is_not_quoted(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(f'[database]\nsource = "postgresql://me:{SECRET}@nowhere/x"\nodd = 1\n')
    assert_clean(caught(lambda: secant.load_policy(path)))


# ── statistics and black boxes ───────────────────────────────────────────────────────────────────────


def spoiled(values):
    raise ValueError(f"{values} {SECRET}")


def test_statistics_carry_no_data(monkeypatch):
    monkeypatch.setattr("secant.stats.calls.paid", lambda *a, **k: [][SECRET])
    data = [SECRET, SECRET]
    bounds = (0, 10**7)
    calls = [
        lambda: stats.mean(data, epsilon=1, bounds=bounds),
        lambda: stats.median(data, epsilon=1, bounds=bounds),
        lambda: stats.count(data, epsilon=1),
        lambda: stats.mean(data, epsilon=-1, bounds=bounds),
        lambda: stats.mean(["x", SECRET], epsilon=1, bounds=bounds),
        lambda: stats.bounded(spoiled, data, deltas=1, empty=0),
    ]
    for call in calls:
        assert_clean(caught(call))


def test_black_boxes_carry_no_data():
    error = caught(
        lambda: blackbox.release(
            lambda rows: spoiled(rows) if SECRET in rows else float(np.mean(rows)),
            np.array([SECRET, 2.0, 3.0]),
            blackbox.uniform(),
            epsilon=1,
            gamma=0.2,
            workers=0,
            progress=False,
        )
    )
    assert_clean(error)
    assert isinstance(error, secant.errors.SecantError)


@pytest.mark.parametrize(
    "home", [secant, stats, blackbox, secant.Connection], ids=lambda h: h.__name__
)
def test_every_public_function_is_a_border(home):
    names = [n for n in getattr(home, "__all__", vars(home)) if not n.startswith("_")]
    open_ones = []
    for name in names:
        found = inspect.getattr_static(home, name) if inspect.isclass(home) else getattr(home, name)
        function = found.fget if isinstance(found, property) else found
        if isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__"):
            open_ones.append(name)
    assert open_ones == []


# ── the border itself ────────────────────────────────────────────────────────────────────────────────


def test_a_call_that_does_not_fit_is_told_by_python(town):
    with pytest.raises(TypeError, match="text"):
        town.sql(epsilon=1)


def test_an_error_raised_while_another_is_handled_keeps_the_callers_own():
    @public_api
    def failing():
        raise KeyError(SECRET)

    own = LookupError("the caller's")
    try:
        raise own
    except LookupError:
        error = caught(failing)
    assert error.__context__ is own
    assert isinstance(error, InternalError)


def test_a_bug_shows_its_trace_only_where_it_is_asked_for(town, monkeypatch):
    monkeypatch.setattr(whole, "add_discrete_laplace", lambda *a, **k: {}[0])
    assert type(caught(lambda: town.sql(QUESTION, epsilon=1))) is InternalError
    monkeypatch.setenv("SECANT_DEBUG", "1")
    assert "_released" in ours(caught(lambda: town.sql(QUESTION, epsilon=1)))
    # what is no bug stays as it is
    fails_after(engine.DuckDBSession, "rows", wrapped, monkeypatch)
    assert_clean(caught(lambda: town.sql(QUESTION, epsilon=1)))


@pytest.mark.parametrize("failure", [f for f in FAILURES if f not in ("exit",)])
def test_the_program_prints_no_data(town, monkeypatch, capsys, failure):
    place = str(town.policy.path)
    fails_after(whole, "add_discrete_laplace", FAILURES[failure], monkeypatch)
    status = program.main(["query", QUESTION, "--epsilon", "1", "--policy", place])
    printed = capsys.readouterr()
    assert status in (2, 5, 70, 130)
    assert str(SECRET) not in printed.out + printed.err
