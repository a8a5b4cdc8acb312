"""Settings of a fit of texts, checked before any work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from polyseme.errors import InputError
from polyseme.options import COUNTING, FIT, FITTING, READING, SAMPLING, checked, named
from polyseme.runs.info import ModelInfo
from polyseme.runs.languages import ALL, MAJORITY, SPLIT
from polyseme.runs.models import MODELS, make_model
from polyseme.runs.seed_words import checked_seeds
from polyseme.text.languages import get_language
from polyseme.utils import check_n_topics

LABELS_MODEL = "labels"
"""Name of the model whose topics are tied to the labels of documents."""


@dataclass(frozen=True)
class FitSettings:
    """Settings that, with the documents, determine the result of a fit. A resumed call must have the same settings."""

    reading: dict[str, Any]
    """Arguments of `polyseme.text.open_source`."""
    counting: dict[str, Any]
    """Arguments of `Vectorizer`."""
    fitting: dict[str, Any]
    """Model, number of topics, and other arguments of `runs.models.make_model`."""
    keep_texts: bool
    shards: bool | None
    """Whether to count and fit from files; None decides by the length of the texts."""
    duplicates: str
    """Whether to keep or to drop documents that are near-duplicates of others."""
    repeated_lines: str
    """Whether lines that several documents have are counted in all of them, or once."""
    languages: str
    """Documents to fit by language: ALL, MAJORITY, or a language."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> FitSettings:
        """Check the options of a fit, given by their Python names."""
        values = checked(given, FIT)
        model, label, labels_from = (values[name] for name in ("model", "label", "labels_from"))
        if labels_from is not None:
            if model not in (None, "plsa"):
                raise InputError(
                    f"{named('labels_from')} is for {named('model', 'plsa')}: leave {named('model', model)} out."
                )
            if label not in (None, labels_from):
                raise InputError(
                    f"{named('label')} and {named('labels_from')} name two columns, {label!r} and {labels_from!r}: "
                    f"leave {named('label')} out."
                )
            values |= {"model": LABELS_MODEL, "label": labels_from}
        values["seeds"] = checked_seeds(values["seeds"])
        reading = {option.name: values[option.name] for option in (*READING, *SAMPLING)}
        return cls(
            reading={**reading, "random_state": values["random_state"]},
            counting=counting_of(values),
            fitting={option.name: values[option.name] for option in FITTING},
            keep_texts=values["keep_texts"],
            shards=values["shards"],
            duplicates=values["duplicates"],
            repeated_lines=values["repeated_lines"],
            languages=values["languages"],
        )

    def estimator(self, n_topics: int | None, **known: Any) -> Any:
        """Return the unfitted estimator. `known` are arguments of `make_model` that depend on the documents."""
        others = "model", "n_topics", "seeds", "levels", "consensus"
        options = {name: value for name, value in self.fitting.items() if name not in others}
        return make_model(self.model, n_topics, **options, **known)

    @property
    def model(self) -> str:
        """Name of the model; if it is not given, PLSA until another one is chosen."""
        return self.fitting["model"] or "plsa"

    @property
    def chooses_model(self) -> bool:
        """Whether neither a model nor an option of PLSA is given."""
        given = (self.fitting[name] for name in ("model", "seeds", "background", "consensus"))
        return not any(given) and self.fitting["levels"] != "auto"

    @property
    def makes_levels(self) -> bool:
        """Whether the run gets finer levels, if they predict better."""
        return MODELS[self.model].has_levels and self.fitting["levels"] != "none"

    def check(self) -> None:
        """Raise InputError before any work if options contradict each other or do not belong to the model."""
        seeds, n_topics = self.fitting["seeds"], self.fitting["n_topics"]
        if self.languages == SPLIT:
            raise InputError(f"{named('languages', SPLIT)} makes several runs: call fit once for each language.")
        if self.languages not in (ALL, MAJORITY):
            get_language(self.languages)
        if n_topics is not None:
            check_n_topics(n_topics, named("n_topics"))
        if n_topics is None and self.fitting["branching"] is None:
            n_topics = max(2 ** (self.fitting["depth"] or 1), len(seeds or ()))  # the number will be chosen
        placeholder = None if not seeds else {name: [0] for name in seeds}
        labels = ["", " "] if self.model == LABELS_MODEL else None
        self.estimator(None if labels else n_topics, seeds=placeholder, word_totals=np.ones(1), labels=labels)
        levels, name = self.fitting["levels"], self.model
        if levels == "auto" and not MODELS[name].has_levels:
            raise InputError(
                f"{named('levels', 'auto')} is for {named('model', 'plsa')}; {named('model', name)} has one level: "
                f"leave {named('levels')} out."
            )
        if self.fitting["consensus"] and (name != "plsa" or seeds or self.fitting["background"]):
            raise InputError(
                f"{named('consensus')} is for {named('model', 'plsa')} without {named('seeds')} and "
                f"{named('background')}: leave one of them out."
            )
        if self.shards:
            self.check_shards()

    def check_shards(self) -> None:
        """Raise InputError if the model cannot be fitted from shards."""
        name = self.model
        if not MODELS[name].from_shards:
            raise InputError(
                f"{named('model', name)} cannot be fitted from shards: use another model, or {named('shards', False)}."
            )

    def model_info(self) -> ModelInfo:
        """Return the facts about the model that are known before the fit."""
        fitting = self.to_json()["fitting"]
        del fitting["model"]
        name, (n_topics, seed, seeds) = self.model, (fitting.pop(key) for key in ("n_topics", "random_state", "seeds"))
        words = None if seeds is None else {topic: tuple(given) for topic, given in seeds.items()}
        return ModelInfo(MODELS[name].estimator.__name__, name, n_topics or 0, seed, words, fitting)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as they are after writing and reading JSON, where tuples are lists."""
        settings: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return settings


def counting_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Vectorizer` for the options of the words."""
    values = checked(given, COUNTING)
    words = values.pop("stop_words")
    return {**values, "extra_stop_words": None if words is None else list(words)}
