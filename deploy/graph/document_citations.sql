-- Deploy citeledger:graph/document_citations to pg
-- requires: cite/documents
-- requires: graph/normalize_doi

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.document_citations (
  firm_id uuid not null default citeledger.current_firm_id(),
  citing_document_id uuid not null,
  cited_document_id uuid not null,
  cited_doi text not null,
  source text not null,
  created_at timestamptz not null default now(),
  constraint document_citations_pkey
    primary key (firm_id, citing_document_id, cited_document_id),
  constraint document_citations_citing_fkey foreign key (firm_id, citing_document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint document_citations_cited_fkey foreign key (firm_id, cited_document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint document_citations_no_self_citation check (citing_document_id <> cited_document_id),
  constraint document_citations_cited_doi_is_doi check (
    citeledger.normalize_doi(cited_doi) is not null
  ),
  constraint document_citations_source_is_label check (source ~ '^[a-z][a-z0-9_]{0,31}$')
);

create index document_citations_cited_idx
  on citeledger.document_citations (firm_id, cited_document_id, citing_document_id);

alter table citeledger.document_citations enable row level security;
alter table citeledger.document_citations force row level security;

create policy document_citations_of_the_firm on citeledger.document_citations
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.document_citations alter column cited_doi set statistics 0;

comment on table citeledger.document_citations is
  'The citation graph: an edge where a live document''s list names the DOI of exactly one other '
  'live document of the firm. Kept by record_references, resolve_references and the triggers of '
  'documents; by no role.';
comment on column citeledger.document_citations.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.document_citations.citing_document_id is 'Who cites.';
comment on column citeledger.document_citations.cited_document_id is 'Who is cited.';
comment on column citeledger.document_citations.cited_doi is
  'The DOI as printed in the first list, by source and place, that gives the edge.';
comment on column citeledger.document_citations.source is 'The source of that list.';
comment on column citeledger.document_citations.created_at is 'When the edge was resolved.';
comment on constraint document_citations_pkey on citeledger.document_citations is
  'A document cites another once. Serves the walk from the citing side and the referencing side of '
  'document_citations_citing_fkey.';
comment on constraint document_citations_citing_fkey on citeledger.document_citations is
  'An edge goes with the document that cites.';
comment on constraint document_citations_cited_fkey on citeledger.document_citations is
  'An edge goes with the document that is cited; the reference stays and is unresolved again.';
comment on constraint document_citations_no_self_citation on citeledger.document_citations is
  'No document cites itself.';
comment on constraint document_citations_cited_doi_is_doi on citeledger.document_citations is
  'A DOI: it cannot hold content.';
comment on constraint document_citations_source_is_label on citeledger.document_citations is
  'A label: it cannot hold content.';
comment on index citeledger.document_citations_cited_idx is
  'The walk from the cited side. Referencing side of document_citations_cited_fkey.';
comment on policy document_citations_of_the_firm on citeledger.document_citations is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.document_citations from public;
grant select on table citeledger.document_citations to citeledger_app;

commit;
