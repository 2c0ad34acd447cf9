"""Bits: fresh, never shared with a child, refined without moving."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from secant.noise.mechanisms import randomness
from secant.numeric.ball import lower, upper, working_precision


def test_words_do_not_repeat_across_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        drawn = [
            w
            for part in pool.map(lambda _: [randomness.word() for _ in range(5000)], range(4))
            for w in part
        ]
    assert len(set(drawn)) == len(drawn)  # a collision among 20000 words: below 2e-11


def test_a_forked_child_shares_no_bit_with_its_parent() -> None:
    randomness.word()  # the buffer holds words now
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"".join(randomness.word().to_bytes(8, "little") for _ in range(64)))
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reader, 8 * 64)
    os.close(reader)
    os.close(writer)
    assert len(theirs) == 8 * 64
    ours = {randomness.word().to_bytes(8, "little") for _ in range(2000)}
    assert not ours & {theirs[at : at + 8] for at in range(0, len(theirs), 8)}


@pytest.mark.parametrize("count", [0, 1, 7, 63, 64, 65, 200])
def test_bits_fill_their_width(count: int) -> None:
    drawn = [randomness.bits(count) for _ in range(300)]
    assert max(drawn) < 2**count
    # the top bit of 300 draws is always 0, or always 1: probability 2^-299
    assert count == 0 or {value >> (count - 1) for value in drawn} == {0, 1}


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**70 + 1])
def test_below_stays_below(bound: int) -> None:
    drawn = {randomness.below(bound) for _ in range(500)}
    assert min(drawn) >= 0
    assert max(drawn) < bound
    assert bound > 10 or len(drawn) == bound  # misses one of ten: below 10 * 0.9^500 < 1e-21


def test_refining_narrows_and_never_moves() -> None:
    uniform = randomness.LazyUniform()
    with working_precision(600):
        low, high = lower(uniform.enclosure(16)), upper(uniform.enclosure(16))
        for bits in (53, 64, 200, 500):
            inner = uniform.enclosure(bits)
            assert low <= lower(inner) <= upper(inner) <= high
            low, high = lower(inner), upper(inner)
    assert uniform.known == 500
