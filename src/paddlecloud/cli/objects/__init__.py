"""What commands know of objects: finding them on the server and in files, waiting for them, judging them."""
