-- Revert citeledger:cite/read_pages from pg

begin;

set local role citeledger_owner;

drop function citeledger.read_pages(uuid, uuid, integer);

commit;
