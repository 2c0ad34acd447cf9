"""Write the measured table of docs/how-to/coming-from.md from bench/frame_peers.json."""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
PAGE = DOCS / "how-to" / "coming-from.md"
FOUND = DOCS.parent / "bench" / "frame_peers.json"
NAMES = {
    "secant": "Secant",
    "smartnoise": "SmartNoise SQL",
    "opendp": "OpenDP",
    "diffprivlib": "diffprivlib",
}
MEASURED = re.compile(r"(<!-- measured -->\n).*?(<!-- /measured -->)", re.DOTALL)


def table() -> str:
    """Give the table."""
    found = json.loads(FOUND.read_text(encoding="utf-8"))
    lines = [
        "| library | lines | imports | frame to answer | median error |",
        "|---|---|---|---|---|",
    ]
    for name, told in found.items():
        lines.append(
            f"| {NAMES[name]} | {told['lines']} | {told['import_seconds']:.1f} s "
            f"| {told['answer_seconds']:.2f} s | {told['median_error']:g} visits |"
        )
    return "\n".join(lines) + "\n"


def page() -> str:
    """Give the page with the table in its place."""
    text = PAGE.read_text(encoding="utf-8")
    return MEASURED.sub(lambda found: f"{found[1]}{table()}{found[2]}", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
