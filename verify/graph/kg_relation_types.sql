-- Verify citeledger:graph/kg_relation_types on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.kg_relation_types', $facts$
  column created_at timestamp with time zone not null default now()
  column firm_id uuid not null default citeledger.current_firm_id()
  column relation_type text not null
  constraint kg_relation_types_firm_fkey FOREIGN KEY (firm_id) REFERENCES citeledger.firms(id) ON
    DELETE CASCADE
  constraint kg_relation_types_pkey PRIMARY KEY (firm_id, relation_type)
  constraint kg_relation_types_relation_type_is_label CHECK ((relation_type ~
    '^[a-z][a-z0-9_]{0,31}$'::text))
  grant insert, select to citeledger_app
  owner citeledger_owner
  policy kg_relation_types_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
  trigger CREATE TRIGGER kg_relation_types_before_insert BEFORE INSERT ON
    citeledger.kg_relation_types FOR EACH STATEMENT EXECUTE FUNCTION
    citeledger_private.before_ingest()
$facts$);

rollback;
