"""`pdc`, the command line: thin, lazily imported, usable on any Kubernetes context.

A command is a row of `command_table.py`; its module is imported only when that command runs. Read commands use the
stdlib transport and never import asyncio, aiohttp, cryptography or rich: they must cost no more than 0.15 CPU-seconds.
"""
