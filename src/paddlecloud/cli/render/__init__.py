"""What commands print: tables, other formats, texts for people, progress."""
