"""How each language puts a tree into words and in which order."""
