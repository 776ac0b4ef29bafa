-- Revert citeledger:cite/recheck_document from pg

begin;

set local role citeledger_owner;

drop function citeledger.recheck_document(uuid);

commit;
