-- Revert citeledger:gate/verification_tier from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger.verification_tier(text);

commit;
