"""Both generations of kfp, each in its own environment: their requirements exclude each other and ours.

kfp 1 takes Python 3.12 at most.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness import need
from tools import environments

VERSIONS = {1: "1.8.22", 2: "2.17.0"}
BUILD_SECONDS = environments.BUILD_SECONDS
_REQUIREMENTS = {
    1: ["kfp==1.8.22", "setuptools<80"],  # it imports pkg_resources, which newer ones lack
    2: ["kfp==2.17.0", "kfp-kubernetes==2.17.0"],
}


def python(generation: int) -> Path:
    """The interpreter of an environment with that kfp. Skips, or with PDC_REQUIRE=kfp fails, if it cannot be made."""
    version = "3.12" if generation == 1 and sys.version_info > (3, 12) else ""
    problem = ""
    try:
        found = environments.python(f"kfp-{VERSIONS[generation]}", _REQUIREMENTS[generation], version)
    except environments.NoEnvironment as error:
        problem = str(error)
    need("kfp", have=not problem, hint=problem)
    return found
