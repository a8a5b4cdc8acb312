"""Print the lowest version that pyproject.toml allows for every direct dependency, as constraints for pip."""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
_BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)>=(?P<version>\d+(\.\d+)*)(?P<marker>\s*;.*)?")


def lowest_versions(requirements: list[str]) -> dict[str, str]:
    """Return name==version of each requirement, which must have the form name>=version."""
    found = {}
    for requirement in requirements:
        bound = _BOUND.fullmatch(requirement)
        if bound is None:
            sys.exit(f"{requirement!r} is not of the form name>=version: state the lowest version that works.")
        found[bound["name"]] = f"{bound['name']}=={bound['version']}{bound['marker'] or ''}"
    return found


def direct_requirements(project: dict) -> list[str]:
    """Return the dependencies, and those of every extra, without extras that only combine others."""
    extras = [one for extra in project["optional-dependencies"].values() for one in extra]
    return [*project["dependencies"], *(one for one in extras if not one.startswith(f"{project['name']}["))]


if __name__ == "__main__":
    described = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    print("\n".join(lowest_versions(direct_requirements(described)).values()))
