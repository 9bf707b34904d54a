"""axe-core in a page of the browser: what keeps people with a keyboard, a screen reader or weak eyes from using it.

Its package comes from npm, once, and is kept with the other tools of tests.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from harness import need
from tools.browser_page import Tab
from tools.go import tools

VERSION = "4.10.3"
DIGEST = "880970c081707360e64f34cea25ff91892f5bc95675b0776925b9709dd8a68bb"
FILE = "package/axe.min.js"
SECONDS = 120


@cache
def script() -> str:
    """Skips, or with PDC_REQUIRE=npm fails, where it cannot be fetched."""
    kept = tools() / f"axe-core-{VERSION}.js"
    if not kept.is_file():
        need("npm", have=shutil.which("npm") is not None, hint="apt-get install npm")
        text = _fetched()
        kept.parent.mkdir(parents=True, exist_ok=True)
        temporary = kept.with_name(f"{kept.name}.{hashlib.sha256(text).hexdigest()[:8]}")
        temporary.write_bytes(text)
        temporary.replace(kept)
    text = kept.read_bytes()
    assert hashlib.sha256(text).hexdigest() == DIGEST, f"{kept} is another file than the one that was reviewed"
    return text.decode()


def _fetched() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", f"axe-core@{VERSION}", "--silent", "--pack-destination", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        need("npm", have=done.returncode == 0, hint=done.stderr.strip()[-300:] or "npm pack axe-core")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            member = archive.extractfile(FILE)
            assert member is not None, f"{FILE} is missing in the package"
            return member.read()


async def violations(tab: Tab, *rules: str) -> list[str]:
    """`rule: element`, one for each; without `rules` of all of them."""
    if not await tab.js("'axe' in window"):
        await tab.js(f"{script()}; true")
    only = json.dumps({"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})})
    found = await tab.js(
        f"axe.run(document, {only}).then((all) => all.violations.flatMap((one) => "
        "one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 200)} ${node.failureSummary.slice(0, 200)}`)))"
    )
    return [str(each) for each in found]
