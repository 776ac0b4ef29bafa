"""A thin, typed client for citeledger, the citation ledger and verdict gate inside PostgreSQL."""

from ._version import SUPPORTED_SCHEMA, __version__
from .client import Bound, CiteLedger
from .errors import (
    CiteLedgerError,
    IntegrityError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    SchemaVersionError,
    WrongIsolation,
    WrongState,
)
from .rows import (
    CaselawSource,
    DocumentSource,
    Failure,
    FinalizeReport,
    Gate,
    IntegrityProblem,
    LedgerEntry,
    LedgerTrace,
    Passage,
    Source,
    ToolSource,
)

__all__ = [
    "SUPPORTED_SCHEMA",
    "Bound",
    "CaselawSource",
    "CiteLedger",
    "CiteLedgerError",
    "DocumentSource",
    "Failure",
    "FinalizeReport",
    "Gate",
    "IntegrityError",
    "IntegrityProblem",
    "InvalidArgument",
    "LedgerEntry",
    "LedgerTrace",
    "NotFound",
    "Passage",
    "PermissionDenied",
    "SchemaVersionError",
    "Source",
    "ToolSource",
    "WrongIsolation",
    "WrongState",
    "__version__",
]
