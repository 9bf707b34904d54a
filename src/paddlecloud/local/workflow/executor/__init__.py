"""What runs inside the pods of a workflow, by the platform's interpreter: the standard library alone.

It makes input artifacts, starts the program, saves outputs, and sends the manifests of resource templates.
"""
