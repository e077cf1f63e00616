"""How code runs here: compiled functions, threads, atomic counters, hashing. Private."""
