-- Deploy citeledger:cite/replace_document_pages to pg
-- requires: cite/document_pages
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.pages_fault(
  p_pages jsonb
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_page jsonb;
  v_position bigint;
begin
  if p_pages is null or jsonb_typeof(p_pages) <> 'array' then
    return 'p_pages: not a list of pages';
  end if;
  for v_page, v_position in
    select p.page, p.position
    from jsonb_array_elements(p_pages) with ordinality as p (page, position)
  loop
    if jsonb_typeof(v_page) <> 'object' then
      return format('page %s of the list: not an object', v_position);
    end if;
    if not v_page ?& array['page_number', 'blocks']
      or v_page - array['page_number', 'blocks'] <> '{}'
    then
      return format('page %s of the list: its keys are not page_number and blocks', v_position);
    end if;
    if not citeledger_private.is_whole_number(v_page -> 'page_number', 1) then
      return format(
        'page_number of page %s of the list: not a whole number from 1 to 2147483647', v_position
      );
    end if;
    if jsonb_typeof(v_page -> 'blocks') <> 'array'
      or jsonb_path_exists(v_page -> 'blocks', 'strict $[*] ? (@.type() != "string")')
    then
      return format('blocks of page %s of the list: not a list of texts', v_position);
    end if;
  end loop;
  if (
    select count(*) > count(distinct (p.page ->> 'page_number')::numeric)
    from jsonb_array_elements(p_pages) as p (page)
  ) then
    return 'page_number: a page is given twice';
  end if;
  return null;
end
$$;

create function citeledger.replace_document_pages(
  p_document_id uuid,
  p_pages jsonb
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_fault text := citeledger_private.pages_fault(p_pages);
  v_pages integer;
begin
  if v_fault is not null then
    raise exception using
      errcode = '22023',
      message = 'the pages are malformed',
      detail = format('%s.', v_fault),
      hint = 'Pass [{"page_number": 1, "blocks": ["...", "..."]}, ...].';
  end if;

  perform citeledger_private.queue_ingest(v_firm_id);
  -- Locked before it is read, so that of two replacements at once the second sees all that the
  -- first did.
  perform
  from citeledger.documents as d
  where d.firm_id = v_firm_id and d.id = p_document_id
  for no key update;
  if not found then
    raise exception using
      errcode = 'P0002',
      message = 'document not found',
      detail = 'No document of this id is in the firm of the context.',
      hint = 'Check the id and the firm of the context.';
  end if;

  delete from citeledger.document_pages as p
  where p.firm_id = v_firm_id and p.document_id = p_document_id;

  with written as (
    insert into citeledger.document_pages (firm_id, document_id, page_number)
    select v_firm_id, p_document_id, (p.page ->> 'page_number')::numeric::integer
    from jsonb_array_elements(p_pages) as p (page)
    on conflict do nothing
    returning page_number
  )
  select count(*)::integer into v_pages from written;

  insert into citeledger.document_page_blocks (
    firm_id, document_id, page_number, block_index, content
  )
  select
    v_firm_id, p_document_id, (p.page ->> 'page_number')::numeric::integer,
    b.position - 1, b.content
  from jsonb_array_elements(p_pages) as p (page)
  cross join lateral jsonb_array_elements_text(p.page -> 'blocks') with ordinality
    as b (content, position)
  on conflict do nothing;

  return v_pages;
end
$$;

comment on function citeledger_private.pages_fault(jsonb) is
  'What is wrong with a list of pages, naming the key and the place but none of the text; null '
  'when it is well-formed.';
comment on function citeledger.replace_document_pages(uuid, jsonb) is
  'Replaces all pages of the document p_document_id by p_pages: [{"page_number": from 1, "blocks": '
  '["text", ...]}, ...], in any order; an empty list leaves none. Returns how many pages the '
  'document has now. The text is kept byte for byte. A reader sees the old pages or the new, never '
  'a mixture; of two replacements at once one whole result stays. Locks the firm''s graph and the '
  'document until the transaction ends. For citeledger_app. Errors: 22023 for malformed pages, '
  'naming the key; P0002 when the document is not in the firm; 40001 above read committed when the '
  'pages were replaced after the snapshot.';

revoke all on function citeledger_private.pages_fault(jsonb) from public;
revoke all on function citeledger.replace_document_pages(uuid, jsonb) from public;
grant execute on function citeledger.replace_document_pages(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.replace_document_pages(uuid, jsonb) to citeledger_admin;

commit;
