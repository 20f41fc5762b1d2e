"""Prepare the pages of the site: `python -m tools.docs.pages FOLDER`.

The folder gets a copy of docs/ and what belongs to the site beside it: the changelog, the source
files that pages link to, every option of the command line, every metric, and llms.txt. Pages in
docs/ can so be read in the repository as they are, and mkdocs needs no plugin of ours.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tools.docs.generated import commands_page, metrics_page, with_other_names

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIG = ROOT / "mkdocs.yml"
MADE = {
    "reference/commands.md": commands_page,
    "reference/metrics.md": metrics_page,
}
"""Pages that the code itself writes."""
_NAV = re.compile(r"^ +- (?:(?P<title>[^:\n]+): )?(?P<path>[\w/.-]+\.md)$", re.M)
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
_FENCE = re.compile(r"^ *(```|~~~)")
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +\{#([\w-]+)\})? *#*$")
_CODE = {".py": "python", ".scala": "scala", ".sql": "sql", ".toml": "toml", ".ipynb": "json",
         ".yml": "yaml", ".sh": "sh"}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A page in the site's navigation."""

    title: str
    path: str


def nav() -> list[Entry]:
    """The pages of mkdocs.yml, in their order."""
    text = CONFIG.read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return [Entry((m["title"] or "").strip(), m["path"]) for m in _NAV.finditer(text)]


def prepare(target: Path) -> None:
    """Write all pages of the site into a folder, which is made anew."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target)
    shutil.copy(ROOT / "CHANGELOG.md", target / "changelog.md")
    for path, make in MADE.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(make(), encoding="utf-8")
    api = target / "reference" / "api.md"
    api.write_text(with_other_names(api.read_text(encoding="utf-8")), encoding="utf-8")
    sources: set[Path] = set()
    for page in sorted(target.rglob("*.md")):
        rewritten = _links_to_the_site(page, target, sources)
        page.write_text(rewritten, encoding="utf-8")
    for source in sorted(sources):
        _write_source(source, target)
    (target / "llms.txt").write_text(llms(target), encoding="utf-8")


def llms(target: Path) -> str:
    """The list of pages for language models: each with its first sentence."""
    lines = [
        "# Headgate",
        "",
        "> Stateful stream processing in Python on Apache Spark: jobs are graphs of named steps, "
        "every micro-batch is a checkpoint, and Kafka and Pulsar are written exactly once.",
        "",
        "## Pages",
        "",
    ]
    for entry in nav():
        text = (target / entry.path).read_text(encoding="utf-8")
        title = entry.title or _title(text)
        lines.append(f"- [{title}]({entry.path}): {_first_sentence(text)}")
    return "\n".join(lines) + "\n"


def problems(target: Path) -> list[str]:
    """Links of prepared pages that lead nowhere."""
    found = []
    anchors = {page: set(_anchors(page)) for page in target.rglob("*.md")}
    for page in sorted(anchors):
        for link in _links(page):
            path, _, anchor = link.partition("#")
            there = (page.parent / unquote(path)).resolve() if path else page.resolve()
            if not there.exists():
                found.append(f"{page.relative_to(target)}: {link} is not there")
            elif anchor and anchor not in anchors.get(there, {anchor}):
                found.append(f"{page.relative_to(target)}: {link} has no such heading")
    return found


def slug(heading: str) -> str:
    """The anchor of a heading, as Python-Markdown makes it.

    >>> slug("What comes out, and when?"), slug("`packed/events`")
    ('what-comes-out-and-when', 'packedevents')
    """
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def _links_to_the_site(page: Path, target: Path, sources: set[Path]) -> str:
    """The text of a page whose links stay in the site."""
    where = DOCS / page.relative_to(target)
    if page.name == "changelog.md" and page.parent == target:
        where = ROOT / "CHANGELOG.md"

    def moved(link: str) -> str:
        path, hash_, anchor = link.partition("#")
        there = (where.parent / unquote(path)).resolve()
        inside = _in_site(there, target, sources)
        if inside is None:
            return link
        return os.path.relpath(inside, page.parent) + hash_ + anchor

    return _with_links(page.read_text(encoding="utf-8"), moved)


def _in_site(there: Path, target: Path, sources: set[Path]) -> Path | None:
    """Where a file of the repository is in the site; None for what is not in the repository."""
    if there.is_relative_to(DOCS):
        return target / there.relative_to(DOCS)
    if not there.is_relative_to(ROOT):
        return None
    if there == ROOT / "README.md":
        return target / "index.md"
    if there == ROOT / "CHANGELOG.md":
        return target / "changelog.md"
    if there.exists():
        sources.add(there)
    name = "index.md" if there.is_dir() else ""
    path = target / "source" / there.relative_to(ROOT)
    return path / name if name else path.with_name(f"{path.name}.md")


def _write_source(source: Path, target: Path) -> None:
    sources: set[Path] = set()
    page = _in_site(source, target, sources)
    assert page is not None
    page.parent.mkdir(parents=True, exist_ok=True)
    name = source.relative_to(ROOT)
    if source.is_dir():
        files = sorted(f for f in source.iterdir() if f.is_file() and f.suffix in _CODE)
        lines = [f"# {name}", "", *(f"- [{f.name}]({f.name}.md)" for f in files)]
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for file in files:
            _write_source(file, target)
        return
    if source.suffix == ".md":
        shutil.copy(source, page)
        return
    language = _CODE.get(source.suffix, "text")
    text = source.read_text(encoding="utf-8")
    page.write_text(f"# {name}\n\n````{language}\n{text}````\n", encoding="utf-8")


def _with_links(text: str, moved: Callable[[str], str]) -> str:
    """The text with each link that is relative, and not in code, replaced."""
    lines, code = [], False
    for line in text.splitlines(keepends=True):
        if _FENCE.match(line):
            code = not code
        if not code:
            line = _LINK.sub(
                lambda m: m[0] if _is_elsewhere(m[2]) else f"{m[1]}{moved(m[2])}{m[3]}", line
            )
        lines.append(line)
    return "".join(lines)


def _is_elsewhere(link: str) -> bool:
    return link.startswith("#") or bool(re.match(r"[a-z][a-z+.-]*:", link))


def _links(page: Path) -> Iterator[str]:
    for line in _prose(page):
        for found in _LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            if not re.match(r"[a-z][a-z+.-]*:", found[2]):
                yield found[2]


def _anchors(page: Path) -> Iterator[str]:
    seen: dict[str, int] = {}
    for line in _prose(page):
        if heading := _HEADING.match(line):
            name = heading[2] or slug(heading[1])
            count = seen.get(name, 0)
            seen[name] = count + 1
            yield f"{name}_{count}" if count else name
        yield from re.findall(r'<a (?:id|name)="([^"]+)"', line)


def _prose(page: Path) -> Iterator[str]:
    code = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line):
            code = not code
        elif not code:
            yield line


def _title(text: str) -> str:
    return next((line[2:] for line in text.splitlines() if line.startswith("# ")), "")


def _first_sentence(text: str) -> str:
    """The first sentence of a page's first paragraph, without its marks."""
    for part in re.split(r"\n\s*\n", re.sub(r"```.*?```", "", text, flags=re.S)):
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(part.split()))
        if plain and not plain.startswith(("#", "|", "-", "!", "<", ":::")):
            return re.split(r"(?<=\.)\s", plain.replace("**", ""), maxsplit=1)[0]
    return ""


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    prepare(folder)
    broken = problems(folder)
    for one in broken:
        print(f"docs: {one}", file=sys.stderr)
    sys.exit(1 if broken else 0)
