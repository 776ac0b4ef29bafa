-- Verify citeledger:graph/kg_entities on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.kg_entities', $facts$
  column created_at timestamp with time zone not null default now()
  column description text without statistics
  column entity_type text not null
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column name text not null without statistics
  column name_key text not null generated lower(name) without statistics
  constraint kg_entities_entity_type_is_label CHECK ((entity_type ~ '^[a-z][a-z0-9_]{0,31}$'::text))
  constraint kg_entities_firm_fkey FOREIGN KEY (firm_id) REFERENCES citeledger.firms(id) ON DELETE
    CASCADE
  constraint kg_entities_name_is_short CHECK (((name ~ '[^[:space:]]'::text) AND (length(name) <=
    500)))
  constraint kg_entities_pkey PRIMARY KEY (firm_id, id)
  grant insert, select to citeledger_app
  index CREATE UNIQUE INDEX kg_entities_name_key ON citeledger.kg_entities USING btree (firm_id,
    name_key)
  owner citeledger_owner
  policy kg_entities_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
  trigger CREATE TRIGGER kg_entities_before_insert BEFORE INSERT ON citeledger.kg_entities FOR EACH
    STATEMENT EXECUTE FUNCTION citeledger_private.before_ingest()
$facts$);

rollback;
