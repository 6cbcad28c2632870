"""Faster forms of the mathematics for CPU and GPU, each with a written-out twin."""
