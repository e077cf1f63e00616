"""Write files whole or not at all, lock them, decompress them, map them into memory. Private."""
