"""Give docs/reference/python.md with an entry for every public name; `build_site.py` puts it into the site."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import secant
from secant import attack, blackbox, stats
from secant.streams.series import Series

PAGE = Path(__file__).parents[1] / "reference" / "python.md"
SECTIONS: tuple[tuple[str, str, Any, tuple[str, ...]], ...] = (
    ("Open and ask", "secant", secant, ("connect", "protect", "Policy", "load_policy", "read_policy", "rule")),
    ("A connection", "Connection", secant.Connection, ()),
    ("An answer", "Answer", secant.Answer, ()),
    ("An explanation", "Explanation", secant.Explanation, ()),
    ("A series", "Series", Series, ()),
    ("Errors", "errors", secant.errors, ("SecantError",)),
    ("Statistics", "secant.stats", stats, tuple(stats.__all__)),
    ("Black boxes", "secant.blackbox", blackbox, tuple(blackbox.__all__)),
    ("Attackers", "secant.attack", attack, tuple(attack.__all__)),
)  # fmt: skip
_QUOTED = re.compile(r": '([^']*)'(?= = |$)")
"""An annotation that is kept as text."""


def page() -> str:
    """Give the whole page: what is written by hand, and an entry for every public name."""
    parts = [PAGE.read_text(encoding="utf-8")]
    for title, home, place, names in SECTIONS:
        parts.append(f"## {title}\n")
        if isinstance(place, type):
            parts.append(f"{_words(place)}\n")
        for name in names or _members(place):
            found = vars(place)[name] if isinstance(place, type) else getattr(place, name)
            parts.append(_entry(home, name, found))
    return "\n".join(parts)


def _members(kind: type) -> tuple[str, ...]:
    """Give the public members of a class that say what they are, in the order of the code."""
    return tuple(
        name
        for name, value in vars(kind).items()
        if not name.startswith("_")
        and (callable(value) or isinstance(value, (property, staticmethod, classmethod)))
    )


def _entry(home: str, name: str, value: Any) -> str:
    value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    if isinstance(value, property):
        return f"### {home}.{name}\n\n{_words(value.fget)}\n"
    if isinstance(value, (str, tuple, frozenset)):
        return f"### {home}.{name}\n\nA constant: `{value!r}`.\n"
    return f"### {home}.{name}\n\n```text\n{_signature(name, value)}\n```\n\n{_words(value)}\n"


def _signature(name: str, value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    words = [_QUOTED.sub(r": \1", str(p)) for p in found.parameters.values() if p.name != "self"]
    kinds = [p.kind for p in found.parameters.values() if p.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        words.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"{name}({', '.join(words)})"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {word},\n" for word in words) + ")"
    given = found.return_annotation
    return line if given is inspect.Signature.empty else f"{line} -> {given}"


def _words(value: Any) -> str:
    """Give a docstring as Markdown: arguments as a list, examples as a block."""
    text = inspect.getdoc(value) or ""
    lines: list[str] = []
    arguments = example = False
    for line in text.splitlines():
        if line in ("Args:", "Returns:", "Raises:"):
            arguments = True
            lines.append(f"{line[:-1]}:\n")
        elif arguments and re.match(r"    \*{0,2}\w[\w.]*: ", line):
            name, _, rest = line.strip().partition(": ")
            lines.append(f"- `{name}`: {rest}")
        elif arguments and line.startswith("        "):
            lines.append(f"  {line.strip()}")
        else:
            arguments = arguments and line.startswith("    ")
            if line.startswith(">>> ") and not example:
                example = True
                lines.append("```text")
            elif example and not line.strip():
                example = False
                lines.append("```")
            lines.append(line)
    if example:
        lines.append("```")
    return "\n".join(lines).strip()


if __name__ == "__main__":
    sys.stdout.write(page())
