-- Verify citeledger:graph/kg_entity_mentions on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.kg_entity_mentions', $facts$
  column chunk_id uuid not null
  column created_at timestamp with time zone not null default now()
  column entity_id uuid not null
  column firm_id uuid not null default citeledger.current_firm_id()
  constraint kg_entity_mentions_chunk_fkey FOREIGN KEY (firm_id, chunk_id) REFERENCES
    citeledger.chunks(firm_id, id) ON DELETE CASCADE
  constraint kg_entity_mentions_entity_fkey FOREIGN KEY (firm_id, entity_id) REFERENCES
    citeledger.kg_entities(firm_id, id) ON DELETE CASCADE
  constraint kg_entity_mentions_pkey PRIMARY KEY (firm_id, entity_id, chunk_id)
  grant insert, select to citeledger_app
  index CREATE INDEX kg_entity_mentions_chunk_idx ON citeledger.kg_entity_mentions USING btree
    (firm_id, chunk_id)
  owner citeledger_owner
  policy kg_entity_mentions_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
  trigger CREATE TRIGGER kg_entity_mentions_before_insert BEFORE INSERT ON
    citeledger.kg_entity_mentions FOR EACH STATEMENT EXECUTE FUNCTION
    citeledger_private.before_ingest()
$facts$);

rollback;
