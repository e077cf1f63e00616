"""Compiled functions, threads, processes, hashing and signals. Private."""
