-- Revert citeledger:cite/cite_ledger_entry from pg

begin;

set local role citeledger_owner;

drop function citeledger.cite_ledger_entry(uuid);

commit;
