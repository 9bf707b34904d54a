"""From bytes to a `Request` and from an `Response` back to bytes: TLS, media types, options, paths."""
