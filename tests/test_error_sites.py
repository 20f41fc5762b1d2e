"""Every place that makes an error: it has a code, says what must hold and came, and what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import headgate
from headgate.cli.main import invoke
from headgate.failures import Reason
from headgate.failures.codes import CODES, DOCS, code_named, code_names, where_explained

SOURCE = Path(headgate.__file__).parent
PAGES = Path(__file__).parents[1] / "docs"
ROOT = "HeadgateError"
# What a sentence says that must hold, where no single value is to blame.
HOLDS = re.compile(
    r"\b(must|needs?|exclude|cannot|only|is for|is set by|has no|have none|keeps|takes|is empty"
    r"|without copies|no malformed records|does not travel|does not parse|can have|means|no row)\b"
)
ITS_OWN_REMEDY = {
    "DamagedError": "each is about a file, and the class says what to do about files",
    "HomeUnseenError": "made from a coded failure, whose reason has the remedy",
}
NO_VALUE = {
    "the job's watermark is Headgate's": "what came is the call, which the sentence names",
    "the driver is not open": "a driver of tests: its state is what is wrong",
    "the job has not run yet": "the same",
    "there was nothing to process, so nothing crashed": "the same",
}


@dataclass(frozen=True)
class Site:
    """A call that makes an error."""

    file: str
    line: int
    kind: str
    call: ast.Call

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}"

    @property
    def fields(self) -> dict[str | None, ast.expr]:
        return {keyword.arg: keyword.value for keyword in self.call.keywords}

    @property
    def text(self) -> str:
        """The words of its sentence, without what is put into them."""
        said = [n.value for n in ast.walk(self.message) if isinstance(n, ast.Constant)]
        return "".join(part for part in said if isinstance(part, str))

    @property
    def message(self) -> ast.expr:
        return self.call.args[0]

    @property
    def has_value(self) -> bool:
        """Whether the sentence names something that came."""
        made = (ast.FormattedValue, ast.Name, ast.Call, ast.Attribute)
        return any(isinstance(node, made) for node in ast.walk(self.message))


@cache
def _trees() -> dict[str, ast.Module]:
    return {
        file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
        for file in sorted(SOURCE.rglob("*.py"))
    }


@cache
def classes() -> dict[str, ast.ClassDef]:
    """Every class of errors by its name."""
    found: dict[str, ast.ClassDef] = {}
    every = [n for t in _trees().values() for n in ast.walk(t) if isinstance(n, ast.ClassDef)]
    while more := [
        one
        for one in every
        if one.name not in found
        and (one.name == ROOT or any(getattr(b, "id", "") in found for b in one.bases))
    ]:
        found |= {one.name: one for one in more}
    return found


@cache
def sites() -> tuple[Site, ...]:
    return tuple(
        Site(file, node.lineno, node.func.id, node)
        for file, tree in _trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in classes()
    )


def of(*kinds: str) -> Iterator[Site]:
    return (site for site in sites() if site.kind in kinds)


def _code_of(name: str) -> str | None:
    """The code in the body of a class, else that of its first base."""
    for line in classes()[name].body:
        if isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") == "code":
            assert isinstance(line.value, ast.Constant)
            return str(line.value.value)
    return next(
        (
            _code_of(b.id)
            for b in classes()[name].bases
            if isinstance(b, ast.Name) and b.id in classes()
        ),
        None,
    )


def test_the_walk_finds_the_sites() -> None:
    kinds = {site.kind for site in sites()}
    assert len(sites()) > 500
    assert {ROOT, "UsageError", "GraphError", "RefusedError", "StorageError", "JarError"} <= kinds


@pytest.mark.parametrize("name", sorted(classes()))
def test_every_class_of_errors_has_a_code_that_is_explained(name: str) -> None:
    code = _code_of(name)
    assert code is not None and code_named(code) is not None


def test_a_code_at_a_site_is_one_that_is_explained() -> None:
    given = [(site, site.fields["code"]) for site in sites() if "code" in site.fields]
    named = [(site, c.value) for site, c in given if isinstance(c, ast.Constant)]
    assert len(named) > 30
    assert [f"{site}: {code}" for site, code in named if code_named(str(code)) is None] == []
    # the others pass on the reason of a failure
    rest = {ast.unparse(c) for _, c in given if not isinstance(c, ast.Constant)}
    assert {text for text in rest if not re.search(r"reason\.name\b|\['code'\]", text)} == set()


def test_the_root_of_all_errors_is_made_with_a_code() -> None:
    assert [str(site) for site in of(ROOT) if "code" not in site.fields] == []


def test_every_error_says_what_to_do() -> None:
    lacking = [site for site in sites() if "remedy" not in site.fields]
    assert [str(site) for site in lacking if site.kind not in ITS_OWN_REMEDY] == []
    assert {site.kind for site in lacking} == set(ITS_OWN_REMEDY), "drop what is not needed"


def test_wrong_usage_says_what_must_hold_and_what_came() -> None:
    used, lacking = set(), []
    for site in of("UsageError", "GraphError"):
        if "got" in site.fields or "expected" in site.fields or site.has_value:
            continue
        if HOLDS.search(site.text):  # options that do not go together: they are all that came
            continue
        exempt = {text for text in NO_VALUE if text in site.text}
        used |= exempt
        if not exempt:
            lacking.append(f"{site}: {site.text}")
    assert lacking == []
    assert used == set(NO_VALUE), "drop what is not needed"


def test_what_came_stands_beside_what_must_hold() -> None:
    """`got` alone would leave it to the reader what is wrong with it."""
    alone = [
        f"{site}: {site.text}"
        for site in of("UsageError", "GraphError")
        if "got" in site.fields and "expected" not in site.fields
        if not isinstance(site.message, ast.Name)  # the words of a caller
        if not HOLDS.search(site.text)
    ]
    assert alone == []


def test_what_is_not_there_is_named() -> None:
    nameless = [
        f"{site}: {site.text}"
        for site in of("NotFoundError")
        if not site.has_value and site.file.partition("/")[0] not in ("ui", "runtime", "testing")
    ]
    assert nameless == []  # a page or a run is in the address or the command that asked


def test_an_error_of_a_step_names_the_step_or_its_line() -> None:
    lost = [
        str(site)
        for site in of("GraphError", "NoSuchMethodError")
        if site.file.startswith("steps/") and not {"step", "location", None} & set(site.fields)
    ]
    assert lost == []


def test_no_error_of_a_file_or_a_right_asks_for_a_report() -> None:
    asking = [
        ast.unparse(site.fields["code"])
        for site in sites()
        if re.search(r"\breport the error", ast.unparse(site.fields.get("remedy", site.call)))
    ]
    assert asking == ["'UNEXPECTED'"]
    assert [code.name for code in CODES if "report the error" in code.remedy] == ["UNEXPECTED"]
    assert [r.name for r in Reason if "report this" in r.remedy] == ["STEP_TWICE"]


def test_the_page_of_errors_has_every_code_with_its_words() -> None:
    page = (PAGES / "errors.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## ([A-Z_]+)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    assert list(sections) == [code.name for code in CODES]
    for code in CODES:
        lines = [line for line in sections[code.name].splitlines() if line]
        assert lines == [
            f"**What happened.** {code.meaning[0].upper()}{code.meaning[1:]}.",
            f"**What to do.** {code.remedy[0].upper()}{code.remedy[1:]}.",
        ]


def test_the_codes_are_each_of_one_kind() -> None:
    assert len(code_names()) == len(set(code_names()))


def test_an_error_ends_with_where_to_read_about_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["explain", "NO_SUCH_CODE"]) == 3
    assert capsys.readouterr().err.endswith(" (headgate explain NOT_FOUND)\n")
    monkeypatch.setenv(DOCS, "https://docs.example.org/headgate/")
    assert invoke(["explain", "NO_SUCH_CODE"]) == 3
    link = "https://docs.example.org/headgate/errors/#not_found"
    assert capsys.readouterr().err.endswith(f" ({link})\n")
    assert where_explained("DISK_FULL") == f"{link.partition('errors')[0]}failures/#disk_full"
    assert where_explained("A_CODE_OF_MY_OWN") is None


def test_a_code_is_explained_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["explain", "disk_full"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("DISK_FULL\nWhat happened: a disk is full.\nMay go away:   yes")
    assert invoke(["explain"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert listed == list(code_names())
    assert invoke(["explain", "DISK_FUL"]) == 3
    assert "did you mean DISK_FULL?" in capsys.readouterr().err
