"""A Kubernetes API server on a SQLite log: `api` answers requests, the folders hold what an answer takes."""
