"""Tags of suite images, in the grammar of the published ones: `<branch>-<environment>-<commit>`. Pure.

`paddleocr:2.5-gpu-cuda10.2-cudnn7-efbb0a` is commit efbb0a of the branch release/2.5 on the image
`paddlepaddle/paddle:2.3.0-gpu-cuda10.2-cudnn7`. The published grammar took the last three characters of a release
branch, which made `.10` of `release/2.10`; here it is all that follows `release/`.
"""

from __future__ import annotations

import re

RELEASE = "release/"
LATEST = "latest"
CPU = "cpu"
COMMIT_LENGTH = 6
LONGEST = 128
"""Of a tag, as registries have it."""
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_COMMIT = re.compile(r"[0-9a-f]{6,64}")
_REFUSED = re.compile(r"[^A-Za-z0-9_.-]")


def suite_tag(branch: str, base_tag: str, commit: str = "") -> str:
    """The tag of a suite's branch on a base image; `latest` stands for the commit that is not given."""
    if commit and not _COMMIT.fullmatch(commit):
        raise ValueError(f"{commit!r} is no commit: at least {COMMIT_LENGTH} hexadecimal digits")
    tag = f"{branch_part(branch)}-{environment_part(base_tag)}-{commit[:COMMIT_LENGTH] or LATEST}"
    if len(tag) > LONGEST:
        raise ValueError(
            f"branch {branch!r} on {base_tag!r} makes a tag of {len(tag)} characters, and {LONGEST} are allowed"
        )
    return tag


def branch_part(branch: str) -> str:
    """`release/2.10` is 2.10; any other branch keeps its name, with `-` for what no tag may have."""
    part = _REFUSED.sub("-", branch.removeprefix(RELEASE)).lstrip(".-")
    if not _TAG.fullmatch(part):
        raise ValueError(f"{branch!r} is no branch to make a tag of")
    return part


def environment_part(base_tag: str) -> str:
    """What a base image's tag says behind its version: `3.3.1-gpu-cuda12.6-cudnn9.5` is gpu-cuda12.6-cudnn9.5."""
    _, _, rest = base_tag.partition("-")
    if not _TAG.fullmatch(base_tag):
        raise ValueError(f"{base_tag!r} is no tag of an image")
    return rest or CPU
