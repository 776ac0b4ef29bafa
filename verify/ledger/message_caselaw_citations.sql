-- Verify citeledger:ledger/message_caselaw_citations on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.message_caselaw_citations', $facts$
  column cluster_id bigint not null without statistics
  column created_at timestamp with time zone not null default clock_timestamp()
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column message_id uuid not null
  column opinion_id bigint not null without statistics
  column partial boolean not null default false
  column source_offset_end integer
  column source_offset_start integer
  column source_text text not null without statistics
  column verification_confidence double precision
  column verification_method text
  column verified boolean not null default false
  constraint message_caselaw_citations_confidence_is_a_share CHECK (((verification_confidence >=
    (0)::double precision) AND (verification_confidence <= (1)::double precision)))
  constraint message_caselaw_citations_created_at_is_in_the_calendar CHECK ((isfinite(created_at)
    AND ((EXTRACT(year FROM (created_at AT TIME ZONE 'UTC'::text)) >= (2)::numeric) AND
    (EXTRACT(year FROM (created_at AT TIME ZONE 'UTC'::text)) <= (9998)::numeric))))
  constraint message_caselaw_citations_message_fkey FOREIGN KEY (firm_id, message_id) REFERENCES
    citeledger.messages(firm_id, id) ON DELETE CASCADE
  constraint message_caselaw_citations_message_source_key UNIQUE (firm_id, message_id, id)
  constraint message_caselaw_citations_method_is_known CHECK ((verification_method = ANY
    (ARRAY['exact_match'::text, 'tolerant_match'::text, 'paraphrase_judge'::text,
    'ensemble_strict'::text, 'ensemble_majority'::text, 'failed'::text])))
  constraint message_caselaw_citations_offsets_are_a_range CHECK ((((source_offset_start IS NULL) =
    (source_offset_end IS NULL)) AND (source_offset_start >= 0) AND (source_offset_end >
    source_offset_start)))
  constraint message_caselaw_citations_pkey PRIMARY KEY (firm_id, id)
  constraint message_caselaw_citations_verified_names_method CHECK (((NOT verified) OR
    (verification_method IS NOT NULL)))
  grant delete, insert, select to citeledger_app
  grant update (verification_confidence, verification_method, verified) to citeledger_app
  owner citeledger_owner
  policy message_caselaw_citations_of_the_firm permissive for all to public using (firm_id = (
    SELECT citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
