-- Revert citeledger:tenancy/project_members from pg

begin;

set local role citeledger_owner;

drop table citeledger.project_members;

commit;
