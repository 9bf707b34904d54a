"""The controllers every Kubernetes has, as far as this project's kinds and their users need them. Each small."""
