"""Images without a container engine: recipes, and the Python environments built from them."""
