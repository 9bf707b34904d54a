"""How large requests to the API server may be, and how many wait to be accepted."""

from __future__ import annotations

MAX_BODY = 3 * 1024 * 1024  # MaxRequestBodyBytes of apiserver/pkg/server/config.go
BODY_TIMEOUT = 60.0
"""Seconds in which a body arrives."""
MOST_BODIES = 256 * 1024 * 1024
"""Bytes of the bodies of requests that are not answered yet, all together; those of one tenant half."""
MAX_YAML = 1024 * 1024
"""YAML takes a hundred times as long to read as JSON, which is what clients of Kubernetes send."""
SHORT_YAML = 16 * 1024
"""Read at once, within some 30 ms; what is longer is read in a thread."""
MAX_SMALL = 32 * 1024
"""Reviews, bindings and evictions. Every account may ask for reviews; answers are remembered with what was asked."""

MAX_LINE = 16 * 1024
"""Characters of a request line: method, path and query."""
MAX_HEADER = 32 * 1024
"""Characters of one header."""
MOST_UNREAD = 256 * 1024 * 1024
"""Bytes of long answers that clients have yet to read, all together."""
BACKLOG = 1024
"""Connections waiting to be accepted."""
