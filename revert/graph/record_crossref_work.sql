-- Revert citeledger:graph/record_crossref_work from pg

begin;

set local role citeledger_owner;

drop function citeledger.record_crossref_work(uuid, jsonb);

commit;
