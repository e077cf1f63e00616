"""Train linear models: in memory, file by file, and with settings chosen by cross-validation."""
