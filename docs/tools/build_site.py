"""The documentation as a site: `make docs`, or `python docs/tools/build_site.py [FOLDER]`. Needs no network.

The pages are written for a reader of the repository: links lead to proofs, tests and root documents beside the code. Here
everything that a page leads to is staged as a page or a file of the site, links are turned accordingly, the two pages that
are made of the code get their entries, Sphinx builds with warnings as errors, and every link of every built page is
followed once more.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

DOCS = Path(__file__).parents[1].resolve()
ROOT = DOCS.parent
LINK = re.compile(r"(\]\()([^)#\s]*)(#[^)\s]*)?(\))")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
MADE = {DOCS / "reference" / "python.md": "python", DOCS / "reference" / "rules.md": "rules"}
"""Pages of which the repository keeps the beginning, and the module beside this one that gives the whole."""
ELSEWHERE = ("http://", "https://", "mailto:")


def place_of(path: Path) -> Path:
    """Say where in the site a file of the repository is: pages by their folder, proofs by their analysis."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    inside = path.relative_to(ROOT)
    if path.name == "PROOFS.md":
        return Path("proofs", "-".join(inside.parts[2:-1]) + ".md")
    if path.suffix == ".md" and len(inside.parts) == 1:
        return Path("project", f"{path.stem.lower()}.md")
    return Path("files") / inside


def stage(folder: Path) -> list[Path]:
    """Copy every page, and whatever pages lead to, with its links turned; give the pages."""
    first = [p for p in DOCS.rglob("*.md") if "site" not in p.relative_to(DOCS).parts]
    waiting, done = list(first), set()
    while waiting:
        source = waiting.pop().resolve()
        if source in done:
            continue
        done.add(source)
        target = folder / place_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copyfile(source, target)
            continue
        target.write_text(_turned(source, waiting), encoding="utf-8")
    pages = sorted(place_of(path) for path in done if path.suffix == ".md")
    index = folder / "index.md"
    text = index.read_text(encoding="utf-8")
    index.write_text(f"{text}\n{navigation(text, pages)}", encoding="utf-8")
    return pages


def text_of(page: Path) -> str:
    """Give the text of a page, with what is made of the code."""
    if page not in MADE:
        return page.read_text(encoding="utf-8")
    spec = importlib.util.spec_from_file_location(
        MADE[page], Path(__file__).with_name(f"{MADE[page]}.py")
    )
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    return str(maker.page())


def _turned(page: Path, waiting: list[Path]) -> str:
    """Give a page with links to where things are in the site; what it leads to is staged next."""
    here = place_of(page).parent

    def turn(link: re.Match[str]) -> str:
        before, target, anchor, after = link[1], link[2], link[3] or "", link[4]
        if not target or target.startswith(ELSEWHERE):
            return link[0]
        found = (page.parent / target).resolve()
        if not found.is_file():
            raise SystemExit(f"{page.relative_to(ROOT)} links to {target}, which is no file")
        waiting.append(found)
        up = [".."] * len(here.parts)
        return before + "/".join([*up, place_of(found).as_posix()]) + anchor + after

    parts = FENCED.split(text_of(page))
    return "".join(p if p.startswith("```") else LINK.sub(turn, p) for p in parts)


def navigation(index: str, pages: list[Path]) -> str:
    """Give the trees beside the pages: the sections of the index in its order, then proofs and the project's pages."""
    trees, listed = [], {Path("index.md")}
    for section in re.split(r"^## ", index, flags=re.MULTILINE)[1:]:
        title, _, rest = section.partition("\n")
        linked = [Path(link[2]) for link in LINK.finditer(rest) if Path(link[2]) in pages]
        fresh = [path for path in dict.fromkeys(linked) if path not in listed]
        listed.update(fresh)
        trees.append(_tree(title, fresh))
    for title, folder in (("Proofs", "proofs"), ("Project", "project")):
        trees.append(_tree(title, [p for p in pages if p.parts[0] == folder and p not in listed]))
        listed.update(p for p in pages if p.parts[0] == folder)
    left = [str(path) for path in pages if path not in listed]
    if left:
        raise SystemExit(f"the index leads to none of {', '.join(left)}")
    return "\n".join(trees)


def _tree(title: str, pages: list[Path]) -> str:
    names = "\n".join(path.with_suffix("").as_posix() for path in pages)
    return f":::{{toctree}}\n:hidden:\n:caption: {title}\n\n{names}\n:::\n"


class _Links(HTMLParser):
    """What a built page leads to, and which places it has."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect addresses and ids."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.targets.append(value)
            elif value and name == "id":
                self.places.add(value)


def dead_links(site: Path) -> list[str]:
    """Give every link of the built pages that leads nowhere, or to another machine for a part of the page."""
    read: dict[Path, _Links] = {}
    for page in site.rglob("*.html"):
        read[page] = _Links()
        read[page].feed(page.read_text(encoding="utf-8"))
    dead = []
    for page, links in read.items():
        for target in links.targets:
            path, anchor = urldefrag(target)
            if path.startswith((*ELSEWHERE, "data:", "javascript:")):
                continue
            path = path.partition("?")[0]
            found = (page.parent / unquote(path)).resolve() if path else page
            found = found / "index.html" if found.is_dir() else found
            if not found.exists() or (
                anchor and found in read and unquote(anchor) not in read[found].places
            ):
                dead.append(f"{page.relative_to(site)}: {target}")
    return dead


def build(folder: Path) -> Path:
    """Build the site; give the folder of its pages."""
    staged, site = folder / "staged", folder / "site"
    for old in (staged, site):
        shutil.rmtree(old, ignore_errors=True)
    stage(staged)
    shutil.copyfile(DOCS / "site" / "conf.py", staged / "conf.py")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*command, str(staged), str(site)], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    dead = dead_links(site)
    if dead:
        raise SystemExit("dead links:\n" + "\n".join(dead))
    return site


if __name__ == "__main__":
    built = build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "docs").resolve())
    print(f"{sum(1 for _ in built.rglob('*.html'))} pages: {built / 'index.html'}")
