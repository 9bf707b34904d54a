"""One module for each command or family of commands of `pdc`, imported when one of them runs."""
