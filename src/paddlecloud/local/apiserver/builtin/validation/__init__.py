"""What Kubernetes refuses in built-in objects beyond their types; `entrance` is called for every write."""
