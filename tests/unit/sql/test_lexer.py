"""Tokens of SQL text: what is quoted stays whole, comments vanish, statements are split at semicolons only."""

from hypothesis import given
from hypothesis import strategies as st

from secant.sql.lexer import statements, tokens


def kinds(text):
    return [(token.kind, token.text) for token in tokens(text)]


def test_each_kind():
    assert kinds("""SELECT a."B""c", 'it''s', E'a\\'b', 1.5e3, $1, :x, ?, y::int -- no""") == [
        ("word", "SELECT"), ("word", "a"), ("sign", "."), ("name", '"B""c"'), ("sign", ","),
        ("string", "'it''s'"), ("sign", ","), ("string", "E'a\\'b'"), ("sign", ","),
        ("number", "1.5e3"), ("sign", ","), ("placeholder", "$1"), ("sign", ","),
        ("placeholder", ":x"), ("sign", ","), ("placeholder", "?"), ("sign", ","), ("word", "y"),
        ("sign", "::"), ("word", "int"),
    ]  # fmt: skip


def test_dollar_quotes_and_nested_comments():
    assert kinds("$$ a; 'b $$ $t$ $$ $t$ x /* a /* b; */ c */ y") == [
        ("string", "$$ a; 'b $$"),
        ("string", "$t$ $$ $t$"),
        ("word", "x"),
        ("word", "y"),
    ]


def test_what_is_not_closed_is_broken():
    for text in ("'abc", '"abc', "$$ abc", "$x$ abc $$", "/* abc", "/* /* */"):
        assert [t.kind for t in tokens(text)] == ["broken"], text


def test_names():
    assert [t.name for t in tokens('Visits "Visits" "a""b" 1')] == ["visits", "Visits", 'a"b', ""]


def test_statements():
    split = statements("BEGIN; SELECT ';' AS \";\"; ; COMMIT;")
    assert [" ".join(t.text for t in part) for part in split] == [
        "BEGIN",
        "SELECT ';' AS \";\"",
        "COMMIT",
    ]
    assert statements(" ; -- nothing\n;") == []


@given(st.text(alphabet="ab1'\"$;:?-*/\\E.\n ", max_size=60))
def test_every_text_has_tokens_in_order_that_are_its_own(text):
    place = 0
    for token in tokens(text):
        assert token.start >= place
        assert text[token.start : token.end] == token.text
        place = token.end
