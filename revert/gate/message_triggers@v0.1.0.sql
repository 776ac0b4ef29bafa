-- Revert citeledger:gate/message_triggers from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop trigger messages_finalize_updated on citeledger.messages;
drop trigger messages_finalize_inserted on citeledger.messages;
drop trigger messages_seal on citeledger.messages;
drop function citeledger_private.finalize_updated();
drop function citeledger_private.finalize_inserted();
drop function citeledger_private.seal_message();

commit;
