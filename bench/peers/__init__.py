"""The contestants of bench/training.py. Each is a process of its own, in an environment of its own."""
