"""Mined fragments and label selection: methods that the tables of ``paper`` compare with."""
