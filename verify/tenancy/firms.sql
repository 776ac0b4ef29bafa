-- Verify citeledger:tenancy/firms on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.firms', $facts$
  column created_at timestamp with time zone not null default now()
  column id uuid not null default gen_random_uuid()
  column name text not null without statistics
  constraint firms_name_is_not_blank CHECK (((name ~ '[^[:space:]]'::text) AND (length(name) <=
    200)))
  constraint firms_pkey PRIMARY KEY (id)
  grant select to citeledger_app
  owner citeledger_owner
  policy firms_are_their_own permissive for all to public using (id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security enabled
$facts$);

rollback;
