"""Refuse words in an order that a parser would be lost in, before it meets them.

In: the tokens of a question. Out: nothing, or SQL-007. The parser recurses where a query nests, and begins anew where a
JOIN has no condition, each time with all that follows: thirty words would keep it for hours. One that is compiled has
no limit of Python's beneath it, and would take the whole process along. Words are counted, not understood, so a few
long questions are refused that a parser would get through. Never here: what a query means.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from secant.errors import SqlError
from secant.sql.limits import MAX_DEPTH, too_deep, too_large

MAX_UNCONDITIONED = 12
"""JOINs without ON or USING: each doubles the work of the parser."""
MAX_NESTED = 2 * MAX_DEPTH
"""Results of calls and brackets of which a part is taken: a chain of them costs the parser its square."""

_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_PARTS = frozenset({TokenType.L_BRACKET, TokenType.DOT})
_OPERANDS = frozenset({
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.COMMA, TokenType.SEMICOLON,
    TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.PLACEHOLDER, *_CLOSING,
})  # fmt: skip
"""What ends a row of words of which each may open a level of its own: NOT, minus, CASE, FROM, DESCRIBE, ARRAY <."""


def check_shape(tokens: Sequence[Token]) -> None:
    """Return if a parser can be let loose on these words; refuse otherwise."""
    waiting = [0]
    """For each open bracket, how many JOINs wait for their conditions."""
    cases = row = types = apart = unconditioned = 0
    free = False  # whether the next JOIN takes no condition
    before: TokenType | None = None
    for word in tokens:
        kind = word.token_type
        row = 0 if kind in _OPERANDS else row + 1
        if kind in _OPENING:
            waiting.append(0)
        elif kind in _CLOSING:
            unconditioned += waiting.pop() if len(waiting) > 1 else 0
        elif kind in (TokenType.CROSS, TokenType.NATURAL):
            free = True
        elif kind == TokenType.JOIN:
            waiting[-1] += not free
            free = False
        elif kind in (TokenType.ON, TokenType.USING):
            waiting[-1] -= waiting[-1] > 0
        elif kind == TokenType.SELECT:  # a condition behind it belongs to no JOIN before it
            unconditioned += waiting[-1]
            waiting[-1] = 0
        elif kind == TokenType.CASE:
            cases += 1
        elif kind == TokenType.END:
            cases -= cases > 0
        elif kind == TokenType.LT:
            types += before is not None and before not in _OPERANDS
        apart += kind in _PARTS and before in _CLOSING
        before = kind
        if max(len(waiting) - 1 + cases, row, types) > MAX_DEPTH:
            raise too_deep()
        if apart > MAX_NESTED:
            raise too_large()
    if unconditioned + sum(waiting) > MAX_UNCONDITIONED:
        raise SqlError(
            "SQL-007",
            f"more than {MAX_UNCONDITIONED} joins have no condition",
            hint="write ON or USING behind each JOIN, or CROSS JOIN",
        )
