"""The hub over HTTP: versions of one store for people, programs and pods that have no keys of the store."""
