-- Revert citeledger:cite/record_in_matter from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

drop function citeledger_private.refuse_as_not_found();
drop function citeledger_private.holds_record(uuid, uuid, uuid);
drop function citeledger_private.visible_matter_number(uuid, uuid);

commit;
