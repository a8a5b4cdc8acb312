"""Public names of polyseme in the old and in the new build.

Cases use the new names. `Public` and `call` fall back to the old name where a build does not have the new one. An entry
of these tables can be removed once both commits of every comparison are past the rename.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

# new name: old name. The module of the old name is given where it is another one.
NAMES = {
    "polyseme.open_run": "polyseme.runs.open_run",
    "polyseme.datasets.TextCorpus": "polyseme.datasets.Corpus",
    "polyseme.metrics.distinctive_words": "polyseme.metrics.words_apart",
    "polyseme.metrics.hard_labels": "polyseme.metrics.clustering.hard_labels",
    "polyseme.metrics.label_agreement": "polyseme.metrics.agreement",
    "polyseme.metrics.topic_fit": "polyseme.metrics.topics.topic_fit",
    "polyseme.priors.PriorSum": "polyseme.priors.Sum",
    "polyseme.retrieval.evaluate_search": "polyseme.retrieval.evaluate",
    "polyseme.scale.DiskCorpus": "polyseme.scale.Shards",
    "polyseme.solvers.StepwiseEM": "polyseme.solvers.Online",
    "polyseme.solvers.TreeGrowth": "polyseme.solvers.Growth",
}

# new name: old name
METHODS = {
    "maximize": "maximise",  # priors
    "outside_hull": "outside",  # RealTopicModel
    "outside_simplex": "below_minimum",
    "related_words": "neighbours",  # SearchIndex
    "set_model": "use_model",
    "similar_documents": "like",
    "topic_documents": "of_topic",
}

# old name: new name, of fitted attributes and of the fields of results
VALUES = {
    "background_share_": "word_background_",
}


class Public:
    """A public module of polyseme, imported when a name is first used."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._module), name, None)
        if found is not None:
            return found
        old = NAMES.get(f"{self._module}.{name}")
        if old is None:
            raise AttributeError(f"{self._module} has no name {name!r}: add it to NAMES if it was renamed.")
        module, _, old_name = old.rpartition(".")
        return getattr(import_module(module), old_name)


def call(target: Any, method: str, /, *arguments: Any, **options: Any) -> Any:
    """Call a method by its new name, or by its old one."""
    name = method if hasattr(target, method) else METHODS[method]
    return getattr(target, name)(*arguments, **options)


polyseme = Public("polyseme")
datasets = Public("polyseme.datasets")
explore = Public("polyseme.explore")
page = Public("polyseme.explore.page")
page_data = Public("polyseme.explore.page_data")
metrics = Public("polyseme.metrics")
topics = Public("polyseme.metrics.topics")
priors = Public("polyseme.priors")
retrieval = Public("polyseme.retrieval")
scale = Public("polyseme.scale")
selection = Public("polyseme.selection")
solvers = Public("polyseme.solvers")
text = Public("polyseme.text")


def checkpoint(folder: Path, *, shards: bool = False) -> Any:
    """Return a checkpoint that is written after every iteration.

    A checkpoint is a folder. In earlier builds it is a file, or None beside shards.
    """
    kind = import_module("polyseme.solvers").Checkpoint
    if "path" not in kind.__dataclass_fields__:
        return kind(folder, 0.0)
    return kind(None if shards else folder / "fit.safetensors", 0.0)


def look_further(**settings: Any) -> Any:
    """Return the solver "look-further", which becomes `HeldOutTempered(tries=...)`."""
    module = import_module("polyseme.solvers")
    if hasattr(module, "LookFurther"):
        return module.LookFurther(module.HeldOutTempered(**settings))
    return module.HeldOutTempered(**settings, tries=2)
