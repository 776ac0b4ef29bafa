-- Revert citeledger:ops/describe_function from pg

begin;

set local role citeledger_owner;

drop function citeledger_private.describe_function(regprocedure);

commit;
