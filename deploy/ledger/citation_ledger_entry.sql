-- Deploy citeledger:ledger/citation_ledger_entry to pg
-- requires: ledger/message_citations
-- requires: ledger/message_caselaw_citations
-- requires: ledger/message_tool_sources

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.citation_ledger_entry (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  project_id uuid,
  chat_id uuid not null,
  message_id uuid not null,
  source_kind text not null,
  message_citation_id uuid,
  message_caselaw_citation_id uuid,
  message_tool_source_id uuid,
  verification_status text not null,
  confidence double precision,
  provider text,
  retrieved_at timestamptz,
  treatment_id uuid,
  created_at timestamptz not null default now(),
  constraint citation_ledger_entry_pkey primary key (firm_id, id),
  constraint citation_ledger_entry_message_fkey foreign key (firm_id, chat_id, message_id)
    references citeledger.messages (firm_id, chat_id, id) on delete cascade,
  constraint citation_ledger_entry_citation_fkey
    foreign key (firm_id, message_id, message_citation_id)
    references citeledger.message_citations (firm_id, message_id, id) on delete cascade,
  constraint citation_ledger_entry_caselaw_citation_fkey
    foreign key (firm_id, message_id, message_caselaw_citation_id)
    references citeledger.message_caselaw_citations (firm_id, message_id, id) on delete cascade,
  constraint citation_ledger_entry_tool_source_fkey
    foreign key (firm_id, message_id, message_tool_source_id)
    references citeledger.message_tool_sources (firm_id, message_id, id) on delete cascade,
  constraint citation_ledger_entry_has_one_source check (
    num_nonnulls(message_citation_id, message_caselaw_citation_id, message_tool_source_id) = 1
  ),
  constraint citation_ledger_entry_provenance_is_a_tool_source check (
    (verification_status = 'provenance') = (message_tool_source_id is not null)
  ),
  constraint citation_ledger_entry_citation_is_kb_document check (
    message_citation_id is null or source_kind = 'kb_document'
  ),
  constraint citation_ledger_entry_caselaw_citation_is_caselaw check (
    message_caselaw_citation_id is null or source_kind = 'caselaw'
  ),
  constraint citation_ledger_entry_confidence_is_a_share check (
    confidence >= 0 and confidence <= 1
  ),
  constraint citation_ledger_entry_source_kind_is_label check (
    source_kind ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint citation_ledger_entry_verification_status_is_label check (
    verification_status ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint citation_ledger_entry_provider_is_name check (
    provider ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'
  ),
  constraint citation_ledger_entry_treatment_is_reserved check (treatment_id is null)
);

-- Partial, because an entry has one of the three: the other two cost nothing.
create unique index citation_ledger_entry_citation_key
  on citeledger.citation_ledger_entry (firm_id, message_citation_id)
  where message_citation_id is not null;
create unique index citation_ledger_entry_caselaw_citation_key
  on citeledger.citation_ledger_entry (firm_id, message_caselaw_citation_id)
  where message_caselaw_citation_id is not null;
create unique index citation_ledger_entry_tool_source_key
  on citeledger.citation_ledger_entry (firm_id, message_tool_source_id)
  where message_tool_source_id is not null;
create index citation_ledger_entry_chat_idx
  on citeledger.citation_ledger_entry (firm_id, chat_id, message_id);
create index citation_ledger_entry_message_idx
  on citeledger.citation_ledger_entry (firm_id, message_id);
create index citation_ledger_entry_project_idx
  on citeledger.citation_ledger_entry (firm_id, project_id);

alter table citeledger.citation_ledger_entry enable row level security;
alter table citeledger.citation_ledger_entry force row level security;

create policy citation_ledger_entry_of_the_firm on citeledger.citation_ledger_entry
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.citation_ledger_entry is
  'The ledger: one row of metadata for each source that a turn used, never a word of its content. '
  'Written by assemble_ledger_entries, finalize and the triggers of the source tables; by no role.';
comment on column citeledger.citation_ledger_entry.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.citation_ledger_entry.id is
  'The entry; it stays when it is refreshed.';
comment on column citeledger.citation_ledger_entry.project_id is
  'The matter of the chat when the entry was written, kept when the chat moves or the matter goes; '
  'null when there was none.';
comment on column citeledger.citation_ledger_entry.chat_id is 'The chat of the turn.';
comment on column citeledger.citation_ledger_entry.message_id is 'The turn.';
comment on column citeledger.citation_ledger_entry.source_kind is
  'kb_document, caselaw, or the source_kind of the tool source.';
comment on column citeledger.citation_ledger_entry.message_citation_id is
  'The source when it is a citation of an own document, else null.';
comment on column citeledger.citation_ledger_entry.message_caselaw_citation_id is
  'The source when it is a citation of an opinion, else null.';
comment on column citeledger.citation_ledger_entry.message_tool_source_id is
  'The source when a tool brought it, else null.';
comment on column citeledger.citation_ledger_entry.verification_status is
  'The method when the source is verified, unverified when it is not, provenance for a tool''s.';
comment on column citeledger.citation_ledger_entry.confidence is
  'The verifier''s confidence when the source is verified, 0 to 1, else null.';
comment on column citeledger.citation_ledger_entry.provider is
  'courtlistener for caselaw, the tool source''s own provider, null for an own document.';
comment on column citeledger.citation_ledger_entry.retrieved_at is
  'When a source from outside was recorded; null for an own document.';
comment on column citeledger.citation_ledger_entry.treatment_id is
  'Reserved for the later treatment of an opinion; always null.';
comment on column citeledger.citation_ledger_entry.created_at is 'When the entry was written.';
comment on constraint citation_ledger_entry_pkey on citeledger.citation_ledger_entry is
  'An entry is known within its firm.';
comment on constraint citation_ledger_entry_message_fkey on citeledger.citation_ledger_entry is
  'An entry goes with its turn, and its chat is the turn''s.';
comment on constraint citation_ledger_entry_citation_fkey on citeledger.citation_ledger_entry is
  'An entry goes with its citation, and both belong to the same turn.';
comment on constraint citation_ledger_entry_caselaw_citation_fkey
  on citeledger.citation_ledger_entry is
  'An entry goes with its citation, and both belong to the same turn.';
comment on constraint citation_ledger_entry_tool_source_fkey on citeledger.citation_ledger_entry is
  'An entry goes with its tool source, and both belong to the same turn.';
comment on constraint citation_ledger_entry_has_one_source on citeledger.citation_ledger_entry is
  'Exactly one of the three sources is named.';
comment on constraint citation_ledger_entry_provenance_is_a_tool_source
  on citeledger.citation_ledger_entry is
  'What a tool brought is provenance, and nothing else is.';
comment on constraint citation_ledger_entry_citation_is_kb_document
  on citeledger.citation_ledger_entry is
  'A citation of an own document is of the kind kb_document.';
comment on constraint citation_ledger_entry_caselaw_citation_is_caselaw
  on citeledger.citation_ledger_entry is
  'A citation of an opinion is of the kind caselaw.';
comment on constraint citation_ledger_entry_confidence_is_a_share
  on citeledger.citation_ledger_entry is
  'From 0 to 1, or null; NaN is neither.';
comment on constraint citation_ledger_entry_source_kind_is_label
  on citeledger.citation_ledger_entry is
  'A label: it cannot hold content.';
comment on constraint citation_ledger_entry_verification_status_is_label
  on citeledger.citation_ledger_entry is
  'A label: it cannot hold content. A status that verification_tier does not know can be stored, '
  'so that it is counted and flags its turn.';
comment on constraint citation_ledger_entry_provider_is_name on citeledger.citation_ledger_entry is
  'A name: it cannot hold content.';
comment on constraint citation_ledger_entry_treatment_is_reserved
  on citeledger.citation_ledger_entry is
  'Nothing writes a treatment yet.';
comment on index citeledger.citation_ledger_entry_citation_key is
  'A citation has one entry. Referencing side of citation_ledger_entry_citation_fkey.';
comment on index citeledger.citation_ledger_entry_caselaw_citation_key is
  'A citation has one entry. Referencing side of citation_ledger_entry_caselaw_citation_fkey.';
comment on index citeledger.citation_ledger_entry_tool_source_key is
  'A tool source has one entry. Referencing side of citation_ledger_entry_tool_source_fkey.';
comment on index citeledger.citation_ledger_entry_chat_idx is
  'The ledger of a chat. Referencing side of citation_ledger_entry_message_fkey.';
comment on index citeledger.citation_ledger_entry_message_idx is
  'The ledger of a turn, which the gate counts.';
comment on index citeledger.citation_ledger_entry_project_idx is 'The ledger of a matter.';
comment on policy citation_ledger_entry_of_the_firm on citeledger.citation_ledger_entry is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.citation_ledger_entry from public;
grant select on table citeledger.citation_ledger_entry to citeledger_app;

commit;
