"""Write docs/reference/error-codes.md from `secant.errors`. Run it after adding a code."""

from __future__ import annotations

from pathlib import Path

from secant import errors

PAGE = Path(__file__).parents[1] / "reference" / "error-codes.md"
HEAD = """\
# Error codes

Generated from `secant.errors` by `docs/tools/error_codes.py`; a test keeps the two level. A code
keeps its meaning for ever and is never reused. The family says who can act, and decides the exit
status of the command.
"""
WARNED = """\
## WRN: warnings

Said by `secant explain`, and by `secant query` on standard error before it spends. They follow from public
facts only, and refuse nothing.
"""


def page() -> str:
    """Give the text of the page."""
    families = sorted(errors.SecantError.__subclasses__(), key=_first_place)
    parts = [HEAD]
    for family in families:
        codes = [(code, what) for code, what in errors.CODES if code.startswith(family.family)]
        parts.append(f"## {family.family}: `{family.__name__}`, exit status {family.exit_status}\n")
        parts.append(f"{(family.__doc__ or '').strip()}\n")
        rows = "\n".join(f"| {code} | {what} |" for code, what in codes)
        parts.append(f"| code | meaning |\n|---|---|\n{rows}\n")
    rows = "\n".join(f"| {code} | {what} |" for code, what in errors.WARNINGS)
    parts.append(f"{WARNED}\n| code | meaning |\n|---|---|\n{rows}\n")
    return "\n".join(parts)


def _first_place(family: type[errors.SecantError]) -> int:
    return next(
        place for place, (code, _) in enumerate(errors.CODES) if code.startswith(family.family)
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
