-- Revert citeledger:ops/verify_object from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.verify_function(regprocedure, text);
drop function citeledger_private.verify_parts(regclass, text);
drop function citeledger_private.verify_relation(regclass, text);
drop function citeledger_private.verify_lines(text, text[], text, text);

commit;
