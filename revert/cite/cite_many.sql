-- Revert citeledger:cite/cite_many from pg

begin;

set local role citeledger_owner;

drop function citeledger.cite_many(uuid, jsonb);

commit;
