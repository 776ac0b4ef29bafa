-- Deploy citeledger:cite/deep_link to pg
-- requires: cite/deep_link@v0.1.0

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger_private.matter_link(
  p_matter_number text
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_matter text := p_matter_number;
begin
  -- Percent-encoding of RFC 3986: every byte that is not unreserved. Most numbers have none.
  if p_matter_number collate "C" ~ '[^A-Za-z0-9._~-]' then
    select string_agg(
      case
        when c.letter collate "C" ~ '^[A-Za-z0-9._~-]$' then c.letter
        else regexp_replace(
          upper(encode(convert_to(c.letter, 'UTF8'), 'hex')), '(..)', E'%\\1', 'g'
        )
      end,
      ''
      order by c.position
    )
    into v_matter
    from string_to_table(p_matter_number, null) with ordinality as c (letter, position);
  end if;
  return '/matters/' || coalesce(v_matter, '') || '/record/doc/';
end
$$;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.page_link(
  p_matter_link text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer
)
returns text
language sql
immutable
parallel safe
security invoker
return p_matter_link
  || coalesce(p_document_id::text, '')
  || '?page='
  || coalesce(p_page_number::text, '')
  || coalesce('&block=' || p_block_index::text, '');

create or replace function citeledger.deep_link(
  p_matter_number text,
  p_document_id uuid,
  p_page_number integer,
  p_block_index integer default null
)
returns text
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return citeledger_private.page_link(
    citeledger_private.matter_link(p_matter_number), p_document_id, p_page_number, p_block_index
  );
end
$$;

comment on function citeledger_private.matter_link(text) is
  'What the links to the pages of a matter begin with: /matters/{matter_number}/record/doc/, the '
  'matter number percent-encoded.';
comment on function citeledger_private.page_link(text, uuid, integer, integer) is
  'The link to a page, behind the beginning that matter_link gives: what deep_link returns, for '
  'many pages of one matter.';
comment on function citeledger.deep_link(text, uuid, integer, integer) is
  'The link to a page of a document, with the block where p_block_index is given: '
  '/matters/{matter_number}/record/doc/{document_id}?page={page_number}[&block={block_index}], the '
  'matter number percent-encoded. Built here and nowhere else, and granted to nobody: no link '
  'exists for what did not verify.';

revoke all on function citeledger_private.matter_link(text) from public;
revoke all on function citeledger_private.page_link(text, uuid, integer, integer) from public;
revoke all on function citeledger.deep_link(text, uuid, integer, integer) from public;

commit;
