"""Engines that search in place of our own loop: captured steps on a GPU, CTranslate2."""
