"""An answer to softened filters has no ends, for nothing says how far they lead; how far noise leads is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import secant
from secant.errors import Refused

POLICY = {
    "protections": {
        "values": {"kind": "cells", "epsilon": 100, "delta": 1e-6, "distance": {"t": "l1(x)"}}
    },
    "tables": {"t": {"key": ["id"], "columns": {"x": {"range": [0, 100]}}}},
}


@pytest.mark.parametrize(
    "text", ["SELECT count(*) AS n FROM t WHERE x < 30", "SELECT sum(x) AS s FROM t WHERE x < 30"]
)
def test_noise_stands_beside_what_was_softened(text):
    frame = pd.DataFrame({"id": range(300), "x": np.linspace(0, 100, 300)})
    with secant.connect({"t": frame}, policy=POLICY, ledger=":memory:") as db:
        answer = db.sql(text, epsilon=1)
        ((noise,),) = answer.error["noise"]
        assert noise > 0
        assert (answer.low, answer.high) == ([(None,)], [(None,)])
        assert "noise ±" in str(answer)
        assert "±?" not in str(answer)
        # An error that is asked for is one of the answer, and that is not known.
        with pytest.raises(Refused):
            db.sql(text, epsilon=1, max_error=10**6)
