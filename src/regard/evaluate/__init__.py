"""Measuring runs: evaluate, compare, report, faithful; the results as data."""
