"""Every figure this project claims, recomputed: one module per claim, `python -m bench [NAME …]` prints the table.

A module has `run() -> Iterator[Claim]`. Timings are compared with something run beside them in the same command, or
are counts and sizes; conditions are stated with each row.
"""
