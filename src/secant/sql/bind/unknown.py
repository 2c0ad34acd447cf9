"""Functions that are not accepted: named as they were written, with the reason, or with the nearest accepted name.

In: a syntax node and the user's text. Out: words. Never here: what a function means.
"""

from __future__ import annotations

import difflib
from functools import cache

from sqlglot import exp

from secant.plan.functions.scalar import AGGREGATES, FUNCTIONS
from secant.sql.parse import function_name

_SINGLE = "it shows values of single rows, which no noise can hide"
_COUNT = "count or sum instead, or list groups with their numbers: SELECT x, count(*) … GROUP BY x"
_ONE = "min(x), max(x), median(x) or mode(x) say something of a group"
_TOP = "SELECT x, count(*) AS n … GROUP BY x ORDER BY n DESC LIMIT k gives the most frequent values; mode(x) the first"
_LISTS = (
    "string_agg", "group_concat", "listagg", "array_agg", "list", "json_agg", "jsonb_agg", "histogram",
    "json_group_array", "json_object_agg",
)  # fmt: skip
_PICKS = ("any_value", "arbitrary", "first", "last", "arg_min", "arg_max", "min_by", "max_by")
_UNBOUNDED = (
    "skewness", "kurtosis", "kurtosis_pop", "entropy", "mad", "geomean", "geometric_mean", "favg", "fsum", "bit_and",
    "bit_or", "bit_xor",
)  # fmt: skip
REASONS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(_LISTS, (_SINGLE, _COUNT)),
    **dict.fromkeys(_PICKS, (_SINGLE, _ONE)),
    **dict.fromkeys(("approx_top_k", "topk"), ("its value is a list", _TOP)),
    **dict.fromkeys(
        _UNBOUNDED,
        ("nothing bounds it yet", "use count, sum, avg, variance, stddev, corr, median or mode"),
    ),
    **dict.fromkeys(
        ("generate_series", "range"),
        ("lists are not values here", "join a table, or write VALUES"),
    ),
    "unnest": ("it stands in FROM only", "write FROM t, unnest(t.array) AS a(x)"),
    "hash": ("its numbers are the engine's own", "use md5(text)"),
    "age": (
        "an age has no fixed length in days",
        "use extract(year FROM age(end, start)) or date_diff('day', start, end)",
    ),
}
"""Name -> why it is refused, and what to write instead."""


@cache
def accepted_names() -> tuple[str, ...]:
    """Give every name of a function that a query may call, as users write them."""
    from secant.sql.bind.calls import NAMED
    from secant.sql.bind.expressions import AGGREGATES as MADE
    from secant.sql.bind.expressions import NAMED_AGGREGATES

    named = {f.name for f in FUNCTIONS.values() if f.written} - {
        "concat_op",
        "bitwise_and",
        "bitwise_or",
    }
    calls = {a.name for a in AGGREGATES.values() if a.written} | {*MADE.values()}
    other = {*NAMED, *NAMED_AGGREGATES, *OTHER_NAMES}
    return tuple(sorted(named | calls | other))


OTHER_NAMES = (
    "concat", "date_part", "epoch", "year", "quarter", "month", "day", "hour", "minute", "second", "dayofweek",
    "dayofyear", "radians", "degrees", "week", "isodow", "dayname", "monthname", "last_day", "date",
    "to_char", "pi", "if", "ifnull", "len", "time_bucket",
    "char_length", "substr", "ceiling", "pow", "mod", "instr", "position", "regexp_full_match", "regexp_like",
    "variance", "stddev", "quantile", "percentile_cont", "percentile_disc", "approx_quantile", "date_add", "datediff",
)  # fmt: skip
"""Names for functions and forms of the list that have another name there."""


def unknown_function(tree: exp.Expression, text: str) -> tuple[str, str]:
    """Give a message and a hint for a function that is not accepted."""
    nulls = isinstance(tree, (exp.IgnoreNulls, exp.RespectNulls))
    name = function_name(tree.this if nulls else tree, text)
    if name.lower() in REASONS:
        reason, hint = REASONS[name.lower()]
        return f"{name} is not accepted: {reason}", hint
    near = difflib.get_close_matches(name.lower(), accepted_names(), n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}? " if near and near[0] != name.lower() else ""
    return (
        f"the function {name} is not accepted",
        f"{hint}docs/reference/sql-accepted.md lists what is accepted",
    )
