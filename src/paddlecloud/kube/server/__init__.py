"""HTTP servers of this project: who may connect, TLS, limits of each caller, long answers, health, the process."""
