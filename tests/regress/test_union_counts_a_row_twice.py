"""A peer gave a UNION the sensitivity of one side: t UNION ALL t moves by two when one row of t comes or goes."""

import duckdb
import pytest

from apart import apart
from private_shop import ROWWISE, compile_release, make_shop, open_shop
from secant.release.inspection import unnoised
from secant.release.print import look_up_keys

TWICE = "SELECT count(*) FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders) AS u"
EACH = "SELECT id, total FROM orders"
THRICE = f"SELECT count(total) FROM ({EACH} UNION ALL {EACH} UNION ALL {EACH}) AS u"
SUMMED = f"SELECT sum(total) FROM ({EACH} UNION ALL {EACH}) AS u"
WITHIN = f"WITH t AS ({EACH}) SELECT count(*) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) AS u"
APART = f"SELECT count(*) FROM ({EACH} WHERE total < 500 UNION ALL {EACH} WHERE total > 20) AS u"


def measured(directory, query):
    """Give the exact measure that would get noise, and the scale of the noise."""
    with open_shop(directory, ROWWISE) as db:
        compiled = compile_release(db, query, epsilon=1)
        shown, _ = unnoised(compiled.job, look_up_keys(compiled.job, apart(db)), apart(db))
        ((measure, noise),) = compiled.job.noise.noise.items()
        step = compiled.job.prepared.bounded[0].release.measures[0].step
        assert measure == compiled.job.prepared.bounded[0].release.measures[0].column
        return shown.rows[0][0], noise.law.scale * step


@pytest.mark.parametrize(
    ("query", "moves"), [(TWICE, 2), (THRICE, 3), (SUMMED, 200), (WITHIN, 2), (APART, 2)]
)
def test_both_sides_count(tmp_path, query, moves):
    directories = []
    for name, extra in (
        ("here", ""),
        ("there", "INSERT INTO orders VALUES (500, 1, 'open', NULL, 100, 1, 1, 'x', 1);"),
    ):
        directory = tmp_path / name
        directory.mkdir()
        make_shop(directory)
        with duckdb.connect(str(directory / "shop.duckdb")) as connection:
            connection.execute(extra)
        directories.append(directory)
    (here, scale), (there, same) = (measured(d, query) for d in directories)
    assert there - here == moves  # brute force on one neighbor
    assert scale == same == moves  # and the noise at epsilon 1 is for that much
