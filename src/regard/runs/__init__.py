"""A run is a folder: open, lock, checkpoint, log, list, archive."""
