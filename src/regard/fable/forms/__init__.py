"""How one word changes: the regular rules of each language; the exceptions stand in the tables."""
