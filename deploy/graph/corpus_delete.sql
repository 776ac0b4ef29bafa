-- Deploy citeledger:graph/corpus_delete to pg
-- requires: graph/document_triggers
-- requires: graph/kg_entity_mentions
-- requires: graph/kg_relationships
-- requires: cite/document_pages

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.corpus_delete(
  p_document_ids uuid[]
)
returns jsonb
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_document_ids uuid[];
  v_counts jsonb;
  v_deleted bigint;
begin
  perform citeledger_private.lock_graph(v_firm_id);
  v_document_ids := array(
    select l.id
    from (
      select d.id
      from citeledger.documents as d
      where d.firm_id = v_firm_id and d.id = any(p_document_ids)
      order by d.id
      for update
    ) as l
  );

  select jsonb_build_object(
    'pages', (
      select count(*) from citeledger.document_pages as p
      where p.firm_id = v_firm_id and p.document_id = any(v_document_ids)
    ),
    'blocks', (
      select count(*) from citeledger.document_page_blocks as b
      where b.firm_id = v_firm_id and b.document_id = any(v_document_ids)
    ),
    'chunks', (
      select count(*) from citeledger.chunks as c
      where c.firm_id = v_firm_id and c.document_id = any(v_document_ids)
    ),
    'mentions', (
      select count(*)
      from citeledger.chunks as c
      join citeledger.kg_entity_mentions as m on m.firm_id = v_firm_id and m.chunk_id = c.id
      where c.firm_id = v_firm_id and c.document_id = any(v_document_ids)
    ),
    'relationships', (
      select count(*)
      from citeledger.chunks as c
      join citeledger.kg_relationships as r on r.firm_id = v_firm_id and r.chunk_id = c.id
      where c.firm_id = v_firm_id and c.document_id = any(v_document_ids)
    ),
    'references', (
      select count(*) from citeledger.document_references as r
      where r.firm_id = v_firm_id and r.document_id = any(v_document_ids)
    ),
    'citations', (
      select count(*) from citeledger.document_citations as e
      where e.firm_id = v_firm_id
        and (
          e.citing_document_id = any(v_document_ids) or e.cited_document_id = any(v_document_ids)
        )
    )
  )
  into v_counts;

  with deleted as (
    delete from citeledger.documents as d
    where d.firm_id = v_firm_id and d.id = any(v_document_ids)
    returning d.id
  )
  select count(*) into v_deleted from deleted;
  return jsonb_build_object('documents', v_deleted) || v_counts;
end
$$;

comment on function citeledger.corpus_delete(uuid[]) is
  'Deletes documents of the context''s firm with all that was made of them, and returns how many '
  'rows of each kind went: {"documents", "pages", "blocks", "chunks", "mentions", "relationships", '
  '"references", "citations"}. Ids that are not there are passed over. References to them are '
  'unresolved again. Quotes that a turn already cited stay with that turn. Entities without '
  'evidence are left to graph_gc. Locks the firm''s graph and the documents until the transaction '
  'ends. For citeledger_admin. Errors: 25000 above read committed.';

revoke all on function citeledger.corpus_delete(uuid[]) from public;
grant execute on function citeledger.corpus_delete(uuid[]) to citeledger_admin;

commit;
