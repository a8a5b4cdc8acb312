"""The errors that polyseme raises on purpose. Each message is one sentence that says what to do."""


class InputError(ValueError):
    """Data or a parameter that no model can be made from."""


class UnsupportedError(InputError):
    """A combination that is well formed, but that the chosen solver or model cannot do."""


class ModelFileError(Exception):
    """A model file that is damaged, foreign, or newer than this library."""


class ShardError(Exception):
    """A shard, or the manifest of a folder of shards, that is damaged or missing."""


class MissingExtraError(ImportError):
    """A part of polyseme whose optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        super().__init__(f"{what} needs the extra '{extra}': pip install 'polyseme[{extra}]'.")
