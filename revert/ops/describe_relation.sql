-- Revert citeledger:ops/describe_relation from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.describe_relation(regclass);

commit;
