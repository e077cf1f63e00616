"""Write files atomically, lock them, decompress them, map them into memory. Private."""
