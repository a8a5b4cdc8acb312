"""What a run says of how it was made."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any


def versions() -> dict[str, Any]:
    """When, and by which versions."""
    packages = ("polyseme", "numpy", "scipy", "scikit-learn")
    return {
        "written": now(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
