"""Kubernetes' own conformance tests (test/e2e of its repository), run against the embedded platform or a cluster.

    python -m e2e [--core | --focus RE [--skip RE]] [--on KUBECONFIG]

`programs` builds the suite, `images` gives the embedded platform the images that it uses, `specs` reads its report.
"""
