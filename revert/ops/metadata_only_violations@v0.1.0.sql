-- Revert citeledger:ops/metadata_only_violations from pg

begin;

set local role citeledger_owner;

drop function citeledger.metadata_only_violations();

commit;
