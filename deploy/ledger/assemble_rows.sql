-- Deploy citeledger:ledger/assemble_rows to pg
-- requires: ledger/assemble_set
-- requires: ledger/finalize_failure

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.assemble_rows(
  p_firm_id uuid,
  p_message_id uuid,
  p_source_ids uuid[] default null
)
returns integer
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_source_id uuid;
  v_written integer := 0;
  v_sqlstates text[] := array[]::text[];
begin
  for v_source_id in
    select v.source_id
    from citeledger_private.entry_values(p_firm_id, array[p_message_id], p_source_ids) as v
    order by v.source_id
  loop
    begin
      v_written := v_written + citeledger_private.assemble_set(
        p_firm_id, array[p_message_id], array[v_source_id]
      );
    exception
      -- Class 22 and class 23: the fault lies in the row. Every other error is not the row's.
      when data_exception or integrity_constraint_violation then
        v_sqlstates := v_sqlstates || sqlstate;
        -- An entry that cannot be refreshed says what is past: better none, which counts as failed.
        delete from citeledger.citation_ledger_entry as e
        where e.firm_id = p_firm_id
          and e.message_id = p_message_id
          and v_source_id in (
            e.message_citation_id, e.message_caselaw_citation_id, e.message_tool_source_id
          );
    end;
  end loop;

  if cardinality(v_sqlstates) > 0 then
    insert into citeledger.finalize_failure (firm_id, message_id, stage, sqlstate)
    select p_firm_id, p_message_id, 'assemble_row', s.code
    from unnest(v_sqlstates) as s (code)
    on conflict do nothing;
    raise warning using
      message = 'sources of a turn got no ledger entry',
      detail = format(
        '%s of the sources were skipped, SQLSTATE %s.',
        cardinality(v_sqlstates),
        (select string_agg(distinct s.code, ', ') from unnest(v_sqlstates) as s (code))
      ),
      hint = 'See citeledger.finalize_failure; each of them counts as failed in the verdict.';
  end if;
  return v_written;
end
$$;

comment on function citeledger_private.assemble_rows(uuid, uuid, uuid[]) is
  'Assembles one turn source by source, where all at once failed: a source whose entry cannot be '
  'written (SQLSTATE class 22 or 23) is skipped, logged and warned about, and left without the '
  'entry that it may have had; any other error is raised. Returns how many entries are new. The '
  'caller holds the lock of the turn.';

revoke all on function citeledger_private.assemble_rows(uuid, uuid, uuid[]) from public;

commit;
