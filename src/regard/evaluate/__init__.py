"""What a run is worth: evaluate, compare, report; as data."""
