"""The topics of requests: a module for each, with its JSON values and its page.

Every module has ``values(fields, given)``, which returns the JSON values, ``page(fields, given)``, which
returns the page, and ``frame(fields, result)``, which returns the page with another result, such as an error.
"""
