-- Deploy citeledger:cite/documents to pg
-- requires: tenancy/projects
-- requires: graph/normalize_doi

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.documents (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  project_id uuid,
  title text not null,
  document_kind text not null default 'record',
  is_privileged boolean not null default false,
  deleted_at timestamptz,
  doi text,
  license_class text not null default 'unknown',
  source text not null default 'local',
  publication_year integer,
  doi_key text generated always as (citeledger.normalize_doi(doi)) stored,
  created_at timestamptz not null default now(),
  constraint documents_pkey primary key (firm_id, id),
  constraint documents_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint documents_project_fkey foreign key (firm_id, project_id)
    references citeledger.projects (firm_id, id) on delete set null (project_id),
  constraint documents_document_kind_is_known check (
    document_kind in ('record', 'work_product', 'authority', 'publication')
  ),
  constraint documents_source_is_label check (source ~ '^[a-z][a-z0-9_]{0,31}$')
);

create index documents_project_idx on citeledger.documents (firm_id, project_id);
create index documents_doi_key_idx on citeledger.documents (firm_id, doi_key)
  where doi_key is not null;

alter table citeledger.documents enable row level security;
alter table citeledger.documents force row level security;

create policy documents_of_the_firm on citeledger.documents
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content, nor of what a firm reads: an estimate would tell one firm about
-- another.
alter table citeledger.documents alter column title set statistics 0;
alter table citeledger.documents alter column license_class set statistics 0;
alter table citeledger.documents alter column publication_year set statistics 0;
alter table citeledger.documents alter column doi set statistics 0;
alter table citeledger.documents alter column doi_key set statistics 0;

comment on table citeledger.documents is
  'Documents that citations point to. Only a live, non-privileged record of a visible matter can '
  'be cited.';
comment on column citeledger.documents.firm_id is 'The tenant; default the firm of the context.';
comment on column citeledger.documents.id is 'The document.';
comment on column citeledger.documents.project_id is
  'The matter that holds it; null for one of the whole firm, and after its matter was deleted.';
comment on column citeledger.documents.title is 'Display title.';
comment on column citeledger.documents.document_kind is
  'record (evidence of the matter), work_product, authority or publication.';
comment on column citeledger.documents.is_privileged is
  'Privileged: never cited, and its quotes are withheld from traces.';
comment on column citeledger.documents.deleted_at is
  'When it was withdrawn; null while it is live.';
comment on column citeledger.documents.doi is 'Its DOI as printed, or null.';
comment on column citeledger.documents.license_class is
  'Licence under which its text may be used; unknown until somebody looked.';
comment on column citeledger.documents.source is
  'Where the document came from: a label such as local or crossref.';
comment on column citeledger.documents.publication_year is 'Year of publication, or null.';
comment on column citeledger.documents.doi_key is
  'The DOI''s key by normalize_doi, by which references find the document; null when doi holds '
  'none.';
comment on column citeledger.documents.created_at is 'When the row was recorded.';
comment on constraint documents_pkey on citeledger.documents is
  'A document is known within its firm.';
comment on constraint documents_firm_fkey on citeledger.documents is
  'A document goes with its firm.';
comment on constraint documents_project_fkey on citeledger.documents is
  'A document belongs to a matter of its own firm; when the matter goes it belongs to none.';
comment on constraint documents_document_kind_is_known on citeledger.documents is
  'One of record, work_product, authority, publication.';
comment on constraint documents_source_is_label on citeledger.documents is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on index citeledger.documents_project_idx is
  'The documents of a matter; the referencing side of documents_project_fkey.';
comment on index citeledger.documents_doi_key_idx is
  'Who holds a DOI: asked when a list names it.';
comment on policy documents_of_the_firm on citeledger.documents is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.documents from public;
grant select, insert on table citeledger.documents to citeledger_app;
grant update (
  project_id, title, document_kind, is_privileged, deleted_at, doi, license_class, source,
  publication_year
) on table citeledger.documents to citeledger_app;

commit;
