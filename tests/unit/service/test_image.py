"""The container file, as far as it can be tried without a container engine: what it names is there, and its steps work.

In the long profile the steps of its first stage are replayed in an empty folder, with a fresh environment.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from clinic_service import POLICY, settings_at

from chance import LONG
from secant.service.serving import Server
from secant.service.settings import load_settings

ROOT = Path(__file__).parents[3]
TEXT = re.sub(r" *\\\n *", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
STEPS = [
    tuple(line.split(" ", 1))
    for line in TEXT.splitlines()
    if line.strip() and not line.startswith("#")
]
KNOWN = {
    "FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "ENV", "STOPSIGNAL", "HEALTHCHECK", "CMD",
}  # fmt: skip


def of(kind: str) -> list[str]:
    return [rest for name, rest in STEPS if name == kind]


def environment() -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\S+)", " ".join(of("ENV"))))


def test_every_step_is_one_that_engines_know_and_names_what_is_there() -> None:
    assert {name for name, _ in STEPS} <= KNOWN
    assert [s for name, s in STEPS if name == "FROM"] == [
        "python:3.11-slim AS build",
        "python:3.11-slim",
    ]
    for copied in of("COPY"):
        *sources, _ = copied.split()
        for source in sources:
            assert source.startswith(("--from", "/opt")) or (ROOT / source).exists(), source
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    (named,) = re.findall(r'"\.\[([\w,]+)\]"', TEXT)
    assert set(named.split(",")) <= set(extras)


def test_it_runs_without_rights_and_holds_no_secret() -> None:
    users = of("USER")
    assert users == ["10001"]
    assert STEPS.index(("USER", "10001")) < STEPS.index(("CMD", of("CMD")[0]))
    assert not re.search(r"password|secret(?!\w)|token|://\w+:\w+@", TEXT, re.IGNORECASE)
    assert "--read-only" in (ROOT / "Dockerfile").read_text()


def test_its_environment_is_a_configuration_and_its_health_is_looked_at(tmp_path: Path) -> None:
    found = {k: v for k, v in environment().items() if k.startswith("SECANT_SERVE_")}
    settings = load_settings(None, {**found, "SECANT_SERVE_HTTP__ORIGIN": "https://secant.example"})
    assert (settings.http.host, settings.http.port) == ("0.0.0.0", int(of("EXPOSE")[0]))
    assert settings.http.behind_proxy
    assert json.loads(of("CMD")[0]) == ["secant", "serve"]
    command = json.loads(of("HEALTHCHECK")[0].removeprefix("CMD "))
    with Server(settings_at(tmp_path, POLICY, **{"http.port": 0})) as server:
        port = server.fronts[0].address.rpartition(":")[2]
        program = command[2].replace(f":{settings.http.port}/", f":{port}/")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not LONG, reason="installs everything anew: the long profile")
def test_the_steps_of_the_first_stage_give_a_program_that_runs(tmp_path: Path) -> None:
    build, home = tmp_path / "build", tmp_path / "opt"
    build.mkdir()
    for copied in of("COPY")[:3]:
        *sources, target = copied.split()
        for source in sources:
            place = build / target / source if target == "./" else build / target
            place = place / Path(source).name if target.endswith("/") and target != "./" else place
            place.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, place)
    command = of("RUN")[0].replace("/opt/secant", str(home))
    done = subprocess.run(["bash", "-euc", command], cwd=build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    told = subprocess.run(
        [home / "bin" / "secant", "demo", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={},
    )
    assert json.loads(told.stdout)["sample_data"]
    served = subprocess.run(
        [home / "bin" / "secant", "serve", "--help"], capture_output=True, text=True, env={}
    )
    assert served.returncode == 0
