"""Fuzzers: random cases for runs, readers, estimators and the vectorizer. ``python tests/fuzz --help``."""
