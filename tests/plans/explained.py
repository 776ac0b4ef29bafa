"""Hears the plan of every statement that a call runs, nested ones included, as it really ran.

The module auto_explain of every PostgreSQL server sends the plans as notices, so that no statement
is typed a second time: what a function does is what is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

SETTINGS = {
    "auto_explain.log_level": "notice",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
    "auto_explain.log_verbose": "on",
    # So that a branch that was planned but not taken can be told from one that was.
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    # What a session gets that runs a statement often.
    "plan_cache_mode": "force_generic_plan",
}


@dataclass(slots=True)
class Plans:
    """The plans that were heard, each with its statement's text."""

    heard: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    compiled: list[str] = field(default_factory=list)
    """The statements whose plans were compiled."""

    def hear(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        """Take in a notice, if it is a plan."""
        _, found, text = (diagnostic.message_primary or "").partition("plan:\n")
        if found:
            explained = json.loads(text)
            self.heard.append((explained["Query Text"], explained["Plan"]))
            if "JIT" in explained:
                self.compiled.append(explained["Query Text"])

    def nodes(self, leaving: str | None = None) -> Iterator[Mapping[str, Any]]:
        """Go through the executed nodes of all plans, but of statements that begin so."""
        waiting = [
            plan for text, plan in self.heard if leaving is None or not text.startswith(leaving)
        ]
        while waiting:
            node = waiting.pop()
            if node["Actual Loops"] > 0:
                yield node
            waiting += node.get("Plans", ())

    @property
    def indexes(self) -> set[str]:
        """The indexes that are used."""
        return {node["Index Name"] for node in self.nodes() if "Index Name" in node}

    @property
    def read_whole(self) -> set[str]:
        """The package's tables that are read from end to end."""
        return {
            node["Relation Name"]
            for node in self.nodes()
            if node["Node Type"] == "Seq Scan" and node.get("Schema") == "citeledger"
        }

    def most_read(self, leaving: str | None = None) -> dict[str, int]:
        """Return how many rows of each of the package's tables one node read, where it is most."""
        most: dict[str, int] = {}
        for node in self.nodes(leaving):
            if node.get("Schema") == "citeledger" and "Relation Name" in node:
                each = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                table = node["Relation Name"]
                most[table] = max(most.get(table, 0), round(each * node["Actual Loops"]))
        return most


@contextmanager
def explaining(connection: psycopg.Connection[Any]) -> Iterator[Plans]:
    """Hear the plans of what a superuser's connection runs inside the block."""
    plans = Plans()
    connection.add_notice_handler(plans.hear)
    try:
        yield plans
    finally:
        connection.remove_notice_handler(plans.hear)
