"""The base class of explanations, which are shown as text, JSON, HTML pages and in notebooks."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar


class Shown:
    """The base class of explanations; their fields are the fields of the JSON."""

    format: ClassVar[str]

    def to_text(self, color: bool = False) -> str:
        """Return the explanation as text, with one line for each inner node of a tree.

        Parameters
        ----------
        color : bool, default=False
            Whether to add colours for terminals.

        Returns
        -------
        str
            The text.
        """
        from treedot.models.explain.text import text_of

        return text_of(self, color)

    def to_json(self) -> str:
        """Return the explanation as JSON; the documentation's page on explanations lists the fields.

        Returns
        -------
        str
            The JSON text.
        """
        from treedot.models.explain.as_json import json_of

        return json_of(self)

    def to_html(self) -> str:
        """Return a self-contained HTML page that makes no requests.

        Returns
        -------
        str
            The HTML text.
        """
        from treedot.models.explain.web import page_of

        return page_of(self)

    def json_fields(self) -> dict[str, Any]:
        """Return the fields by name.

        Returns
        -------
        dict
            The fields.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from treedot.models.explain.web import notebook_of

        return notebook_of(self)
