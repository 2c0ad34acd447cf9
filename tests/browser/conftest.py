"""A Chromium, and a service on the sample clinic for it to visit."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest
from clinic_console import CANARY, HOSTILE, PASSWORD, POLICY, Visit

from secant.service.serving import Server
from secant.service.settings import load_settings

FLAGS = tuple(
    f"--{flag}"
    for flag in (
        "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-dev-shm-usage",
        # A closed network refuses what a browser wants to fetch for itself.
        "disable-background-networking", "disable-component-update", "disable-sync",
    )
)  # fmt: skip


def chromium() -> str | None:
    """Give the browser that `make setup-browser` has installed, if any."""
    unpacked = Path(__file__).parents[2] / ".venv" / "chromium" / "run"
    return shutil.which("chromium") or (str(unpacked) if unpacked.exists() else None)


@pytest.fixture(
    scope="module"
)  # an open one keeps an event loop running, which other tests must not meet
def browser():
    program = chromium()
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("there is no Chromium: `make setup-browser` installs one")
        pytest.skip("there is no Chromium: `make setup-browser` installs one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i AS id, i % 300 AS person, "
            "DATE '2025-01-01' + CAST(i % 20 AS INTEGER) AS day, i % 100 AS cost, "
            f"CASE i % 3 WHEN 0 THEN 'Eye' WHEN 1 THEN 'Heart' ELSE '{HOSTILE}' END AS ward, "
            f"'{CANARY}' AS name FROM range(900) AS r(i)"
        )
        connection.execute("CREATE TABLE wards (ward VARCHAR, beds BIGINT)")
        connection.execute("INSERT INTO wards VALUES ('Eye', 12), ('Heart', 30)")
    (folder / "policy.toml").write_text(POLICY)
    running = Server(load_settings(None, {}, {"policy": folder / "policy.toml", "http.port": 0}))
    for name, role in (("ada", "analyst"), ("olga", "owner"), ("otto", "auditor")):
        running.service.users.add(name, role, PASSWORD)
    yield running
    running.close()


@pytest.fixture
def visiting(browser, server):
    @contextmanager
    def visit(name=None, **options):
        context = browser.new_context(viewport={"width": 1200, "height": 900}, **options)
        context.set_default_timeout(90_000)  # a busy machine; nothing waits longer than it must
        found = Visit(context.new_page(), server.fronts[0].address)
        try:
            if name is not None:
                found.log_in(name)
                found.page.get_by_role("heading", name="Before you ask").wait_for()
            yield found
        finally:
            context.close()

    return visit
