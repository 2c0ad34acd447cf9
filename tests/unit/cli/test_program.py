"""Whatever happens, a command ends with a message, a status by who can act, and no trace."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from secant.cli.program import COMMANDS, main
from secant.errors import (
    BackendError,
    BudgetError,
    InternalError,
    PolicyError,
    Refused,
    Span,
    SqlError,
    UsageError,
)

QUERY = ("query", "SELECT count(*) FROM t", "--epsilon", "0.5")


def test_help_names_every_command(run):
    status, out, err = run("--help")
    assert (status, err) == (0, "")
    for name, _, line in COMMANDS:
        assert name in out
        assert line.split(":")[0] in out


def test_help_is_quick_because_nothing_heavy_is_loaded():
    heavy = {"duckdb", "sqlglot", "numpy", "scipy", "pydantic", "flint", "secant.engine"}
    heavy |= {"cyclopts", "rich", "attr"}
    assert loaded_by(["--help"], heavy) == "loaded []"


def test_a_plain_question_loads_nothing_that_others_need(tmp_path):
    (tmp_path / "t.csv").write_text("id,x\n1,3\n2,4\n")
    (tmp_path / "policy.toml").write_text(
        f"[database]\nsource = 'csv:{tmp_path}'\n"
        "[protections.p]\nkind = 'rows'\ntables = ['t']\nepsilon = 4.0\n"
    )
    others = {
        "numpy",
        "scipy",
        "matplotlib",
        "pandas",
        "polars",
        "pyarrow",
        "z3",
        "psycopg",
        "pyspark",
        "starlette",
    }
    others |= {
        f"secant.{p}"
        for p in ("attack", "audit", "blackbox", "service", "stats", "streams", "verifier")
    }
    words = [*QUERY, "--policy", str(tmp_path / "policy.toml")]
    assert loaded_by(words, others) == "loaded []"


def loaded_by(words, names):
    code = (
        "import sys\n"
        "from secant.cli.program import main\n"
        f"assert main({words!r}) == 0\n"
        f"print('loaded', sorted(set(sys.modules) & {names!r}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UsageError("USE-002", "no"), 2),
        (SqlError("SQL-001", "no"), 2),
        (PolicyError("POL-003", "no"), 2),
        (Refused("REF-101", "no"), 3),
        (BudgetError("BUD-001", "no"), 4),
        (BackendError("BAK-002", "no"), 5),
        (InternalError("BUG-001", "no"), 70),
    ],
)
def test_the_status_tells_who_can_act(connection, run, error, status):
    connection.result = error
    assert run(*QUERY) == (status, "", f"{error.code}  no\n")
    got, out, err = run(*QUERY, "--json")
    assert (got, out) == (status, "")
    assert json.loads(err)["error"]["code"] == error.code


def test_an_error_shows_the_place_the_reasons_and_one_thing_to_do(connection, run):
    text = "SELECT x FROM t"
    connection.result = Refused(
        "REF-101", "no bound", text=text, span=Span(7, 8), details=("elastic  why",), hint="this"
    )
    _, _, err = run("query", text, "--epsilon", "1")
    assert err == (
        "REF-101  no bound\n  SELECT x FROM t\n         ^\n  elastic  why\n  Now: this\n"
    )


@pytest.mark.parametrize("error", [ValueError("Smith, 42"), KeyError("Smith"), RecursionError()])
def test_an_unexpected_exception_is_a_bug_and_its_text_is_withheld(connection, run, error):
    connection.result = error
    status, out, err = run(*QUERY)
    assert (status, out) == (70, "")
    assert err.startswith(f"BUG-001  an unexpected {type(error).__name__} stopped the command")
    assert "Smith" not in err
    assert "Traceback" not in err


def test_the_trace_is_shown_to_whoever_asks_for_it(connection, run, monkeypatch):
    monkeypatch.setenv("SECANT_DEBUG", "1")
    connection.result = ValueError("inside")
    with pytest.raises(ValueError, match="inside"):
        run(*QUERY)


def test_an_interrupted_command_says_so(connection, run):
    connection.result = KeyboardInterrupt()
    status, _, err = run(*QUERY)
    assert status == 130
    assert "interrupted" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nope",), "unknown command"),
        (("query",), "requires an argument"),
        (("query", "SELECT 1", "--epsilon", "1", "--epsilom", "2"), "--epsilom"),
        (("query", "SELECT 1", "SELECT 2", "--epsilon", "1"), "SELECT 2"),
        (("check", "a", "b"), "b"),
    ],
)
def test_wrong_words_are_wrong_use(run, words, sentence):
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert err.startswith("USE-001  ")
    assert sentence in err
    assert "--help`" in err


def test_wrong_words_are_json_if_asked(run):
    _, _, err = run("query", "--json")
    assert json.loads(err)["error"]["code"] == "USE-001"


def test_a_terminal_without_unicode_gets_a_question_mark():
    code = (
        "import secant.cli.program as p\n"
        "from secant.cli import show\n"
        "p.run = lambda words: show.say('ε') or 0\n"
        "raise SystemExit(p.main([]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={"PYTHONIOENCODING": "ascii"}
    )
    assert (result.returncode, result.stdout) == (0, b"?\n")


def test_main_reads_the_words_of_the_process(monkeypatch, capsys, connection):
    monkeypatch.setattr(sys, "argv", ["secant", *QUERY])
    assert main() == 0
    assert "42" in capsys.readouterr().out


ENDING = (
    "import atexit, sys, threading, time\n"
    "import secant.cli.program as p\n"
    "p.run = lambda words: print('x' * 200_000) or {status}\n"
    "atexit.register(lambda: print('registered'))\n"
    "{before}\n"
    "p.script()"
)
LATE = "threading.Thread(target=lambda: time.sleep(0.3) or print('late')).start()"


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("before", ["", LATE])
def test_a_process_that_ends_at_once_owes_nothing(status, before):
    code = ENDING.format(status=status, before=before)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (status, "")
    assert result.stdout.splitlines() == [
        "x" * 200_000,
        *(["late"] if before else []),
        "registered",
    ]


def test_a_process_that_ends_at_once_leaves_no_file(tmp_path):
    code = (
        "import secant.cli.program as p\n"
        "from secant.engines.spill import Spill\n"
        "made = []\n"
        "p.run = lambda words: made.append(Spill()) or print(made[0].path) or 0\n"
        "p.script()"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(str(tmp_path))
    assert not Path(result.stdout.strip()).exists()


def test_what_cannot_be_written_at_the_end_is_not_lost_in_silence():
    with open("/dev/full", "w") as full:
        code = ENDING.format(status=0, before="p.run = lambda words: sys.stdout.write('x') and 0")
        result = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE)
    assert result.returncode != 0


FAKE_ANSWER = (
    "import sys; sys.path.insert(0, {here!r})\n"
    "import secant\n"
    "from fake_engine import Answer, Connection\n"
    "rows = [(n,) for n in range(150)] * {times}\n"
    "error = dict.fromkeys(('values', 'low', 'high', 'noise', 'leaves_out')) | {{'level': 0.95}}\n"
    "fake = Connection(result=Answer(['n'], rows, error))\n"
    "secant.__dict__['connect'] = lambda source=None, **_: fake\n"
    "from secant.cli import main\n"
    "sys.exit(main(['query', 'SELECT 1', '--epsilon', '1'{more}]))"
)


@pytest.mark.parametrize("more", ["", ", '--json'"])
@pytest.mark.parametrize("times", [1, 500])
def test_a_full_disk_is_told_without_a_trace(more, times):
    code = FAKE_ANSWER.format(here=str(Path(__file__).parent), more=more, times=times)
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 2
    assert "the output cannot be written: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


@pytest.mark.parametrize("more", ["", ", '--json'"])
def test_a_reader_that_goes_away_in_the_middle(more):
    code = FAKE_ANSWER.format(here=str(Path(__file__).parent), more=more, times=500)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.read(10)
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    process.wait()
    # Whether the writer notices is a matter of buffers; that nobody complains is ours.
    assert process.returncode in (0, 141)
    assert complaint == ""
