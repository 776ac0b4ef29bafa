-- Verify citeledger:ledger/message_tool_sources on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.message_tool_sources', $facts$
  column created_at timestamp with time zone not null default clock_timestamp()
  column external_ref text without statistics
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column label text not null without statistics
  column message_id uuid not null
  column provider text
  column source_kind text not null
  column subtitle text without statistics
  column tool text without statistics
  column url text without statistics
  constraint message_tool_sources_created_at_is_in_the_calendar CHECK ((isfinite(created_at) AND
    ((EXTRACT(year FROM (created_at AT TIME ZONE 'UTC'::text)) >= (2)::numeric) AND (EXTRACT(year
    FROM (created_at AT TIME ZONE 'UTC'::text)) <= (9998)::numeric))))
  constraint message_tool_sources_message_fkey FOREIGN KEY (firm_id, message_id) REFERENCES
    citeledger.messages(firm_id, id) ON DELETE CASCADE
  constraint message_tool_sources_message_source_key UNIQUE (firm_id, message_id, id)
  constraint message_tool_sources_pkey PRIMARY KEY (firm_id, id)
  constraint message_tool_sources_provider_is_name CHECK ((provider ~
    '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'::text))
  constraint message_tool_sources_source_kind_is_label CHECK ((source_kind ~
    '^[a-z][a-z0-9_]{0,31}$'::text))
  grant delete, insert, select to citeledger_app
  owner citeledger_owner
  policy message_tool_sources_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
