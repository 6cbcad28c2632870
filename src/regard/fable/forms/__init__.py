"""How words are inflected: the regular rules of each language; exceptions are in the tables."""
