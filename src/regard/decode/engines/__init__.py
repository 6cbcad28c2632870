"""Who searches: captured steps on a GPU, CTranslate2."""
