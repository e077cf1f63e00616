"""The pages of the server, as HTML without inline style or script."""
