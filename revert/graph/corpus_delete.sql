-- Revert citeledger:graph/corpus_delete from pg

begin;

set local role citeledger_owner;

drop function citeledger.corpus_delete(uuid[]);

commit;
