"""HTML, XML and JSON documents as trees."""

from treedot.readers.documents.reader import read_html, read_json, read_xml

__all__ = ["read_html", "read_json", "read_xml"]
