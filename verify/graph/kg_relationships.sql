-- Verify citeledger:graph/kg_relationships on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.kg_relationships', $facts$
  column chunk_id uuid not null
  column confidence double precision
  column created_at timestamp with time zone not null default now()
  column evidence text not null without statistics
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column relation_type text not null
  column source_entity_id uuid not null
  column target_entity_id uuid not null
  constraint kg_relationships_chunk_fkey FOREIGN KEY (firm_id, chunk_id) REFERENCES
    citeledger.chunks(firm_id, id) ON DELETE CASCADE
  constraint kg_relationships_confidence_is_a_share CHECK (((confidence >= (0)::double precision)
    AND (confidence <= (1)::double precision)))
  constraint kg_relationships_pkey PRIMARY KEY (firm_id, id)
  constraint kg_relationships_relation_type_fkey FOREIGN KEY (firm_id, relation_type) REFERENCES
    citeledger.kg_relation_types(firm_id, relation_type)
  constraint kg_relationships_source_entity_fkey FOREIGN KEY (firm_id, source_entity_id) REFERENCES
    citeledger.kg_entities(firm_id, id) ON DELETE CASCADE
  constraint kg_relationships_target_entity_fkey FOREIGN KEY (firm_id, target_entity_id) REFERENCES
    citeledger.kg_entities(firm_id, id) ON DELETE CASCADE
  grant insert, select to citeledger_app
  index CREATE INDEX kg_relationships_chunk_idx ON citeledger.kg_relationships USING btree (firm_id,
    chunk_id)
  index CREATE INDEX kg_relationships_relation_type_idx ON citeledger.kg_relationships USING btree
    (firm_id, relation_type)
  index CREATE INDEX kg_relationships_source_entity_idx ON citeledger.kg_relationships USING btree
    (firm_id, source_entity_id, target_entity_id)
  index CREATE INDEX kg_relationships_target_entity_idx ON citeledger.kg_relationships USING btree
    (firm_id, target_entity_id, source_entity_id)
  owner citeledger_owner
  policy kg_relationships_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
  trigger CREATE TRIGGER kg_relationships_before_insert BEFORE INSERT ON citeledger.kg_relationships
    FOR EACH STATEMENT EXECUTE FUNCTION citeledger_private.before_ingest()
$facts$);

rollback;
