"""Whole models: encoder-decoders, language models, labellers, built from the mathematics in `regard.nn`."""
