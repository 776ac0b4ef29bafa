-- Revert citeledger:graph/walk_citations from pg

begin;

set local role citeledger_owner;

drop function citeledger.walk_citations(uuid[], integer, text);

commit;
