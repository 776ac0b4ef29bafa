-- Deploy citeledger:graph/record_crossref_work to pg
-- requires: graph/record_references

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.record_crossref_work(
  p_document_id uuid,
  p_work jsonb
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_work jsonb := p_work;
  v_references jsonb;
begin
  -- Crossref's answer has the work in its message; an answer of an error or of a list has none.
  if v_work ? 'message' then
    v_work := v_work -> 'message';
    if v_work ? 'items' and not v_work ? 'reference' then
      v_work := null;
    end if;
  end if;
  v_references := coalesce(nullif(v_work -> 'reference', 'null'), '[]');
  if jsonb_typeof(v_work) is distinct from 'object' or jsonb_typeof(v_references) <> 'array' then
    raise exception using
      errcode = '22023',
      message = 'p_work is not a Crossref work',
      detail = case
        when jsonb_typeof(v_work) is distinct from 'object' then
          'Neither p_work nor its message is an object that describes one work.'
        else format('reference is %s, not a list.', jsonb_typeof(v_references))
      end,
      hint = 'Pass the work, or the answer that holds it as its message.';
  end if;

  return citeledger.record_references(
    p_document_id,
    array(
      select case
        when jsonb_typeof(r.entry) = 'object' and jsonb_typeof(r.entry -> 'DOI') = 'string'
          then r.entry ->> 'DOI'
      end
      from jsonb_array_elements(v_references) with ordinality as r (entry, position)
      order by r.position
    ),
    'crossref'
  );
end
$$;

comment on function citeledger.record_crossref_work(uuid, jsonb) is
  'record_references for a work as Crossref describes it, or for Crossref''s answer that holds it '
  'as its message: its reference[].DOI, under the source crossref. A work without references has '
  'an empty list; an entry without a usable DOI is counted as unusable. Returns what '
  'record_references returns. For citeledger_app. Errors: 22023 when the work is no object or '
  'reference is no list; those of record_references.';

revoke all on function citeledger.record_crossref_work(uuid, jsonb) from public;
grant execute on function citeledger.record_crossref_work(uuid, jsonb) to citeledger_app;
grant execute on function citeledger.record_crossref_work(uuid, jsonb) to citeledger_admin;

commit;
