"""What each piece of syntax may carry, and the refusal of everything else.

In: a syntax node. Out: nothing, or an error. Never here: meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from secant.sql.bind.expressions import ScalarBinder

# The parser keeps growing: an argument that no rule reads would be lost
# silently, and with it the meaning (NOT LIKE is LIKE with `negate`). Everything else is refused.
CARRIES: dict[type[exp.Expression], frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in (
        (exp.Column, "this table db catalog"), (exp.Paren, "this"), (exp.Literal, "this is_string"),
        (exp.Boolean, "this"), (exp.Null, ""), (exp.Div, "this expression typed safe"),
        (exp.Like, "this expression negate"), (exp.ILike, "this expression negate"),
        (exp.Is, "this expression negate"), (exp.Between, "this low high"),
        (exp.In, "this expressions query"), (exp.Exists, "this"), (exp.Case, "this ifs default"),
        (exp.If, "this true false"), (exp.Cast, "this to"), (exp.TryCast, "this to safe"),
        (exp.Interval, "this unit"), (exp.DateAdd, "this expression unit"),
        (exp.DateSub, "this expression unit"), (exp.TimestampTrunc, "this unit input_type_preserved"),
        (exp.DateTrunc, "this unit input_type_preserved"),
        (exp.DateDiff, "this expression unit date_part_boundary big_int"), (exp.Trim, "this position expression"),
        (exp.RegexpReplace, "this expression replacement modifiers single_replace"), (exp.SHA2, "this length"),
        (exp.RegexpExtract, "this expression group null_if_pos_overflow"), (exp.ConcatWs, "expressions safe coalesce"),
        (exp.SplitPart, "this delimiter part_index"), (exp.StrPosition, "this substr"), (exp.MD5, "this"),
        (exp.Pad, "this expression fill_pattern is_left"), (exp.Repeat, "this times"), (exp.Translate, "this from_ to"),
        (exp.ToChar, "this format"),
        (exp.DateFromParts, "year month day"), (exp.WidthBucket, "this min_value max_value num_buckets"),
        (exp.TimeToStr, "this format"),
        (exp.Round, "this decimals"), (exp.Least, "this expressions ignore_nulls"),
        (exp.Greatest, "this expressions ignore_nulls"), (exp.Coalesce, "this expressions"),
        (exp.Substring, "this start length"), (exp.DPipe, "this expression safe"),
        (exp.Replace, "this expression replacement"), (exp.Subquery, "this"),
        (exp.Select, "with_ expressions distinct from_ joins where group having qualify windows order limit offset"),
        (exp.Union, "this expression distinct with_ order limit offset"),
        (exp.Intersect, "this expression distinct with_ order limit offset"),
        (exp.Except, "this expression distinct with_ order limit offset"),
        (exp.Table, "this db catalog alias joins"), (exp.Join, "this on side kind using method"),
        (exp.Values, "expressions alias"), (exp.With, "expressions"), (exp.CTE, "this alias materialized"),
        (exp.TableAlias, "this columns"), (exp.Ordered, "this desc nulls_first"),
        (exp.Limit, "expression"), (exp.Offset, "expression"), (exp.Group, "expressions all"),
        (exp.Distinct, "expressions on"), (exp.Star, ""), (exp.Count, "this big_int"),
        (exp.Quantile, "this quantile"), (exp.ApproxQuantile, "this quantile"), (exp.Order, "expressions"),
        (exp.Anonymous, "this expressions"), (exp.Concat, "expressions safe coalesce"),
        (exp.Fetch, "direction count limit_options"), (exp.Rollup, "expressions"), (exp.Cube, "expressions"),
        (exp.GroupingSets, "expressions"), (exp.Tuple, "expressions"), (exp.Grouping, "expressions"),
        (exp.GroupingId, "expressions"), (exp.Window, "this partition_by order spec alias over first"),
        (exp.WindowSpec, "kind start start_side end end_side"), (exp.RowNumber, ""), (exp.Rank, "expressions"),
        (exp.DenseRank, "expressions"), (exp.PercentRank, "expressions"), (exp.CumeDist, "expressions"),
        (exp.Ntile, "this"), (exp.Lag, "this offset default"), (exp.Lead, "this offset default"),
        (exp.FirstValue, "this"), (exp.LastValue, "this"), (exp.NthValue, "this offset"),
    )
}  # fmt: skip
_TWO_SIDES = frozenset({"this", "expression"})
_EMPTY: tuple[Any, ...] = (None, False, "", [])


def check_carried(b: ScalarBinder, tree: exp.Expression) -> None:
    """Refuse syntax that carries anything its rule does not read."""
    carried = CARRIES.get(type(tree), _TWO_SIDES)
    for name, value in tree.args.items():
        if name not in carried and not any(value is e or value == e for e in _EMPTY):
            raise b.refuse(tree, f"this form of {b.word(tree)} is not accepted")
