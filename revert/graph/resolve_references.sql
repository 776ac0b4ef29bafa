-- Revert citeledger:graph/resolve_references from pg

begin;

set local role citeledger_owner;

drop function citeledger.resolve_references(boolean);

commit;
