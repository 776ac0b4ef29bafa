"""Runs a statement inside the cascade of a foreign key, where the owner passes row security."""

from __future__ import annotations

from typing import Any, TypeAlias

import psycopg

Connection: TypeAlias = psycopg.Connection[Any]

# A row trigger in the cascade runs the statement of a setting, and keeps what came of it.
SETUP = """
create temporary table parent (id integer primary key);
create temporary table child (id integer references parent on delete cascade);
create temporary table outcome (said text);
grant all on outcome to public;
create function pg_temp.run_it() returns trigger language plpgsql as $$
declare
  v_row record;
  v_said text := '';
  v_message text;
  v_detail text;
  v_hint text;
begin
  begin
    for v_row in execute current_setting('attack.statement') loop
      v_said := v_said || to_jsonb(v_row)::text;
    end loop;
    insert into outcome values (v_said);
    -- Undone, as the battery undoes what it does.
    raise exception 'undo' using errcode = 'ZZ000', detail = v_said;
  exception
    when others then
      get stacked diagnostics
        v_message = message_text, v_detail = pg_exception_detail, v_hint = pg_exception_hint;
      insert into outcome
      values (case sqlstate when 'ZZ000' then v_detail
        else concat_ws(' | ', sqlstate, v_message, v_detail, v_hint) end);
  end;
  return old;
end
$$;
create trigger run_it before delete on child for each row execute function pg_temp.run_it();
"""


def inside(connection: Connection, statement: str) -> str:
    """Run a statement in the cascade; return its rows as JSON, or its error."""
    with connection.transaction(force_rollback=True):
        connection.execute("insert into parent values (1)")
        connection.execute("insert into child values (1)")
        connection.execute("select set_config('attack.statement', %s, true)", (statement,))
        connection.execute("delete from parent")
        row = connection.execute("select said from outcome").fetchone()
    assert row is not None, "the trigger did not run"
    return str(row[0])


def outside(connection: Connection, statement: str) -> str:
    """Run a statement in the same trigger, but by an ordinary delete."""
    with connection.transaction(force_rollback=True):
        connection.execute("alter table child drop constraint child_id_fkey")
        connection.execute("insert into child values (1)")
        connection.execute("select set_config('attack.statement', %s, true)", (statement,))
        connection.execute("delete from child")
        row = connection.execute("select said from outcome").fetchone()
    assert row is not None, "the trigger did not run"
    return str(row[0])
