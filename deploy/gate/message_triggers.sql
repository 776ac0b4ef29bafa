-- Deploy citeledger:gate/message_triggers to pg
-- requires: gate/message_triggers@v0.1.0
-- requires: gate/settle

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace trigger messages_finalize_updated
  after update on citeledger.messages
  referencing old table as old_rows new table as new_rows
  for each statement
  -- Whoever sets finalized_at, but for the functions that finalize themselves: they act as the
  -- owner, and say at which depth of triggers, so that what else their update sets off is seen.
  when (
    current_user <> 'citeledger_owner'
    or current_setting('citeledger.sealing', true) is distinct from pg_trigger_depth()::text
  )
  execute function citeledger_private.finalize_updated();

comment on trigger messages_finalize_updated on citeledger.messages is
  'No call site can forget to finalize: setting finalized_at is enough. It leaves alone the '
  'updates of finalize_turn and finalize_turns, which settle what they set: they act as the owner, '
  'and name their depth of triggers in the setting citeledger.sealing. From anybody else the '
  'setting means nothing.';

commit;
