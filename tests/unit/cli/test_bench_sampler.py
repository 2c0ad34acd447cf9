"""`secant bench sampler`: figures by number, the paper's numbers beside ours, pictures beside the data."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from bench.suites import sampler

from secant.errors import UsageError


def test_figures_are_drawn_and_told(run, tmp_path):
    target = tmp_path / "found.json"
    words = ("bench", "sampler", "--queries", "1,2,8", "--data", str(tmp_path))
    status, out, _ = run(*words, "--json", str(target))
    assert status == 0
    rows = json.loads(target.read_text())["queries"]
    (least,) = [row for row in rows if row["what"] == "gamma_0.05"]
    assert (least["paper"], least["ours"]) == (1305, 19)
    assert "1305" in out
    # The best rho lies on the lower branch; the upper one gives none that is below one half.
    told = {row["what"]: row.get("value") for row in rows}
    assert 0 < told["rho_by_lower_branch"] < 0.05
    assert told["rho_by_upper_branch_is_not_below_one_half"] > 0.5
    # What is read off covers the share that was asked for: the order statistics are not too small.
    (covered,) = [row for row in rows if row["what"] == "true_share_covered"]
    assert covered["ours"] <= covered["paper"]
    assert covered["exact"] == 0.75
    for number in (1, 2, 8):
        text = (tmp_path / "sampler" / f"sampler-{number}.svg").read_text(encoding="utf-8")
        assert ElementTree.fromstring(text).tag.endswith("svg")


def test_numbers_stand_beside_each_other():
    found = {
        "paper_m_9": 2,
        "ours_m_9": 1,
        "estimate_over_exact": {"product": 3},
        "sampled_over_global": {"ours, γ = 0.3": {"1": 4}},
        "sensitivity": {"global": 5},
    }
    rows = sampler.rows_of("figure", found, 0.0)
    told = [{k: v for k, v in row.items() if k not in ("query", "seconds")} for row in rows]
    assert told == [
        {"what": "m_9", "paper": 2, "ours": 1},
        {"what": "estimate_over_exact product", "value": 3},
        {"what": "sampled_over_global γ = 0.3 1", "ours": 4},
        {"what": "sensitivity", "global": 5},
    ]


def test_a_figure_that_there_is_not():
    assert len(sampler.chosen_figures("")) == 9
    assert sampler.chosen_figures("8, 1") == ["figure_8_lambert_w", "figure_1_inside_the_sampler"]
    with pytest.raises(UsageError, match="no figure 10"):
        sampler.chosen_figures("1,10")
