"""Ours: DuckDB put rows that did not fit into memory into `FILE.duckdb.tmp` or `.tmp`, readable for everybody, where
they stayed after a kill. They go into a directory that only the user may look into, which is removed at the end, or,
after a kill, by the next process.
"""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import duckdb
import pytest

import secant
from secant.engines import spill
from secant.engines.sources import open_source
from secant.engines.spill import Spill
from secant.policy.policy import Limits

SMALL = Limits(memory="120MB")
SORT = "SELECT count(*) FROM (SELECT id, row_number() OVER (ORDER BY name) AS place FROM people) AS p WHERE place > 0"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A place for temporary files, and another one to work in."""
    for name in ("temporary", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.fixture
def town(home):
    with duckdb.connect(str(home / "work" / "town.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT range AS id, md5(range::VARCHAR) || repeat('x', 60) AS name "
            "FROM range(2000000)"
        )
    return home / "work" / "town.duckdb"


def left(home):
    return list((home / "temporary").glob("*"))


class Watching(threading.Thread):
    """Notes every file below a directory while something runs."""

    def __init__(self, home):
        super().__init__(daemon=True)
        self.home, self.seen, self.over = home, {}, threading.Event()

    def run(self):
        while not self.over.wait(0.001):
            # Files and folders go while they are listed: the next round looks again.
            with contextlib.suppress(OSError):
                for path in self.home.rglob("*"):
                    with contextlib.suppress(OSError):
                        self.seen[path] = path.stat()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.join()


def spilled(home, source):
    """Run what does not fit into memory; give where files appeared."""
    before = set(home.rglob("*"))
    with Watching(home) as watching:
        backend = open_source(source, threads=1, limits=SMALL)
        with backend.session(["people"]) as session:
            for _ in range(10):  # on a busy machine one look may come too late
                assert session.rows(SORT) == [(2000000,)]
                if any(
                    stat.S_ISREG(f.st_mode) and p not in before
                    for p, f in list(watching.seen.items())
                ):
                    break
        backend.close()
    return {path: facts for path, facts in watching.seen.items() if path not in before}


def test_rows_go_where_only_the_user_looks(home, town):
    found = spilled(home, f"duckdb:{town}")
    files = [path for path, facts in found.items() if stat.S_ISREG(facts.st_mode) and facts.st_size]
    assert files, "the test must spill"
    for path in files:
        (private,) = [p for p in path.parents if p.name.startswith("secant-spill-")]
        assert stat.S_IMODE(found[private].st_mode) == 0o700
        assert private.parent == home / "temporary"
    assert left(home) == []
    assert sorted(p.name for p in town.parent.iterdir()) == ["town.duckdb"]


def test_planted_the_engines_own_place_is_open(home, town, monkeypatch):
    class Nowhere:
        path = home / "work" / "town.duckdb.tmp"

        def remove(self):
            pass

    monkeypatch.setattr("secant.engines.duckdb.session.Spill", Nowhere)
    found = spilled(home, f"duckdb:{town}")
    assert not any(p.name.startswith("secant-spill-") for p in found)
    assert any(Nowhere.path in p.parents for p in found)


def test_the_directory_goes_with_its_engine(home):
    one, two = Spill(), Spill()
    assert len(left(home)) == 2
    one.remove()
    assert left(home) == [two.path]
    del two
    assert left(home) == []


def test_a_forked_child_leaves_it_to_its_parent(home):
    made = Spill()
    child = os.fork()
    if not child:
        made.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert left(home) == [made.path]


PROGRAM = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from secant.engines.spill import Spill
made = Spill()
(made.path / "rows").write_text("SECRET_SMITH")
print("made", flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(home):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(home / "temporary")],
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    try:
        for process in processes:
            assert process.stdout.readline() == b"made\n"
        assert len(left(home)) == 2
        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        assert len(left(home)) == 2
        made = Spill()
        assert len(left(home)) == 2  # the one that is in use, and the new one
        assert made.path in left(home)
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()


def test_links_and_files_that_look_like_it_stay(home):
    (home / "elsewhere").mkdir()
    (home / "elsewhere" / "file").touch()
    (home / "temporary" / f"{spill._PREFIX}link").symlink_to(home / "elsewhere")
    (home / "temporary" / f"{spill._PREFIX}file").touch()
    made = Spill()
    assert (home / "elsewhere" / "file").exists()
    assert len(left(home)) == 3
    made.remove()


def test_a_connection_that_fails_leaves_nothing(home):
    (home / "work" / "people.csv").write_text("id\n1\n")
    (home / "work" / "policy.toml").write_text(
        '[database]\nsource = "csv:."\n[tables.nobody]\nkey = "x"\n[protections.p]\nkind = "rows"\nepsilon = 1\n'
    )
    with pytest.raises(secant.errors.SecantError):
        secant.connect(policy=home / "work" / "policy.toml")
    assert left(home) == []
    assert Path.cwd() == home / "work"
