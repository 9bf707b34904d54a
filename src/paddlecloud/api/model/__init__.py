"""Models and their versions: the grammar of their names."""
