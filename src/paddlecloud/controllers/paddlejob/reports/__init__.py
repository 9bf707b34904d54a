"""What pods report of their training: the listener, its tokens, and their place in the status."""
