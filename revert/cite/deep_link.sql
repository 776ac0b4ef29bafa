-- Revert citeledger:cite/deep_link from pg

begin;

set local role citeledger_owner;

drop function citeledger.deep_link(text, uuid, integer, integer);

commit;
