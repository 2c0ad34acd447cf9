"""Benchmarks. `python -m bench` runs all and writes JSON under bench/results/; ratios are taken in one run."""
