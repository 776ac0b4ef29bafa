"""The MCP door, the extra ``citeledger[mcp]``: four read-only tools over stdio."""

from .principal import Principal
from .server import create_server

__all__ = ["Principal", "create_server"]
