-- Verify citeledger:ledger/finalize_failure on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.finalize_failure', $facts$
  column created_at timestamp with time zone not null default now()
  column failed_at timestamp with time zone not null default clock_timestamp()
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column message_id uuid not null
  column sqlstate text not null
  column stage text not null
  constraint finalize_failure_message_fkey FOREIGN KEY (firm_id, message_id) REFERENCES
    citeledger.messages(firm_id, id) ON DELETE CASCADE
  constraint finalize_failure_pkey PRIMARY KEY (firm_id, id)
  constraint finalize_failure_sqlstate_is_code CHECK ((sqlstate ~ '^[0-9A-Z]{5}$'::text))
  constraint finalize_failure_stage_is_label CHECK ((stage ~ '^[a-z][a-z0-9_]{0,31}$'::text))
  grant select to citeledger_app
  index CREATE INDEX finalize_failure_message_idx ON citeledger.finalize_failure USING btree
    (firm_id, message_id)
  owner citeledger_owner
  policy finalize_failure_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
