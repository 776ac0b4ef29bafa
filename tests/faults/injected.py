"""The faults that the tests inject: how each is made, what finalize must log, how it is
repaired.
"""

from __future__ import annotations

from dataclasses import dataclass

_LEDGER = "citeledger.citation_ledger_entry"
_GATE = "citeledger.work_product_fiduciary_gate"
_REVISION = "citeledger.citation_ledger_entry_revision"


@dataclass(frozen=True, slots=True)
class Fault:
    """One injected fault."""

    name: str
    inject: str
    repair: str
    stage: str
    sqlstate: str

    def __str__(self) -> str:
        """Name the parametrised test."""
        return self.name


def raising(table: str, event: str, sqlstate: str) -> tuple[str, str]:
    """Return statements that make every write to a table fail with a code, and that stop it."""
    return (
        f"""
        create function public.trap() returns trigger language plpgsql as $$
        begin
          raise exception using
            errcode = '{sqlstate}', message = 'The tenant shall give notice: a secret';
        end
        $$;
        create trigger trap before {event} on {table}
          for each row execute function public.trap();
        """,
        f"drop trigger trap on {table}; drop function public.trap()",
    )


# What nearly every new turn is spared: the steps one by one.
STEP_BY_STEP = (
    "alter function citeledger_private.settle_turn(uuid, uuid) rename to gone;"
    " alter function citeledger_private.settle_new(uuid, uuid[]) rename to gone"
)

# Each breaks a step as a whole: no verdict can be had until it is repaired.
WHOLE = [
    Fault(
        "a column of the ledger dropped",
        f"alter table {_LEDGER} drop column confidence cascade",
        f"alter table {_LEDGER} add column confidence double precision",
        "assemble",
        "42703",
    ),
    Fault(
        "a column of the verdicts dropped",
        f"alter table {_GATE} drop column unrecognized_count cascade",
        f"alter table {_GATE} add column unrecognized_count integer not null default 0",
        "gate",
        "42703",
    ),
    Fault(
        "a helper of the gate gone",
        "alter function citeledger.verification_tier(text) rename to gone",
        "alter function citeledger.gone(text) rename to verification_tier",
        "gate",
        "42883",
    ),
    Fault(
        "the ledger's privilege taken from its owner",
        f"revoke insert on {_LEDGER} from citeledger_owner",
        f"grant insert on {_LEDGER} to citeledger_owner",
        "assemble",
        "42501",
    ),
    Fault(
        "a CHECK of the verdicts that fires",
        f"alter table {_GATE} add constraint trap check (total_assertions < 1) not valid",
        f"alter table {_GATE} drop constraint trap",
        "gate",
        "23514",
    ),
    Fault(
        "no space on the ledger's disk", *raising(_LEDGER, "insert", "53100"), "assemble", "53100"
    ),
    Fault(
        "no space on the verdicts' disk",
        *raising(_GATE, "insert or update", "53100"),
        "gate",
        "53100",
    ),
    Fault("no memory", *raising(_LEDGER, "insert", "53200"), "assemble", "53200"),
    Fault("corrupt data", *raising(_GATE, "insert or update", "XX001"), "gate", "XX001"),
    Fault("an error of no class", *raising(_LEDGER, "insert", "ZZZZZ"), "assemble", "ZZZZZ"),
    Fault("a failed assertion", *raising(_LEDGER, "insert", "P0004"), "assemble", "P0004"),
]

# Each hits the one source of a turn whose provider is "trapped", in the middle of a set.
IN_ONE_ROW = [
    Fault(
        "a CHECK of the ledger that fires",
        f"alter table {_LEDGER} add constraint trap"
        " check (provider is distinct from 'trapped') not valid",
        f"alter table {_LEDGER} drop constraint trap",
        "assemble_row",
        "23514",
    ),
    Fault(
        "a division by zero",
        f"""
        create function public.trap() returns trigger language plpgsql as $$
        begin
          if new.provider = 'trapped' then
            perform 1 / 0;
          end if;
          return new;
        end
        $$;
        create trigger trap before insert on {_LEDGER}
          for each row execute function public.trap()
        """,
        f"drop trigger trap on {_LEDGER}; drop function public.trap()",
        "assemble_row",
        "22012",
    ),
]

# Broken history: found only when an entry is refreshed.
HISTORY = Fault(
    "a column of the revisions dropped",
    f"alter table {_REVISION} drop column provider cascade",
    f"alter table {_REVISION} add column provider text",
    "assemble",
    "42703",
)
