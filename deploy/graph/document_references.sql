-- Deploy citeledger:graph/document_references to pg
-- requires: cite/documents
-- requires: graph/normalize_doi

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.document_references (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  document_id uuid not null,
  position integer not null,
  cited_doi text not null,
  source text not null,
  doi_key text not null generated always as (citeledger.normalize_doi(cited_doi)) stored,
  created_at timestamptz not null default now(),
  constraint document_references_pkey primary key (firm_id, id),
  constraint document_references_list_key unique (firm_id, document_id, source, doi_key),
  constraint document_references_document_fkey foreign key (firm_id, document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint document_references_position_from_one check (position >= 1),
  constraint document_references_source_is_label check (source ~ '^[a-z][a-z0-9_]{0,31}$')
);

create index document_references_doi_key_idx
  on citeledger.document_references (firm_id, doi_key);

alter table citeledger.document_references enable row level security;
alter table citeledger.document_references force row level security;

create policy document_references_of_the_firm on citeledger.document_references
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.document_references alter column cited_doi set statistics 0;
alter table citeledger.document_references alter column doi_key set statistics 0;

comment on table citeledger.document_references is
  'The reference lists of documents as printed, resolved or not: what is cited need not be here. '
  'Written by record_references; by no role.';
comment on column citeledger.document_references.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.document_references.id is 'The reference.';
comment on column citeledger.document_references.document_id is 'The citing document.';
comment on column citeledger.document_references.position is
  'Its place in the list as it was given, from 1; places without a usable DOI leave gaps.';
comment on column citeledger.document_references.cited_doi is 'The DOI as printed.';
comment on column citeledger.document_references.source is
  'Who says so: a label such as crossref. A document has one list for each source.';
comment on column citeledger.document_references.doi_key is
  'The DOI''s key by normalize_doi: what it is resolved by.';
comment on column citeledger.document_references.created_at is 'When the list was recorded.';
comment on constraint document_references_pkey on citeledger.document_references is
  'A reference is known within its firm.';
comment on constraint document_references_list_key on citeledger.document_references is
  'A list names a DOI once. Referencing side of document_references_document_fkey.';
comment on constraint document_references_document_fkey on citeledger.document_references is
  'A list goes with its document.';
comment on constraint document_references_position_from_one on citeledger.document_references is
  'Places are counted from 1.';
comment on constraint document_references_source_is_label on citeledger.document_references is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on index citeledger.document_references_doi_key_idx is
  'Who cites a DOI: asked when a document with it arrives or leaves.';
comment on policy document_references_of_the_firm on citeledger.document_references is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.document_references from public;
grant select on table citeledger.document_references to citeledger_app;

commit;
