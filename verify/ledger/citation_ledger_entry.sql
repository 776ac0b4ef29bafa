-- Verify citeledger:ledger/citation_ledger_entry on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.citation_ledger_entry', $facts$
  column chat_id uuid not null
  column confidence double precision
  column created_at timestamp with time zone not null default now()
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column message_caselaw_citation_id uuid
  column message_citation_id uuid
  column message_id uuid not null
  column message_tool_source_id uuid
  column project_id uuid
  column provider text
  column retrieved_at timestamp with time zone
  column source_kind text not null
  column treatment_id uuid
  column verification_status text not null
  constraint citation_ledger_entry_caselaw_citation_fkey FOREIGN KEY (firm_id, message_id,
    message_caselaw_citation_id) REFERENCES citeledger.message_caselaw_citations(firm_id,
    message_id, id) ON DELETE CASCADE
  constraint citation_ledger_entry_caselaw_citation_is_caselaw CHECK (((message_caselaw_citation_id
    IS NULL) OR (source_kind = 'caselaw'::text)))
  constraint citation_ledger_entry_citation_fkey FOREIGN KEY (firm_id, message_id,
    message_citation_id) REFERENCES citeledger.message_citations(firm_id, message_id, id) ON DELETE
    CASCADE
  constraint citation_ledger_entry_citation_is_kb_document CHECK (((message_citation_id IS NULL) OR
    (source_kind = 'kb_document'::text)))
  constraint citation_ledger_entry_confidence_is_a_share CHECK (((confidence >= (0)::double
    precision) AND (confidence <= (1)::double precision)))
  constraint citation_ledger_entry_has_one_source CHECK ((num_nonnulls(message_citation_id,
    message_caselaw_citation_id, message_tool_source_id) = 1))
  constraint citation_ledger_entry_message_fkey FOREIGN KEY (firm_id, chat_id, message_id)
    REFERENCES citeledger.messages(firm_id, chat_id, id) ON DELETE CASCADE
  constraint citation_ledger_entry_pkey PRIMARY KEY (firm_id, id)
  constraint citation_ledger_entry_provenance_is_a_tool_source CHECK (((verification_status =
    'provenance'::text) = (message_tool_source_id IS NOT NULL)))
  constraint citation_ledger_entry_provider_is_name CHECK ((provider ~
    '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'::text))
  constraint citation_ledger_entry_source_kind_is_label CHECK ((source_kind ~
    '^[a-z][a-z0-9_]{0,31}$'::text))
  constraint citation_ledger_entry_tool_source_fkey FOREIGN KEY (firm_id, message_id,
    message_tool_source_id) REFERENCES citeledger.message_tool_sources(firm_id, message_id, id) ON
    DELETE CASCADE
  constraint citation_ledger_entry_treatment_is_reserved CHECK ((treatment_id IS NULL))
  constraint citation_ledger_entry_verification_status_is_label CHECK ((verification_status ~
    '^[a-z][a-z0-9_]{0,31}$'::text))
  grant select to citeledger_app
  index CREATE INDEX citation_ledger_entry_chat_idx ON citeledger.citation_ledger_entry USING btree
    (firm_id, chat_id, message_id)
  index CREATE INDEX citation_ledger_entry_message_idx ON citeledger.citation_ledger_entry USING
    btree (firm_id, message_id)
  index CREATE INDEX citation_ledger_entry_project_idx ON citeledger.citation_ledger_entry USING
    btree (firm_id, project_id)
  index CREATE UNIQUE INDEX citation_ledger_entry_caselaw_citation_key ON
    citeledger.citation_ledger_entry USING btree (firm_id, message_caselaw_citation_id) WHERE
    (message_caselaw_citation_id IS NOT NULL)
  index CREATE UNIQUE INDEX citation_ledger_entry_citation_key ON citeledger.citation_ledger_entry
    USING btree (firm_id, message_citation_id) WHERE (message_citation_id IS NOT NULL)
  index CREATE UNIQUE INDEX citation_ledger_entry_tool_source_key ON
    citeledger.citation_ledger_entry USING btree (firm_id, message_tool_source_id) WHERE
    (message_tool_source_id IS NOT NULL)
  owner citeledger_owner
  policy citation_ledger_entry_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
