-- Deploy citeledger:cite/document_pages to pg
-- requires: cite/documents

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Offsets are Unicode code points and quotes are compared byte by byte: only UTF8 has both.
do $$
begin
  if pg_catalog.getdatabaseencoding() <> 'UTF8' then
    raise exception using
      errcode = '55000',
      message = 'the database is not encoded in UTF8',
      detail = pg_catalog.format('Its encoding is %s.', pg_catalog.getdatabaseencoding()),
      hint = 'Create a database with encoding UTF8 and deploy there.';
  end if;
end
$$;

create table citeledger.document_pages (
  firm_id uuid not null default citeledger.current_firm_id(),
  document_id uuid not null,
  page_number integer not null,
  created_at timestamptz not null default now(),
  constraint document_pages_pkey primary key (firm_id, document_id, page_number),
  constraint document_pages_document_fkey foreign key (firm_id, document_id)
    references citeledger.documents (firm_id, id) on delete cascade,
  constraint document_pages_page_number_from_one check (page_number >= 1)
);

create table citeledger.document_page_blocks (
  firm_id uuid not null default citeledger.current_firm_id(),
  document_id uuid not null,
  page_number integer not null,
  block_index integer not null,
  content text not null,
  created_at timestamptz not null default now(),
  constraint document_page_blocks_pkey
    primary key (firm_id, document_id, page_number, block_index),
  constraint document_page_blocks_page_fkey foreign key (firm_id, document_id, page_number)
    references citeledger.document_pages (firm_id, document_id, page_number) on delete cascade,
  constraint document_page_blocks_block_index_from_zero check (block_index >= 0)
);

alter table citeledger.document_pages enable row level security;
alter table citeledger.document_pages force row level security;
alter table citeledger.document_page_blocks enable row level security;
alter table citeledger.document_page_blocks force row level security;

create policy document_pages_of_the_firm on citeledger.document_pages
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));
create policy document_page_blocks_of_the_firm on citeledger.document_page_blocks
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.document_page_blocks alter column content set statistics 0;

comment on table citeledger.document_pages is
  'The pages of a document as it is now. Replaced as a whole by replace_document_pages.';
comment on column citeledger.document_pages.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.document_pages.document_id is 'The document.';
comment on column citeledger.document_pages.page_number is 'The page, counted from 1.';
comment on column citeledger.document_pages.created_at is 'When the pages were last replaced.';
comment on constraint document_pages_pkey on citeledger.document_pages is
  'A document has a page once.';
comment on constraint document_pages_document_fkey on citeledger.document_pages is
  'A page goes with its document.';
comment on constraint document_pages_page_number_from_one on citeledger.document_pages is
  'Pages are counted from 1.';
comment on policy document_pages_of_the_firm on citeledger.document_pages is
  'Only rows of the firm of the context, to read and to write.';

comment on table citeledger.document_page_blocks is
  'The text of each page, a row for each block. No role may select it: the text is reached through '
  'functions that check who asks.';
comment on column citeledger.document_page_blocks.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.document_page_blocks.document_id is 'The document.';
comment on column citeledger.document_page_blocks.page_number is 'The page, counted from 1.';
comment on column citeledger.document_page_blocks.block_index is
  'The block of the page, counted from 0 without a gap.';
comment on column citeledger.document_page_blocks.content is
  'The block''s text, byte for byte as it was given. The text of a page is its blocks joined by '
  'one line feed.';
comment on column citeledger.document_page_blocks.created_at is
  'When the pages were last replaced.';
comment on constraint document_page_blocks_pkey on citeledger.document_page_blocks is
  'A page has a block once.';
comment on constraint document_page_blocks_page_fkey on citeledger.document_page_blocks is
  'A block goes with its page.';
comment on constraint document_page_blocks_block_index_from_zero
  on citeledger.document_page_blocks is
  'Blocks are counted from 0.';
comment on policy document_page_blocks_of_the_firm on citeledger.document_page_blocks is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.document_pages from public;
revoke all on table citeledger.document_page_blocks from public;
grant select on table citeledger.document_pages to citeledger_app;

commit;
