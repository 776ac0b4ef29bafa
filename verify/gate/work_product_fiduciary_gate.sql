-- Verify citeledger:gate/work_product_fiduciary_gate on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.work_product_fiduciary_gate', $facts$
  column chat_id uuid not null
  column computed_at timestamp with time zone not null default clock_timestamp()
  column confidence double precision
  column created_at timestamp with time zone not null default now()
  column fail_count integer not null
  column firm_id uuid not null default citeledger.current_firm_id()
  column gate_status text not null
  column id uuid not null default gen_random_uuid()
  column message_id uuid not null
  column pass_count integer not null
  column project_id uuid
  column supported_count integer not null
  column total_assertions integer not null
  column unrecognized_count integer not null
  constraint work_product_fiduciary_gate_confidence_is_a_share CHECK (((confidence >= (0)::double
    precision) AND (confidence <= (1)::double precision)))
  constraint work_product_fiduciary_gate_counts_are_not_negative CHECK (((pass_count >= 0) AND
    (supported_count >= 0) AND (fail_count >= 0) AND (unrecognized_count >= 0)))
  constraint work_product_fiduciary_gate_message_fkey FOREIGN KEY (firm_id, chat_id, message_id)
    REFERENCES citeledger.messages(firm_id, chat_id, id) ON DELETE CASCADE
  constraint work_product_fiduciary_gate_message_key UNIQUE (firm_id, message_id)
  constraint work_product_fiduciary_gate_pkey PRIMARY KEY (firm_id, id)
  constraint work_product_fiduciary_gate_project_fkey FOREIGN KEY (firm_id, project_id) REFERENCES
    citeledger.projects(firm_id, id) ON DELETE SET NULL (project_id)
  constraint work_product_fiduciary_gate_status_is_label CHECK ((gate_status ~
    '^[a-z][a-z0-9_]{0,31}$'::text))
  constraint work_product_fiduciary_gate_status_is_what_counts_say CHECK ((gate_status = CASE WHEN
    ((fail_count > 0) OR (unrecognized_count > 0)) THEN 'flagged'::text WHEN (supported_count > 0)
    THEN 'supported_only'::text ELSE 'fiduciary_grade'::text END))
  constraint work_product_fiduciary_gate_total_is_the_sum CHECK ((total_assertions = ((pass_count +
    supported_count) + fail_count)))
  grant select to citeledger_app
  index CREATE INDEX work_product_fiduciary_gate_chat_idx ON citeledger.work_product_fiduciary_gate
    USING btree (firm_id, chat_id, message_id)
  index CREATE INDEX work_product_fiduciary_gate_project_idx ON
    citeledger.work_product_fiduciary_gate USING btree (firm_id, project_id)
  owner citeledger_owner
  policy work_product_fiduciary_gate_of_the_firm permissive for all to public using (firm_id = (
    SELECT citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
