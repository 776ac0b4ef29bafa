-- Revert citeledger:cite/suggest_spans from pg

begin;

set local role citeledger_owner;

drop function citeledger.suggest_spans(uuid, jsonb, integer);
drop function citeledger_private.occurrences(text, text);

commit;
