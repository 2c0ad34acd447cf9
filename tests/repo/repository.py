"""What the tests about the repository share: its files, and its Markdown taken apart."""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "secant"
LEFT_OUT = {".git", ".venv", "__pycache__", "node_modules", "build", "dist", "results"}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str


@cache
def files(*endings: str) -> tuple[Path, ...]:
    """Give the files of the repository, without what is generated or installed."""
    return tuple(
        path
        for path in sorted(ROOT.rglob("*"))
        if path.is_file()
        and not any(part in LEFT_OUT or part.endswith("_cache") for part in path.parts)
        and not path.is_relative_to(ROOT / "bench" / "data")
        and not path.is_relative_to(ROOT / ".hypothesis")
        and (not endings or path.suffix in endings)
    )


@cache
def pages() -> tuple[Path, ...]:
    """Give the pages that people read: those of the root and of docs."""
    return tuple(p for p in files(".md") if p.parent == ROOT or p.is_relative_to(ROOT / "docs"))


def blocks(page: Path) -> list[Block]:
    """Give the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])
        for match in FENCE.finditer(text)
    ]


@cache
def tree_of(path: Path) -> ast.Module:
    """Give a file of Python taken apart; nobody changes what is given."""
    return ast.parse(path.read_text(encoding="utf-8"))


def named(path: Path) -> str:
    """Give a path as it is written in prose."""
    return str(path.relative_to(ROOT))


def docs_tool(name: str) -> ModuleType:
    """Load a script of docs/tools."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
