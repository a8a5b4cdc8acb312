"""Exceptions that polyseme raises. A message is one sentence that names the problem and how to fix it."""


class InputError(ValueError):
    """Invalid data or an invalid parameter."""


class UnsupportedError(InputError):
    """Valid parameters that the chosen solver or model does not support together."""


class SeedWarning(UserWarning):
    """Seed words that the documents do not support, or a topic that has drifted from its seed words."""


class ModelFileError(Exception):
    """Model file that is damaged, or was written by another program or a newer version."""


class ShardError(Exception):
    """Shard file or manifest that is damaged or missing, or a cluster that was lost during a fit to shards."""


class MissingExtraError(ImportError):
    """Missing optional dependency.

    Parameters
    ----------
    what : str
        Feature that needs the dependency, at the start of the message.
    extra : str
        Extra of the package that installs the dependency.
    """

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        command = f"pip install 'polyseme[{extra}]' (in a checkout: pip install '.[{extra}]')"
        super().__init__(f"{what} needs the extra '{extra}': {command}.")

    def __reduce__(self) -> tuple[type, tuple[str, str]]:
        """Pickle the arguments and not the message, so that a worker can send the error."""
        return MissingExtraError, (self.what, self.extra)
