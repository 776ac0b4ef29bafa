-- Verify citeledger:cite/document_pages on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.document_pages', $facts$
  column created_at timestamp with time zone not null default now()
  column document_id uuid not null
  column firm_id uuid not null default citeledger.current_firm_id()
  column page_number integer not null
  constraint document_pages_document_fkey FOREIGN KEY (firm_id, document_id) REFERENCES
    citeledger.documents(firm_id, id) ON DELETE CASCADE
  constraint document_pages_page_number_from_one CHECK ((page_number >= 1))
  constraint document_pages_pkey PRIMARY KEY (firm_id, document_id, page_number)
  grant select to citeledger_app
  owner citeledger_owner
  policy document_pages_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

select citeledger_private.verify_relation(
  'citeledger.document_page_blocks', $facts$
  column block_index integer not null
  column content text not null without statistics
  column created_at timestamp with time zone not null default now()
  column document_id uuid not null
  column firm_id uuid not null default citeledger.current_firm_id()
  column page_number integer not null
  constraint document_page_blocks_block_index_from_zero CHECK ((block_index >= 0))
  constraint document_page_blocks_page_fkey FOREIGN KEY (firm_id, document_id, page_number)
    REFERENCES citeledger.document_pages(firm_id, document_id, page_number) ON DELETE CASCADE
  constraint document_page_blocks_pkey PRIMARY KEY (firm_id, document_id, page_number, block_index)
  owner citeledger_owner
  policy document_page_blocks_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
