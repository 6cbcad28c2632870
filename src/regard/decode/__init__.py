"""From a model to text: search."""
