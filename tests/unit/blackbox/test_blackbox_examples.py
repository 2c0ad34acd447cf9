"""The examples in the docstrings are right."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["design", "distributions", "guarantee", "release", "sampling"])
def test_the_examples(module):
    found = doctest.testmod(importlib.import_module(f"secant.blackbox.{module}"))
    assert found.attempted > 0
    assert found.failed == 0
