"""Baselines for classification that only count words.

Logistic regression over the words of a text, as they are (a bag of words) or weighted by how rare they are
(TF-IDF, with pairs of neighbours). scikit-learn does both; it is an extra.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from regard.errors import DataError, ResourceError
from regard.metrics.labels import Confusion

_WORD = r"\S+"  # what stands between spaces, one letter or more
_ROUNDS = 1000  # of the regression, at most


def baselines(train: Iterable[tuple[str, str]], held_out: Iterable[tuple[str, str]]) -> dict[str, Confusion]:
    """Learn from pairs of text and label, and try on others: the commonest label, a bag of words, TF-IDF."""
    (texts, labels), (tests, truth) = _columns(train, "train"), _columns(held_out, "held_out")
    if len(set(labels)) < 2:
        raise DataError(f"labels = {labels[0]}: the only one in training; a classification needs two or more")
    commonest = Counter(labels).most_common(1)[0][0]
    guesses = {"commonest label": [commonest] * len(tests)}
    for name, vectorizer in _vectorizers().items():
        model = _scikit("linear_model").LogisticRegression(max_iter=_ROUNDS)
        model.fit(vectorizer.fit_transform(texts), labels)
        guesses[name] = [str(label) for label in model.predict(vectorizer.transform(tests))]
    return {name: Confusion.of(zip(truth, given, strict=True)) for name, given in guesses.items()}


def _columns(rows: Iterable[tuple[str, str]], where: str) -> tuple[list[str], list[str]]:
    pairs = list(rows)
    if not pairs:
        raise DataError(f"{where} = no texts: nothing to learn from or to try on; give pairs of text and label")
    return [text for text, _ in pairs], [label for _, label in pairs]


def _vectorizers() -> dict[str, Any]:
    text = _scikit("feature_extraction.text")
    return {
        "bag of words": text.CountVectorizer(token_pattern=_WORD, binary=True),
        "TF-IDF": text.TfidfVectorizer(token_pattern=_WORD, ngram_range=(1, 2), sublinear_tf=True),
    }


def _scikit(part: str) -> Any:
    try:
        return import_module(f"sklearn.{part}")
    except ImportError as problem:
        raise ResourceError("baselines: need the package scikit-learn; pip install scikit-learn") from problem
