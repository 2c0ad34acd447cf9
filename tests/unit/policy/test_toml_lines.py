"""The locator must name the line on which a key stands, however the owner laid the file out."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secant.policy.toml_lines import line_numbers, line_of

LAID_OUT = '''# a comment with [brackets] and = signs
top.inner = 1   # "dotted"

["quoted.key".'lit"eral']
"a\\u0062" = """
[not.a.header]
x = "still text\\""""
c = \'\'\'
y = 1\'\'\'\'
[arrays]
many = [ # one
  1, "]", # two
  [2, 3],
  { deep = "}", more.deep = [
    4 ] },
]
when = 1979-05-27 07:32:00
last = 'x'
[[rows]]
a = 1
[[rows]]
a = 2
[rows.sub]
b = 3
[late.child]
z = 0
[late]
w = 0'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top", "inner"), 2),
        (("top",), 2),
        (("quoted.key", 'lit"eral'), 4),
        (("quoted.key", 'lit"eral', "ab"), 5),
        (("quoted.key", 'lit"eral', "c"), 8),
        (("arrays", "many", 0), 12),
        (("arrays", "many", 2, 1), 13),
        (("arrays", "many", 3, "deep"), 14),
        (("arrays", "many", 3, "more", "deep", 0), 15),
        (("arrays", "when"), 17),
        (("arrays", "last"), 18),
        (("rows", 0, "a"), 20),
        (("rows", 1, "a"), 22),
        (("rows", 1, "sub", "b"), 24),
        (("late", "child"), 25),
        (("late",), 27),
        (("late", "w"), 28),
    ],
)
def test_every_layout_is_found(path, line):
    tomllib.loads(LAID_OUT)  # the text is real TOML
    assert line_numbers(LAID_OUT)[path] == line


def test_text_that_looks_like_toml_is_not_a_key():
    lines = line_numbers(LAID_OUT)
    assert ("not", "a", "header") not in lines
    assert not any("x" in path or "y" in path for path in lines)


def test_a_missing_key_is_placed_at_its_nearest_parent():
    lines = line_numbers("[a]\nb = 1\n[c]\n")
    assert line_of(lines, ("a", "missing", "deeper")) == 1
    assert line_of(lines, ("a", "b", "below")) == 2
    assert line_of(lines, ("nowhere",)) is None


def test_windows_line_ends_count_once():
    assert line_numbers("a = 1\r\n\r\nb = 2\r\n")[("b",)] == 3


KEYS = st.text(alphabet="ab-_ .\"'=#[]{}\\é", min_size=1, max_size=5)
VALUES = st.recursive(
    st.one_of(
        st.integers(-9, 9).map(str),
        st.sampled_from(
            ['"x"', "'#'", '"""\n[a]\nb = 1\n"""', "'''\n='''", "1.5", "true", '"\\""']
        ),
    ),
    lambda inner: st.lists(inner, max_size=3).map(
        lambda parts: "[" + "".join(f"\n  {part}, # ]\n" for part in parts) + "]"
    ),
    max_leaves=4,
)


def _quoted(key: str) -> str:
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=4), max_size=4))
@settings(max_examples=150, deadline=None)
def test_lines_of_random_documents(document):
    text, expected = "", {}
    for table, entries in document.items():
        text += f"# [x]\n[ {_quoted(table)} ]\n"
        expected[(table,)] = text.count("\n")
        for key, value in entries.items():
            expected[(table, key)] = text.count("\n") + 1
            text += f"  {_quoted(key)} = {value} # end\n"
    tomllib.loads(text)
    found = line_numbers(text)
    assert {path: found[path] for path in expected} == expected
