"""Draw docs/figures/console-*.png: the console on the sample clinic, in a real browser. Needs `make setup-browser`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from secant.cli.demo_data import make_clinic
from secant.service.serving import Server
from secant.service.settings import load_settings

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS.parent / "tests" / "browser"))
PASSWORD = "only for the pictures"
STREAM = """
[streams.visits_by_day]
query = "SELECT day, count(*) AS visits FROM visits GROUP BY day"
step = "1 day"
start = "2025-01-01"
steps = 365
shows = "running"
protection = "patients"
epsilon = 1.0
append_only = true
"""


def draw(folder: Path) -> None:
    """Serve the clinic, visit its pages, and keep what they look like."""
    from conftest import FLAGS, chromium

    _, policy = make_clinic(folder)
    policy.write_text(policy.read_text(encoding="utf-8") + STREAM, encoding="utf-8")
    server = Server(load_settings(None, {}, {"policy": policy, "http.port": 0}))
    server.service.users.add("olga", "owner", PASSWORD)
    address = server.fronts[0].address
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
            page = browser.new_page(viewport={"width": 1100, "height": 800})
            page.goto(address)
            page.get_by_label("User").fill("olga")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("heading", name="Before you ask").wait_for()
            page.get_by_role("button", name="Ask").click()
            page.get_by_role("heading", name="Promise").wait_for()
            page.screenshot(path=DOCS / "figures" / "console-ask.png", full_page=True)
            page.get_by_text("Why this is private").click()
            page.locator(".rule", has_text="stability.sum").first.click()
            page.locator(".proof dd").first.wait_for()
            page.locator(".why").screenshot(path=DOCS / "figures" / "console-why.png")
            page.goto(f"{address}/#/streams")
            page.get_by_role("button", name="Begin and pay").click()
            page.locator("polygon.band").wait_for()
            page.screenshot(path=DOCS / "figures" / "console-streams.png")
            page.emulate_media(color_scheme="dark")
            page.goto(f"{address}/#/tables")
            page.locator(".public").wait_for()
            page.screenshot(path=DOCS / "figures" / "console-tables.png", full_page=True)
            browser.close()
    finally:
        server.close()


if __name__ == "__main__":
    place = Path(tempfile.mkdtemp())
    try:
        draw(place)
    finally:
        shutil.rmtree(place)
