"""Models from elsewhere into runs."""
