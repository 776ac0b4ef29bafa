-- Revert citeledger:cite/deep_link from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

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
declare
  v_matter text := p_matter_number;
begin
  -- Percent-encoding of RFC 3986: every byte that is not unreserved. Most numbers have none.
  if translate(
    p_matter_number, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~-', ''
  ) <> '' then
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

  return format('/matters/%s/record/doc/%s?page=%s', v_matter, p_document_id, p_page_number)
    || coalesce('&block=' || p_block_index, '');
end
$$;

comment on function citeledger.deep_link(text, uuid, integer, integer) is
  'The link to a page of a document, with the block where p_block_index is given: '
  '/matters/{matter_number}/record/doc/{document_id}?page={page_number}[&block={block_index}], the '
  'matter number percent-encoded. Built here and nowhere else, and granted to nobody: no link '
  'exists for what did not verify.';

revoke all on function citeledger.deep_link(text, uuid, integer, integer) from public;

drop function citeledger_private.page_link(text, uuid, integer, integer);
drop function citeledger_private.matter_link(text);

commit;
