"""From bytes to a `Request` and from an `Answer` back to bytes: TLS, media types, options, paths."""
