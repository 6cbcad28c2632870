"""The mathematics on one sentence: every intermediate with its idea, its formula, its numbers and a few lines of PyTorch."""
