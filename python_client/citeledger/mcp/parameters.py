"""The parameters of the tools: each says in JSON Schema what it takes, and takes nothing else.

An agent sends numbers as text, the word null, or true for 1. None of it is guessed at: a value has
the type that the schema says or the call is refused, with the name of the field and what is wrong,
and never with the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID

from citeledger.arguments import (
    int_argument,
    optional_uuid_argument,
    text_argument,
    uuid_argument,
)
from citeledger.errors import InvalidArgument

Schema = dict[str, Any]

_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)
_UUID_PATTERN: Final = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_INT4_MAX: Final = 2**31 - 1


def refuse(name: str, problem: str) -> InvalidArgument:
    """Make the error of a field."""
    return InvalidArgument(
        f"{name} is not valid",
        detail=f"{name}: {problem}.",
        hint="The tool's input schema says what it takes.",
    )


class Parameter(Protocol):
    """What one field may hold."""

    @property
    def schema(self) -> Schema:
        """What it takes, as JSON Schema."""

    def read(self, name: str, value: object) -> Any:
        """Take a value, or raise InvalidArgument."""


@dataclass(frozen=True, slots=True)
class Id:
    """An id in its canonical form."""

    description: str
    optional: bool = False

    @property
    def schema(self) -> Schema:
        """Text of one form, and null where the field may be left out."""
        kind: object = ["string", "null"] if self.optional else "string"
        return {"type": kind, "pattern": _UUID_PATTERN, "description": self.description}

    def read(self, name: str, value: object) -> UUID | None:
        """Take the canonical form."""
        return (optional_uuid_argument if self.optional else uuid_argument)(name, value)


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number that PostgreSQL's integer can hold."""

    description: str
    least: int = 0
    optional: bool = False

    @property
    def schema(self) -> Schema:
        """A number within bounds, and null where the field may be left out."""
        return {
            "type": ["integer", "null"] if self.optional else "integer",
            "minimum": self.least,
            "maximum": _INT4_MAX,
            "description": self.description,
        }

    def read(self, name: str, value: object) -> int | None:
        """Take an integer: no text, no true, no 3.0."""
        if value is None and self.optional:
            return None
        if int_argument(name, value) < self.least:
            raise refuse(name, f"less than {self.least}")
        return int_argument(name, value)


@dataclass(frozen=True, slots=True)
class Text:
    """Text of a limited length."""

    description: str
    longest: int

    @property
    def schema(self) -> Schema:
        """Text with a visible end."""
        return {
            "type": "string",
            "minLength": 1,
            "maxLength": self.longest,
            "description": self.description,
        }

    def read(self, name: str, value: object) -> str:
        """Take text that is not empty, not longer than allowed, and can be stored."""
        text = text_argument(name, value)
        if not text:
            raise refuse(name, "empty")
        if len(text) > self.longest:
            raise refuse(name, f"longer than {self.longest} characters")
        return text


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some words."""

    description: str
    words: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The words."""
        return {"type": "string", "enum": list(self.words), "description": self.description}

    def read(self, name: str, value: object) -> str:
        """Take one of the words as it is."""
        if not isinstance(value, str) or value not in self.words:
            raise refuse(name, f"none of {', '.join(self.words)}")
        return value


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of a limited length."""

    description: str
    item: Parameter
    most: int

    @property
    def schema(self) -> Schema:
        """A list that is not empty."""
        return {
            "type": "array",
            "items": self.item.schema,
            "minItems": 1,
            "maxItems": self.most,
            "description": self.description,
        }

    def read(self, name: str, value: object) -> list[Any]:
        """Take every item, or none."""
        if not isinstance(value, list):
            raise refuse(name, "not a list")
        if not 1 <= len(value) <= self.most:
            raise refuse(name, f"not a list of 1 to {self.most}")
        return [self.item.read(f"{name}[{i}]", item) for i, item in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with these fields and no others."""

    fields: Mapping[str, Parameter]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What a field is when it is left out; a field that is not named here must be there."""
    description: str = ""
    whole: str = "arguments"
    """What the object is called where no field of it can be named."""

    @property
    def schema(self) -> Schema:
        """A closed object."""
        properties = {name: f.schema for name, f in self.fields.items()}
        for name, default in self.defaults.items():
            properties[name]["default"] = default
        described = {"description": self.description} if self.description else {}
        return {
            "type": "object",
            "properties": properties,
            "required": [name for name in self.fields if name not in self.defaults],
            "additionalProperties": False,
            **described,
        }

    def read(self, name: str, value: object) -> dict[str, Any]:
        """Take the fields; a span's are named by themselves, as the database names them."""
        if not isinstance(value, Mapping):
            raise refuse(name, "not an object")
        for key in value:
            if key not in self.fields:
                known = isinstance(key, str) and _LABEL.fullmatch(key)
                raise refuse(key if known else self.whole, "not a field of this")
        found = {}
        for key, parameter in self.fields.items():
            if key in value:
                found[key] = parameter.read(key, value[key])
            elif key in self.defaults:
                found[key] = self.defaults[key]
            else:
                raise refuse(key, "missing")
        return found
