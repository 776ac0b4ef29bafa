-- Revert citeledger:gate/finalize_report from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.finalize_report(uuid, uuid);
drop function citeledger_private.count_entries(uuid, uuid);

commit;
