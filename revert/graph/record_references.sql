-- Revert citeledger:graph/record_references from pg

begin;

set local role citeledger_owner;

drop function citeledger.record_references(uuid, text[], text);

commit;
