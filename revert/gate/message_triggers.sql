-- Revert citeledger:gate/message_triggers from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace trigger messages_finalize_updated
  after update on citeledger.messages
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.finalize_updated();

comment on trigger messages_finalize_updated on citeledger.messages is
  'No call site can forget to finalize: setting finalized_at is enough.';

commit;
