"""What a Kubernetes API does, stated once and judged on any server: the embedded one, or the one of PDC_KUBECONFIG."""
