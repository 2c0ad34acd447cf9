"""What the core lock installs answers questions: no numpy, no scipy, no frames; whoever needs them is told."""

import re
import subprocess
import sys

import pytest
from repository import ROOT

WITHOUT = """
import sys
for name in ("numpy", "scipy", "pandas", "polars", "pyarrow"):
    sys.modules[name] = None
"""


def alone(program: str, folder) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program], cwd=folder, capture_output=True, text=True
    )


def test_the_core_lock_has_neither_numpy_nor_scipy():
    locked = re.findall(
        r"^([\w-]+)==", (ROOT / "requirements" / "core.lock").read_text(), re.MULTILINE
    )
    assert "duckdb" in locked
    assert {"numpy", "scipy"}.isdisjoint(locked)
    assert len(locked) <= 16


ASKED = """
import secant
from pathlib import Path
Path("edges.csv").write_text("a,b\\n" + "\\n".join(f"{i % 7},{i % 5}" for i in range(60)))
rows = {"kind": "rows", "tables": ["edges"], "epsilon": 90}
policy = {"tables": {"edges": {}}, "protections": {"edges": rows}}
with secant.connect({"edges": "edges.csv"}, policy=policy) as db:
    # sums over joins of protected rows, order statistics, ranges found privately: all without arrays
    db.sql("SELECT count(*) AS n FROM edges x JOIN edges y ON x.b = y.a", epsilon=9)
    db.sql("SELECT count(*) AS n FROM edges x, edges y, edges z "
           "WHERE x.b = y.a AND y.b = z.a", epsilon=9)
    try:
        db.sql("SELECT count(*) AS n FROM edges x, edges y WHERE x.a = y.a OR x.b < y.b", epsilon=9)
    except secant.errors.Refused as refused:
        print(refused)
    else:
        print("answered")
"""


def test_questions_are_answered_without_arrays(tmp_path):
    done = alone("from secant.cli import main\nsys.exit(main(['demo']))", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Guarantee" in done.stdout
    done = alone(ASKED, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "secant.stats.mean([1.0], epsilon=1)",
        "secant.blackbox.design",
        "import secant.stats",
        "import secant.blackbox",
        "from secant.stats import mean",
        "secant.attack.guess_probability(secant.attack.uniform(0, 1), None, 0.1, 1)",
    ],
)
def test_what_needs_arrays_says_what_to_install(line, tmp_path):
    done = alone(
        f"""
import secant
try:
    {line}
except secant.errors.UsageError as error:
    print(error)
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "USE-006" in done.stdout
    assert "secant[numeric]" in done.stdout
