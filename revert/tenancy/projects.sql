-- Revert citeledger:tenancy/projects from pg

begin;

set local role citeledger_owner;

drop table citeledger.projects;

commit;
