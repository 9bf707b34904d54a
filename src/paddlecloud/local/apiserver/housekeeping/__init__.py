"""What the server does without being asked: garbage collection, namespaces, expiry, its own Service."""
