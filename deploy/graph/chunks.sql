-- Deploy citeledger:graph/chunks to pg
-- requires: cite/documents
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.chunks (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  document_id uuid not null,
  chunk_index integer not null,
  content text not null,
  created_at timestamptz not null default now(),
  constraint chunks_pkey primary key (firm_id, id),
  constraint chunks_document_place_key unique (firm_id, document_id, chunk_index),
  constraint chunks_document_fkey foreign key (firm_id, document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint chunks_chunk_index_from_zero check (chunk_index >= 0)
);

alter table citeledger.chunks enable row level security;
alter table citeledger.chunks force row level security;

create policy chunks_of_the_firm on citeledger.chunks
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger chunks_before_insert
  before insert on citeledger.chunks
  for each statement
  execute function citeledger_private.before_ingest();

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.chunks alter column content set statistics 0;

comment on table citeledger.chunks is
  'Pieces of a document''s text, as they were indexed: what the concept graph has its evidence in.';
comment on column citeledger.chunks.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.chunks.id is
  'The chunk.';
comment on column citeledger.chunks.document_id is
  'The document that it is a piece of.';
comment on column citeledger.chunks.chunk_index is
  'Its place in the document, from 0.';
comment on column citeledger.chunks.content is
  'Its text.';
comment on column citeledger.chunks.created_at is
  'When the row was recorded.';
comment on constraint chunks_pkey on citeledger.chunks is
  'A chunk is known within its firm.';
comment on constraint chunks_document_place_key on citeledger.chunks is
  'A document has a piece at a place once. Referencing side of chunks_document_fkey.';
comment on constraint chunks_document_fkey on citeledger.chunks is
  'A chunk goes with its document.';
comment on constraint chunks_chunk_index_from_zero on citeledger.chunks is
  'Places are counted from 0.';
comment on policy chunks_of_the_firm on citeledger.chunks is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger chunks_before_insert on citeledger.chunks is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.chunks from public;
grant select, insert on table citeledger.chunks to citeledger_app;

commit;
