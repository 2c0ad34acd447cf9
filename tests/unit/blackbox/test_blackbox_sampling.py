"""Algorithm 1: the estimate, its processes, its state file, and functions that misbehave."""

import json
import math
import os
import sys
import time

import numpy as np
import pandas as pd
import pytest

from secant.blackbox import Distribution, exponential, resample, sample_sensitivity, uniform
from secant.blackbox.sampling import PROBES
from secant.errors import UsageError

CALLS = []


def seeded(number=1):
    return np.random.default_rng(number)


def mean(records):
    return records.mean()


def counted_mean(records):
    CALLS.append(len(records))
    return records.mean()


def test_the_estimate_is_the_kth_of_m():
    found = sample_sensitivity(
        mean, exponential(1.0), n=50, gamma=0.1, workers=0, generator=seeded()
    )
    assert found.design.m == len(found.distances) == 99
    assert found.design.k == 90
    assert list(found.distances) == sorted(found.distances)
    assert found.estimate == found.distances[89]
    assert found.value >= found.estimate
    assert (found.n, found.shape, found.norm) == (50, (), "l1")
    assert "random differential privacy" in str(found)


def test_the_distances_are_those_of_neighbors():
    # the mean of 4 records moves by |a - b| / 4, which is at most 1/4 and hardly ever 0
    found = sample_sensitivity(mean, uniform(), n=4, m=300, workers=0, generator=seeded())
    assert found.distances[0] > 0
    assert 0.2 < found.distances[-1] <= 0.25
    assert np.mean(found.distances) == pytest.approx(1 / 12, rel=0.2)


def test_processes_give_what_one_process_gives():
    alone, apart = (
        sample_sensitivity(mean, uniform(), n=5, m=400, workers=w, generator=seeded(7)).distances
        for w in (0, 2)
    )
    assert alone == apart


def test_runs_differ_without_a_generator():
    first, second = (
        sample_sensitivity(mean, uniform(), n=5, m=20, workers=0).distances for _ in range(2)
    )
    assert first != second


def test_any_result_any_norm():
    def summary(frame):
        return frame.to_numpy().mean(axis=0).reshape(1, 2)

    public = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2})
    law = resample(public, name="a public table")
    for norm in ("l1", "l2", "linf"):
        found = sample_sensitivity(summary, law, n=10, gamma=0.2, norm=norm, workers=0)
        assert found.shape == (1, 2)
    curve = sample_sensitivity(
        lambda records: lambda point: float((records < point[0]).mean()),
        uniform(),
        n=10,
        gamma=0.2,
        norm="linf",
        points=np.linspace(0, 1, 5),
        workers=2,
    )
    assert curve.shape == (5,)
    assert curve.estimate == pytest.approx(0.1)
    own = sample_sensitivity(
        lambda records: frozenset(records),
        resample(list("abcde"), name="letters"),
        n=3,
        gamma=0.2,
        norm=lambda one, two: len(one ^ two),
        workers=0,
    )
    assert own.shape is None
    assert own.estimate in (1.0, 2.0)
    with pytest.raises(UsageError, match="caller's own"):
        own.bound("l1")


def limit_for(function):
    """A busy machine must not make an honest call late."""
    return 0.2 if function.__name__.startswith("endless") else 60


class LoudError(Exception):
    pass


def loud(records):
    raise LoudError(f"secret {records[0]}")


def endless(records):
    while True:
        pass


def shapeless(records):
    return np.zeros(1 + int(records[0] * 3) % 3)


def random_result(records):
    return records.mean() + np.random.default_rng().random()


def dying(records):
    os._exit(3)


def leaving(records):
    sys.exit(3)


def sometimes_nan(records):
    return math.log(records[0] - 0.02) if records[0] > 0.02 else math.nan


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (loud, "raised LoudError"),
        (endless, "took longer than 0.2 seconds"),
        (shapeless, "different shapes"),
        (random_result, "is random"),
        (dying, "ended its process"),
        (leaving, "raised SystemExit"),
        (sometimes_nan, "NaN"),
        (lambda records: None, "other than numbers"),
        (lambda records: [], "no numbers"),
    ],
)
def test_functions_that_misbehave(function, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        sample_sensitivity(
            function, uniform(), n=5, m=600, time_limit=limit_for(function), workers=2
        )
    assert caught.value.code == "USE-008"
    assert "secret" not in caught.value.render()


@pytest.mark.parametrize("function", [loud, shapeless, random_result, leaving, sometimes_nan])
def test_functions_that_misbehave_in_this_process(function):
    with pytest.raises(UsageError, match="the function") as caught:
        sample_sensitivity(function, uniform(), n=5, m=600, workers=0)
    assert caught.value.code == "USE-008"


def test_a_function_that_changes_its_argument_is_measured_rightly():
    def greedy(records):
        found = records.mean()
        records[:] = 0
        return found

    changed, unchanged = (
        sample_sensitivity(f, uniform(), n=5, m=50, workers=0, generator=seeded(3)).distances
        for f in (greedy, mean)
    )
    assert changed == unchanged


def too_few(count, generator):
    return generator.random(count - 1)


def too_many(count, generator):
    return generator.random(count + 5)


def failing(count, generator):
    raise LoudError("secret")


def no_records(count, generator):
    return 7


def endless_draw(count, generator):
    while True:
        pass


@pytest.mark.parametrize(
    ("sampler", "reason"),
    [
        (too_few, "the sampler gave too few records: 6 were asked for"),
        (failing, "the sampler raised LoudError"),
        (no_records, "the sampler gave something other than records"),
        (endless_draw, "took longer"),
    ],
)
def test_samplers_that_misbehave(sampler, reason):
    with pytest.raises(UsageError, match=reason) as caught:
        sample_sensitivity(mean, sampler, n=5, m=5, workers=1, time_limit=limit_for(sampler))
    assert caught.value.code == "USE-008"
    assert "secret" not in caught.value.render()


def test_a_sampler_may_give_more_than_is_needed():
    found = sample_sensitivity(lambda records: len(records), too_many, n=5, m=5, workers=0)
    assert found.estimate == 0


@pytest.mark.parametrize(
    "slip",
    [
        {"n": 0},
        {"n": 2.0},
        {"gamma": 0},
        {"gamma": None},
        {"gamma": 0.01, "m": 50},
        {"gamma": 1e-9},
        {"norm": "l7"},
        {"workers": -1},
        {"workers": 1.5},
        {"time_limit": 0},
        {"time_limit": math.nan},
        {"generator": 7},
        {"method": "guess"},
        {"confidence": 0.9},
        {"points": []},
    ],
)
def test_slips_are_found_before_the_first_call(slip):
    CALLS.clear()
    with pytest.raises(UsageError):
        sample_sensitivity(counted_mean, uniform(), **{"n": 5, "gamma": 0.1, "workers": 0, **slip})
    assert CALLS == []


def test_what_is_no_function():
    with pytest.raises(UsageError, match="not callable"):
        sample_sensitivity(3, uniform(), n=5, gamma=0.1)


def interrupted_after(draws):
    """Give a distribution that is cut off like by Ctrl-C after so many draws in this process."""

    def draw(count, generator):
        CALLS.append(1)
        if len(CALLS) > draws:
            raise KeyboardInterrupt
        return uniform().draw(count, generator)

    return Distribution(uniform().name, draw)


def test_a_run_that_was_cut_off_goes_on(tmp_path):
    place = tmp_path / "run.jsonl"
    options = {"n": 5, "m": 40, "workers": 0}
    CALLS.clear()
    with pytest.raises(KeyboardInterrupt):
        sample_sensitivity(mean, interrupted_after(15), **options, state=place, generator=seeded(4))
    kept = place.read_text().splitlines()
    assert len(kept) == 1 + 15
    with place.open("a") as file:
        file.write('[39, "0x1.')  # a line that was cut off in the middle
    CALLS.clear()
    whole = interrupted_after(10_000)
    found = sample_sensitivity(mean, whole, **options, state=place)
    assert (
        len(CALLS) == PROBES + 25
    )  # some are evaluated again, to see that it is the same function
    again = sample_sensitivity(mean, whole, **options, state=place)
    assert len(CALLS) == PROBES + 25 + PROBES
    fresh = sample_sensitivity(mean, whole, **options, generator=seeded(4))
    assert found.distances == again.distances == fresh.distances
    assert found.shape == again.shape == ()
    assert found.name == fresh.name


def test_a_run_over_processes_can_be_resumed(tmp_path):
    place = tmp_path / "run.jsonl"
    first = sample_sensitivity(mean, uniform(), n=5, m=60, workers=2, state=place)
    lines = place.read_text().splitlines(keepends=True)
    place.write_text("".join(lines[:30]))
    second = sample_sensitivity(mean, uniform(), n=5, m=60, workers=1, state=place)
    assert first.distances == second.distances


@pytest.mark.parametrize(
    "other",
    [
        {"n": 6},
        {"m": 61},
        {"gamma": 0.2},
        {"norm": "l2"},
        {"method": "binomial", "confidence": 0.5},
    ],
)
def test_a_state_file_of_another_run_is_refused(tmp_path, other):
    place = tmp_path / "run.jsonl"
    options = {"n": 5, "m": 60, "gamma": 0.1, "workers": 0, "state": place}
    sample_sensitivity(mean, uniform(), **options)
    before = place.read_bytes()
    with pytest.raises(UsageError, match="another run") as caught:
        sample_sensitivity(mean, uniform(), **{**options, **other})
    assert caught.value.code == "USE-009"
    assert place.read_bytes() == before
    with pytest.raises(UsageError, match="another run"):
        sample_sensitivity(mean, exponential(), **options)
    with pytest.raises(UsageError, match="another run"):
        sample_sensitivity(counted_mean, uniform(), **options)


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"a": 1}', '[99, "0x1p0", []]', '[1, "-0x1p0", []]', '[1, "inf", []]']
)
def test_a_damaged_state_file_is_refused(tmp_path, line):
    place = tmp_path / "run.jsonl"
    options = {"n": 5, "m": 60, "workers": 0, "state": place}
    sample_sensitivity(mean, uniform(), **options)
    head, *rest = place.read_text().splitlines()
    for lines in ([head, line, *rest], [line, *rest]):
        place.write_text("\n".join(lines) + "\n")
        with pytest.raises(UsageError) as caught:
            sample_sensitivity(mean, uniform(), **options)
        assert caught.value.code == "USE-009"


def test_a_state_file_that_cannot_be_used(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    with pytest.raises(UsageError, match="cannot be opened"):
        sample_sensitivity(mean, uniform(), n=5, m=9, workers=0, state=tmp_path / "no" / "file")
    place = tmp_path / "run.jsonl"
    with place.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run uses"):
            sample_sensitivity(mean, uniform(), n=5, m=9, workers=0, state=place)


def test_the_state_holds_no_record(tmp_path):
    place = tmp_path / "run.jsonl"

    def marked(count, generator):
        return [f"record-{i}" for i in range(count)]

    sample_sensitivity(len, Distribution("marked", marked), n=5, m=9, workers=0, state=place)
    assert "record-" not in place.read_text()
    assert json.loads(place.read_text().splitlines()[0])["distribution"] == "marked"


def test_children_do_not_outlive_the_run():
    import multiprocessing

    with pytest.raises(UsageError):
        sample_sensitivity(endless, uniform(), n=5, m=9, workers=2, time_limit=0.05)
    assert multiprocessing.active_children() == []
    sample_sensitivity(mean, uniform(), n=5, m=9, workers=2)
    assert multiprocessing.active_children() == []


def test_a_thread_left_behind_does_not_keep_the_run():
    import threading

    def threaded(records):
        threading.Thread(target=time.sleep, args=(600,)).start()
        return records.mean()

    assert len(sample_sensitivity(threaded, uniform(), n=5, m=3, workers=1).distances) == 3


def test_the_clock_is_for_one_call():
    def napping(records):
        time.sleep(0.02)
        return records.mean()

    # all calls together take longer than the limit with its grace, one call far less
    found = sample_sensitivity(napping, uniform(), n=5, m=50, workers=1, time_limit=1.0)
    assert len(found.distances) == 50


def test_a_bar_is_shown_when_asked_for(capsys):
    sample_sensitivity(mean, uniform(), n=5, m=9, workers=0)
    assert capsys.readouterr().err == ""
    sample_sensitivity(mean, uniform(), n=5, m=9, workers=0, progress=True)
    assert "sampling the sensitivity" in capsys.readouterr().err
