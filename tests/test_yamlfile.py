"""YAML files: scalars of the core schema, positions, and files made to hurt."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlhealth.yamlfile.binding import plain
from crawlhealth.yamlfile.document import MAX_BYTES, MAX_PROBLEMS, Document, path_text
from crawlhealth.yamlfile.tree import Scalar, Unreadable, tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("on", "on", id="on is a text"),
        pytest.param("yes", "yes", id="yes is a text"),
        pytest.param("True", True, id="True is true"),
        pytest.param("010", 10, id="a leading zero is not octal"),
        pytest.param("0o17", "0o17", id="octal is a text"),
        pytest.param("0x1F", 31, id="hexadecimal is a number"),
        pytest.param("1:30", "1:30", id="a clock time is a text"),
        pytest.param("1_000", "1_000", id="an underscore makes a text"),
        pytest.param("1e3", 1000.0, id="an exponent makes a float"),
        pytest.param(".5", 0.5, id="a float may begin with its point"),
        pytest.param("-.inf", float("-inf"), id="infinity"),
        pytest.param("2026-11-30", "2026-11-30", id="a date is a text"),
        pytest.param("~", None, id="a tilde is nothing"),
        pytest.param('"5"', "5", id="quotes make a text"),
        pytest.param("9" * 5000, "9" * 5000, id="a number beyond reason stays a text"),
    ],
)
def test_scalar(text: str, value: object) -> None:
    node = tree(f"a: {text}", lambda *_: None)
    assert plain(node) == {"a": value}


def problems(tmp_path: Path, content: bytes) -> list[str]:
    file = tmp_path / "x.yml"
    file.write_bytes(content)
    return [str(problem).removeprefix(f"{tmp_path}/") for problem in Document.read(file).problems]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "x.yml:1:1: is empty", id="an empty file"),
        pytest.param(b"# only a comment\n", "x.yml:1:1: is empty", id="a file of comments"),
        pytest.param(b"a: 1\nb: \xff\n", "x.yml:2:4: is not UTF-8 text here: save the file as UTF-8", id="not UTF-8"),
        pytest.param(
            "a: 1".encode("utf-16"), "x.yml:1:1: is not UTF-8 text here: save the file as UTF-8", id="UTF-16"
        ),
        pytest.param(
            b"a: 1\nb: x\0y\n", "x.yml:2:5: has a control character (U+0000) here: remove it", id="a NUL byte"
        ),
        pytest.param(
            b"a: 1\na: 2\n", "x.yml:2:1: the key 'a' stands twice (first on line 1): keep one", id="a key twice"
        ),
        pytest.param(b"? [a]\n: 1\n", "x.yml:1:3: a key must be a plain text", id="a list as key"),
        pytest.param(b"a: !!python/object:os.system x\n",
            "x.yml:1:4: the tag 'tag:yaml.org,2002:python/object:os.system' is not used here: leave it out",
            id="a tag that would run code",
        ),
        pytest.param(
            b"a: &x [*x]\n", "x.yml:1:8: the alias *x has no finished anchor before it", id="an alias of itself"
        ),
        pytest.param(
            b"a: 1\n---\nb: 2\n", "x.yml:2:1: a second document starts here: one file holds one document",
            id="two documents",
        ),
        pytest.param(
            b"[" * 500, "x.yml:1:41: is nested more than 40 deep: write it flatter", id="five hundred brackets"
        ),
        pytest.param(
            b"a:\n" + b"".join(b" " * (level + 1) + b"a:\n" for level in range(60)) + b" " * 70 + b"x\n",
            "x.yml:41:41: is nested more than 40 deep: write it flatter", id="deep blocks",
        ),
        pytest.param(
            b"x" * (MAX_BYTES + 1), f"x.yml:1:1: is larger than {MAX_BYTES} bytes: split it into several files",
            id="a large file",
        ),
    ],
)  # fmt: skip
def test_problem(tmp_path: Path, content: bytes, said: str) -> None:
    assert problems(tmp_path, content) == [said]


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        pytest.param(b"a:\n\t- b\n", "indent with spaces, not tabs", id="a tab"),
        pytest.param(b"a: b: c\n", "needs quotes", id="a colon in a text"),
        pytest.param(b'a: "b\n', "close the quotes", id="an open quote"),
        pytest.param(b"a: [b\nc: d\n", "close the bracket", id="an open bracket"),
        pytest.param(b"[" * 100_000, "write it flatter", id="a hundred thousand brackets"),
    ],
)
def test_what_is_not_yaml_says_what_to_do(tmp_path: Path, content: bytes, remedy: str) -> None:
    (said,) = problems(tmp_path, content)
    assert "is not YAML" in said
    assert remedy in said


def test_an_alias_bomb_is_counted_not_expanded(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    began = time.perf_counter()
    (said,) = problems(tmp_path, "\n".join(lines).encode())
    assert said.startswith("x.yml:6:")
    assert "aliases counted" in said
    assert time.perf_counter() - began < 2


def test_ten_megabytes_of_values_end_soon(tmp_path: Path) -> None:
    began = time.perf_counter()
    assert len(problems(tmp_path, b"- a\n" * 1_200_000)) == 1
    assert len(problems(tmp_path, b"a\n" * 5_000_000)) == 1
    assert time.perf_counter() - began < 30


def test_problems_are_bounded(tmp_path: Path) -> None:
    said = problems(tmp_path, b"a: 1\n" * 5000)
    assert len(said) == MAX_PROBLEMS + 1
    assert said[-1].endswith("there are more problems in this file: mend these first")


def test_what_is_not_a_file_is_said(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    said = [Document.read(path).problems[0].message for path in (tmp_path / "none.yml", tmp_path, pipe)]
    assert said == ["there is no such file", *["is not a file: name a YAML file"] * 2]


def test_positions_are_those_of_keys_and_values(tmp_path: Path) -> None:
    file = tmp_path / "x.yml"
    file.write_text("canaries:\n  - name: a\n    url: http://x/\n", encoding="utf-8")
    document = Document.read(file)
    steps = ("canaries", 0, "url")
    places = [document.find(steps), document.find(steps, key=True), document.find((*steps, "gone")), document.find(())]
    assert [(place.line, place.column) for place in places] == [(3, 10), (3, 5), (3, 10), (1, 1)]


def test_a_path_reads_as_people_write_it() -> None:
    assert path_text(("canaries", 3, "expect", "a b", "css")) == "canaries[3].expect['a b'].css"


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@,?\n\t 0.", max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        node = tree(text, lambda *_: None)
    except Unreadable as error:
        place = (error.line, error.column)
    else:
        plain(node)
        place = (node.line, node.column)
    assert min(place) >= 1


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**17), 10**17))
def test_numbers_read_back(value: float) -> None:
    assert Scalar(line=1, column=1, text=repr(value), plain=True).value == value
