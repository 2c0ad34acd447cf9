"""Names and texts as Spark writes them, in a statement that is written as SQL's standard says.

In: a statement with "names" and 'texts', in which a quote inside is doubled. Out: the same with `names`, and with
backslashes kept from meaning anything. Only quoted parts change.
"""

from __future__ import annotations

import re

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


def in_spark_syntax(statement: str) -> str:
    r"""Give a statement in Spark's spelling.

    >>> print(in_spark_syntax('SELECT "a`b" FROM "t" WHERE "c" = \'it\'\'s \\ "x"\''))
    SELECT `a``b` FROM `t` WHERE `c` = 'it\'s \\ "x"'
    """
    return _QUOTED.sub(_quoted, statement)


def _quoted(match: re.Match[str]) -> str:
    mark, inside = match[0][0], match[0][1:-1]
    if mark == '"':
        return "`" + inside.replace('""', '"').replace("`", "``") + "`"
    return "'" + inside.replace("''", "'").replace("\\", "\\\\").replace("'", "\\'") + "'"
