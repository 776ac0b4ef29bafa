-- Verify citeledger:graph/edge_doi on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger_private.edge_doi(text)', $facts$
  arguments p_cited_doi text
  immutable
  language plpgsql
  owner citeledger_owner
  parallel safe
  returns text
  security invoker
  set search_path=pg_catalog, pg_temp
$facts$);

rollback;
