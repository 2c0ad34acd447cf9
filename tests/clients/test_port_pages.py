"""The pages about the PostgreSQL port: their Python runs against the port, and their table names tests that exist."""

import os
import re
import subprocess
import sys
from pathlib import Path

from postgres_port import PASSWORD, USER, running
from secant.service.postgres.telling import STATES
from secant.service.serving import Server
from secant.service.settings import Postgres, Settings

DOCS = Path(__file__).parents[2] / "docs"


def test_the_python_of_the_how_to_runs(tmp_path):
    subprocess.run([sys.executable, "-c", "import secant.cli; secant.cli.main()", "demo", "--keep", "clinic"],
                   cwd=tmp_path, check=True, capture_output=True)  # fmt: skip
    page = (DOCS / "how-to/connect-with-postgresql-clients.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    policy = tmp_path / "clinic" / "policy.toml"
    settings = Settings(
        policy=policy, http={"port": None}, postgres=Postgres(port=0), drain_seconds=1
    )
    with Server(settings) as server:
        server.service.users.add(USER, "analyst", PASSWORD)
        port = running(server)
        address = port.address("postgresql+psycopg", epsilon=None).rstrip("?")
        environment = {**os.environ, "SECANT_ADDRESS": address}
        done = subprocess.run(
            [sys.executable, "-c", block], env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr


def test_the_table_of_checks_names_tests_that_exist():
    page = (DOCS / "reference/postgresql-port.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| .* \| `(test_\w+)` \| (.*) \| (.*) \|$", page, re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, len(rows) + 1))
    assert sum(result == "passes" for *_, result in rows) >= 37
    tests = "".join(
        path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")
    )
    for _, name, _, _ in rows:
        assert f"def {name}(" in tests, name


def test_the_table_of_errors_has_every_state():
    page = (DOCS / "reference/postgresql-port.md").read_text(encoding="utf-8")
    written = set(re.findall(r"\b[0-9A-FX][0-9A-Z]{4}\b", page)) | {"XX000"}
    assert {state for _, state in STATES} <= written
