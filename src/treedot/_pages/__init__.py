"""The skeleton and style of HTML pages, and the escaping of untrusted text. Private."""
