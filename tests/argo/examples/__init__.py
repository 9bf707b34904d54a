"""Argo's own examples and the workflow files of its end-to-end tests, run on real Argo and on the embedded platform.

    python -m argo.examples [--on KUBECONFIG] [NAME …]

`catalogue` finds what can be run in the files of Argo's module, `images` gives both platforms the images that the files
name, `runner` runs one case, `verdict` keeps what came of it, `comparison` says what differs, `page` shows it.
"""
