"""The cache servers of a set: requests to them, what they answer, and what opens them."""
