"""Runs of pipelines as Argo's workflows: from a compiled file to a Workflow, and from its status to what users read.

Pure functions, shared by the REST API, the SDK and `pdc`.
"""
