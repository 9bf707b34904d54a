"""Workflows of Paddle's model suites: sample data in their formats, and folders with a pipeline that people edit.

What runs in pods is the suites' own code, in their images; nothing here trains or serves.
"""
