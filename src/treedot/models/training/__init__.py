"""How linear models are trained: in memory, file by file, and with settings chosen by cross-validation."""
