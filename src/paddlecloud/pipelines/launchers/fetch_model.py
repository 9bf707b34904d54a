"""Run inside serving pods, whose images have any Python 3 and nothing of this project: fetches and unpacks a model.

Its source is the input of `python3 -` in the pod's command (`serving.arg`), so it imports the standard library alone
and keeps to the syntax of Python 3.6. With keys in the environment the request is signed (AWS signature, version 4).
"""

import datetime
import hashlib
import hmac
import os
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request

ATTEMPTS = 20


def signed(url, key, secret, now, region="us-east-1"):
    """The headers of a signed GET. `now` is a moment of UTC.

    The executor of workflows signs its requests too (`local/workflow/executor/s3.py`). This file cannot import that
    one, nor a third: it alone is sent to a pod whose image has nothing of this project.
    """
    parts = urllib.parse.urlsplit(url)
    moment, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    headers = {"host": parts.netloc, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": moment}
    names = ";".join(sorted(headers))
    lines = "".join("%s:%s\n" % (name, headers[name]) for name in sorted(headers))
    request = "\n".join(["GET", parts.path, parts.query, lines, names, "UNSIGNED-PAYLOAD"])
    scope = "%s/%s/s3/aws4_request" % (day, region)
    digest = hashlib.sha256(request.encode()).hexdigest()
    signing = ("AWS4" + secret).encode()
    for part in (day, region, "s3", "aws4_request"):
        signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, digest])
    signature = hmac.new(signing, text.encode(), hashlib.sha256).hexdigest()
    credential = "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s"
    return dict(headers, authorization=credential % (key, scope, names, signature))


def fetch(url, target, environment):
    """Write the file behind a URL; returns its SHA-256."""
    key, secret = environment.get("MODEL_ACCESS_KEY"), environment.get("MODEL_SECRET_KEY")
    headers = signed(url, key, secret, datetime.datetime.utcnow()) if key and secret else {}
    digest = hashlib.sha256()
    request = urllib.request.Request(url)
    for name, value in headers.items():
        request.add_unredirected_header(name, value)  # the signature is for this server alone
    with urllib.request.urlopen(request, timeout=60) as answer, open(target, "wb") as file:
        for piece in iter(lambda: answer.read(1 << 20), b""):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def fetch_patiently(url, target, environment):
    for attempt in range(ATTEMPTS):
        try:
            return fetch(url, target, environment)
        except urllib.error.HTTPError as error:
            if error.code < 500:
                sys.exit("%s: the model store answered %d %s" % (url, error.code, error.reason))
            problem = error
        except OSError as error:
            problem = error
        print("%s: %s; trying again" % (url, problem), file=sys.stderr)
        time.sleep(min(2**attempt / 4.0, 15))
    sys.exit("%s: the model could not be fetched" % url)


def unpack(archive, folder):
    """Files and folders that stay inside; anything else in the archive is refused."""
    with tarfile.open(archive) as packed:
        for member in packed:
            parts = member.name.split("/")
            if member.name.startswith("/") or ".." in parts or not (member.isfile() or member.isdir()):
                sys.exit("%s: the member %r is not taken" % (archive, member.name))
            packed.extract(member, folder)


def main(url, environment):
    archive = url.rpartition("/")[2]
    digest = fetch_patiently(url, archive, environment)
    if environment.get("MODEL_DIGEST") not in ("", None, digest):
        os.remove(archive)
        sys.exit("%s: the model store has another model than the one that was deployed; deploy it again" % url)
    unpack(archive, ".")
    os.remove(archive)
    print("fetched %s, sha256 %s" % (url, digest), file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], os.environ)

# mypy: ignore-errors
# ruff: noqa: UP031, S310
