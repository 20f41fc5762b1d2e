"""The packages of the kernel: no cycles, layers as written, Spark's internals in one of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

KERNEL = Path(__file__).resolve().parents[1] / "kernel"
ROOT = "org.apache.spark.sql.headgate"
SHIMS = "spark"
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_PACKAGE = re.compile(r"^package ([\w.]+)", re.MULTILINE)
_OURS = re.compile(rf"\b{re.escape(ROOT)}((?:\.[a-z]\w*)+)(?=\.[A-Z{{_])")


@dataclass(frozen=True)
class Source:
    """One file: where it is, its package below ROOT, its text without comments."""

    path: str
    package: str
    text: str

    @property
    def imports(self) -> set[str]:
        """The packages of ours that the file names, but its own."""
        body = _PACKAGE.sub("", self.text, count=1)
        found = {match[1].removeprefix(".") for match in _OURS.finditer(body)}
        return found - {self.package}


@dataclass(frozen=True)
class Rules:
    """What kernel/layers.toml says."""

    layers: Sequence[Sequence[str]]
    internals: Sequence[str]
    members: Sequence[str]

    def layer(self, package: str) -> int | None:
        """The number of a package's layer, from below."""
        return next((n for n, layer in enumerate(self.layers) if package in layer), None)


def rules() -> Rules:
    """The rules as written."""
    return Rules(**tomllib.loads((KERNEL / "layers.toml").read_text("utf-8")))


def sources(folder: Path) -> list[Source]:
    """All Scala files below a folder."""
    return [_source(path, folder) for path in sorted(folder.rglob("*.scala"))]


def _source(path: Path, folder: Path) -> Source:
    text = _COMMENT.sub(" ", path.read_text("utf-8"))
    named = _PACKAGE.search(text)
    assert named, f"{path} names no package"
    package = named[1].removeprefix(ROOT).removeprefix(".")
    if "package object" in text:
        package = f"{package}.{path.parent.name}".removeprefix(".")
    return Source(str(path.relative_to(folder)), package, text)


def misplaced(found: Sequence[Source]) -> list[str]:
    """Files that do not lie in the folder of their package."""
    return [
        f"{s.path} lies in another folder than its package {s.package}"
        for s in found
        if not Path(s.path).parent.as_posix().endswith(s.package.replace(".", "/")) or not s.package
    ]


def upward(found: Sequence[Source], rule: Rules) -> list[str]:
    """Imports that do not go to a lower layer, and packages that no layer has."""
    wrong = []
    for source in found:
        own = rule.layer(source.package)
        if own is None:
            wrong.append(f"{source.path}: no layer has the package {source.package}")
            continue
        for other in sorted(source.imports):
            layer = rule.layer(other)
            if layer is None or layer >= own:
                wrong.append(
                    f"{source.path}: {source.package} imports {other}, which is not below it"
                )
    return wrong


def cycle(found: Sequence[Source]) -> list[str]:
    """The packages of one cycle, or none."""
    graph: dict[str, set[str]] = {}
    for source in found:
        graph.setdefault(source.package, set()).update(source.imports)
    for start in sorted(graph):
        path = _way_back(graph, start)
        if path:
            return path
    return []


def _way_back(graph: Mapping[str, set[str]], start: str) -> list[str]:
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for following in sorted(graph.get(way[-1], ())):
            if following == start:
                return [*way, start]
            if following not in seen:
                seen.add(following)
                ways.append([*way, following])
    return []


def touches(found: Sequence[Source], rule: Rules) -> list[str]:
    """Uses of Spark's internals outside of the package for them."""
    names = "|".join(re.escape(name) for name in rule.internals)
    members = "|".join(rule.members)
    internal = re.compile(rf"\b(?:{names})\b|\.(?:{members})\b")
    return [
        f"{source.path}: {match[0]} belongs to the package {SHIMS}"
        for source in found
        if source.package != SHIMS
        for match in internal.finditer(source.text)
    ]


def test_the_kernel_has_no_cycle_between_packages() -> None:
    assert cycle(sources(KERNEL / "src")) == []


def test_packages_import_from_lower_layers_only() -> None:
    assert upward(sources(KERNEL / "src"), rules()) == []


def test_files_lie_in_the_folders_of_their_packages() -> None:
    assert misplaced(sources(KERNEL / "src")) == []


def test_spark_internals_are_named_in_one_package() -> None:
    assert touches(sources(KERNEL / "src"), rules()) == []


def test_every_package_of_the_layers_is_there() -> None:
    there = {source.package for source in sources(KERNEL / "src")}
    assert {package for layer in rules().layers for package in layer} == there


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """Two packages that know each other, and one that reaches into Spark."""
    _write(tmp_path, "low", "Low", f"import {ROOT}.high.High")
    _write(tmp_path, "high", "High", f"import {ROOT}.low.{{\n  Low, Other}}")
    _write(
        tmp_path,
        "high",
        "Inner",
        "import org.apache.spark.sql.execution.streaming.state.StateStore",
        "def of(s: Session) = s.sessionState",
    )
    _write(tmp_path, "spark", "Shim", "import org.apache.spark.sql.internal.SQLConf")
    return tmp_path


def _write(folder: Path, package: str, name: str, *lines: str) -> None:
    path = folder / ROOT.replace(".", "/") / package / f"{name}.scala"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = [f"package {ROOT}.{package}", f"// import {ROOT}.nowhere.Nothing", *lines]
    path.write_text("\n".join(text), "utf-8")


MADE_UP = Rules(
    [["spark"], ["low"], ["high"]],
    ["org.apache.spark.sql.execution.streaming", "org.apache.spark.sql.internal"],
    ["sessionState"],
)


def test_a_cycle_is_found(made_up: Path) -> None:
    assert cycle(sources(made_up)) == ["high", "low", "high"]


def test_an_import_from_above_is_found(made_up: Path) -> None:
    [wrong] = upward(sources(made_up), MADE_UP)
    assert wrong.endswith("low imports high, which is not below it")


def test_a_package_without_a_layer_is_found(made_up: Path) -> None:
    _write(made_up, "new", "New", "object New")
    [_, wrong] = upward(sources(made_up), MADE_UP)
    assert wrong.endswith("no layer has the package new")


def test_a_touch_of_internals_is_found(made_up: Path) -> None:
    found = touches(sources(made_up), MADE_UP)
    assert [what.split(": ")[1].split()[0] for what in found] == [
        "org.apache.spark.sql.execution.streaming",
        ".sessionState",
    ]


def test_a_file_in_another_folder_is_found(made_up: Path) -> None:
    path = made_up / ROOT.replace(".", "/") / "low" / "Lost.scala"
    path.write_text(f"package {ROOT}.high\n", "utf-8")
    [wrong] = misplaced(sources(made_up))
    assert "Lost.scala lies in another folder" in wrong
