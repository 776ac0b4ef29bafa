-- Revert citeledger:tenancy/firms from pg

begin;

set local role citeledger_owner;

drop table citeledger.firms;

commit;
