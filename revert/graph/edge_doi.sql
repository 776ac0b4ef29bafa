-- Revert citeledger:graph/edge_doi from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.edge_doi(text);

commit;
