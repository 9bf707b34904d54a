"""One module for each command of `pdc`, imported when that command runs."""
