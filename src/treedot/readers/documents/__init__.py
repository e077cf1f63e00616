"""HTML, XML and JSON documents as trees."""
