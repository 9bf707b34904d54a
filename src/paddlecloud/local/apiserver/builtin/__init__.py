"""The kinds that Kubernetes itself defines: their types, defaults and subresources."""
