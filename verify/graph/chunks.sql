-- Verify citeledger:graph/chunks on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.chunks', $facts$
  column chunk_index integer not null
  column content text not null without statistics
  column created_at timestamp with time zone not null default now()
  column document_id uuid not null
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  constraint chunks_chunk_index_from_zero CHECK ((chunk_index >= 0))
  constraint chunks_document_fkey FOREIGN KEY (firm_id, document_id) REFERENCES
    citeledger.documents(firm_id, id) ON DELETE CASCADE
  constraint chunks_document_place_key UNIQUE (firm_id, document_id, chunk_index)
  constraint chunks_pkey PRIMARY KEY (firm_id, id)
  grant insert, select to citeledger_app
  owner citeledger_owner
  policy chunks_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
  trigger CREATE TRIGGER chunks_before_insert BEFORE INSERT ON citeledger.chunks FOR EACH STATEMENT
    EXECUTE FUNCTION citeledger_private.before_ingest()
$facts$);

rollback;
