-- Verify citeledger:ledger/citation_ledger_entry_revision on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.citation_ledger_entry_revision', $facts$
  column confidence double precision
  column created_at timestamp with time zone not null default now()
  column entry_id uuid not null
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column message_id uuid not null
  column provider text
  column retrieved_at timestamp with time zone
  column source_kind text not null
  column superseded_at timestamp with time zone not null default clock_timestamp()
  column verification_status text not null
  constraint citation_ledger_entry_revision_message_fkey FOREIGN KEY (firm_id, message_id)
    REFERENCES citeledger.messages(firm_id, id) ON DELETE CASCADE
  constraint citation_ledger_entry_revision_pkey PRIMARY KEY (firm_id, id)
  constraint citation_ledger_entry_revision_provider_is_name CHECK ((provider ~
    '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'::text))
  constraint citation_ledger_entry_revision_source_kind_is_label CHECK ((source_kind ~
    '^[a-z][a-z0-9_]{0,31}$'::text))
  constraint citation_ledger_entry_revision_status_is_label CHECK ((verification_status ~
    '^[a-z][a-z0-9_]{0,31}$'::text))
  grant select to citeledger_app
  index CREATE INDEX citation_ledger_entry_revision_entry_idx ON
    citeledger.citation_ledger_entry_revision USING btree (firm_id, entry_id)
  index CREATE INDEX citation_ledger_entry_revision_message_idx ON
    citeledger.citation_ledger_entry_revision USING btree (firm_id, message_id)
  owner citeledger_owner
  policy citation_ledger_entry_revision_of_the_firm permissive for all to public using (firm_id = (
    SELECT citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
