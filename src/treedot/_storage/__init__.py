"""How files are kept: written whole or not at all, locked, compressed, mapped into memory. Private."""
