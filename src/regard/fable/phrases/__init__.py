"""How each language writes a tree: its words and their order."""
