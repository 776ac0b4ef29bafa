-- The structure of the two schemas, read from the catalogs: comments, owners, row security, foreign
-- keys and their indexes, unique keys, and what every function is declared to be.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(29);

-- A superuser, a role exempt from row security, or an owner would pass tests that guard nothing.
select is(
  (select r.rolsuper from pg_roles as r where r.rolname = session_user),
  false,
  'the login is no superuser'
);
select is(
  (select r.rolbypassrls from pg_roles as r where r.rolname = session_user),
  false,
  'the login is not exempt from row security'
);
select ok(
  not pg_has_role(session_user, 'citeledger_owner', 'member'),
  'the login is no member of citeledger_owner'
);

-- Since PostgreSQL 18 NOT NULL is a constraint too, named by the server; it is the column's.
create function pg_temp.uncommented()
returns table (object text)
language sql
as $$
  with spaces as (
    select n.oid, n.nspname
    from pg_namespace as n
    where n.nspname in ('citeledger', 'citeledger_private')
  ),
  object (class_id, object_id, sub_id, label) as (
    select 'pg_namespace'::regclass, s.oid, 0, format('schema %s', s.nspname) from spaces as s
    union all
    select 'pg_class'::regclass, c.oid, 0, format('%s %s', c.relkind, c.relname)
    from pg_class as c
    join spaces as s on s.oid = c.relnamespace and c.relkind <> 'c'
    -- The index of a primary key or unique constraint is the constraint's.
    where not exists (select from pg_constraint as k where k.conindid = c.oid and k.contype in
      ('p', 'u', 'x'))
    union all
    select 'pg_class'::regclass, c.oid, a.attnum, format('column %s.%s', c.relname, a.attname)
    from pg_class as c
    join spaces as s on s.oid = c.relnamespace
    join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relkind not in ('i', 'I')
    union all
    -- A composite type or an enumeration of ours; each table has a type of its own besides.
    select 'pg_type'::regclass, t.oid, 0, format('type %s', t.typname)
    from pg_type as t
    join spaces as s on s.oid = t.typnamespace
    left join pg_class as c on c.oid = t.typrelid
    where t.typtype in ('e', 'd') or c.relkind = 'c'
    union all
    select 'pg_constraint'::regclass, k.oid, 0, format('constraint %s', k.conname)
    from pg_constraint as k
    join spaces as s on s.oid = k.connamespace
    where k.contype <> 'n'
    union all
    select 'pg_proc'::regclass, p.oid, 0, format('function %s', p.oid::regprocedure)
    from pg_proc as p
    join spaces as s on s.oid = p.pronamespace
    union all
    select 'pg_trigger'::regclass, t.oid, 0, format('trigger %s', t.tgname)
    from pg_trigger as t
    join pg_class as c on c.oid = t.tgrelid
    join spaces as s on s.oid = c.relnamespace
    where not t.tgisinternal
    union all
    select 'pg_policy'::regclass, p.oid, 0, format('policy %s', p.polname)
    from pg_policy as p
    join pg_class as c on c.oid = p.polrelid
    join spaces as s on s.oid = c.relnamespace
  )
  select o.label
  from object as o
  where not exists (
    select
    from pg_description as d
    where d.classoid = o.class_id
      and d.objoid = o.object_id
      and d.objsubid = o.sub_id
      and d.description ~ '[^[:space:]]'
  )
$$;
select is_empty('select object from pg_temp.uncommented()', 'every object has a comment');

-- Names are ours: the server numbers what it has to name itself.
select is_empty(
  $$select k.conname
    from pg_constraint as k
    where k.connamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and k.contype <> 'n'
      and (
        k.conname ~ '(_check|[0-9])$'
        or k.conname not like (select c.relname from pg_class as c where c.oid = k.conrelid) || '%'
      )$$,
  'every constraint has a name of its own that starts with its table''s'
);

-- The owner.
select is_empty(
  $$select o.label, o.owner::regrole
    from (
      select n.nspname::text, n.nspowner
      from pg_namespace as n
      where n.nspname in ('citeledger', 'citeledger_private')
      union all
      select c.oid::regclass::text, c.relowner
      from pg_class as c
      where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      union all
      select p.oid::regprocedure::text, p.proowner
      from pg_proc as p
      where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      union all
      select t.oid::regtype::text, t.typowner
      from pg_type as t
      where t.typnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
    ) as o (label, owner)
    where o.owner <> 'citeledger_owner'::regrole$$,
  'citeledger_owner owns every object'
);
select is(
  (
    select array[r.rolcanlogin, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb]
    from pg_roles as r
    where r.rolname = 'citeledger_owner'
  ),
  array[false, false, false, false, false],
  'citeledger_owner may not log in, is no superuser and not exempt from row security'
);

-- The tables.
select set_eq(
  $$select format(
      '%s %s', c.relname,
      case
        when c.relrowsecurity and c.relforcerowsecurity then 'forced'
        when c.relrowsecurity then 'enabled'
        else 'off'
      end
    )
    from pg_class as c
    where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and c.relkind not in ('i', 'I', 'c')$$,
  array[
    'firms enabled',
    'projects forced',
    'project_members forced',
    'documents forced',
    'chats forced',
    'messages forced',
    'message_citations forced',
    'message_caselaw_citations forced',
    'message_tool_sources forced',
    'citation_ledger_entry forced',
    'citation_ledger_entry_revision forced',
    'work_product_fiduciary_gate forced',
    'finalize_failure forced',
    'document_pages forced',
    'document_page_blocks forced',
    'kg_entities forced',
    'document_citations forced',
    'kg_relationships forced',
    'kg_entity_mentions forced',
    'kg_relation_types forced',
    'chunks forced',
    'document_references forced'
  ],
  'these tables and no other relation, with row security forced on each but firms'
);
create temporary view tenant_tables as
select c.oid, c.relname
from pg_class as c
where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
  and c.relkind in ('r', 'p')
  and c.relname <> 'firms';
select is_empty(
  $$select t.relname
    from tenant_tables as t
    where not exists (
      select
      from pg_attribute as a
      join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = t.oid
        and a.attname = 'firm_id'
        and a.atttypid = 'uuid'::regtype
        and a.attnotnull
        and pg_get_expr(d.adbin, d.adrelid) = 'citeledger.current_firm_id()'
    )$$,
  'every tenant table has firm_id uuid not null default citeledger.current_firm_id()'
);
select is_empty(
  $$select t.relname
    from tenant_tables as t
    where not exists (
      select
      from pg_attribute as a
      where a.attrelid = t.oid
        and a.attname = 'created_at'
        and a.atttypid = 'timestamptz'::regtype
        and a.attnotnull
    )$$,
  'every tenant table has created_at timestamptz not null'
);
select set_eq(
  $$select format('%s: %s', c.relname, pg_get_expr(d.adbin, d.adrelid))
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid and a.attname = 'created_at'
    join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where c.relnamespace = 'citeledger'::regnamespace
      and pg_get_expr(d.adbin, d.adrelid) <> 'now()'$$,
  array[
    'message_citations: clock_timestamp()',
    'message_caselaw_citations: clock_timestamp()',
    'message_tool_sources: clock_timestamp()'
  ],
  'created_at is now(), on the source tables the clock'
);

-- Policies. One permissive policy a table: a second one would widen it.
select is_empty(
  $$select t.relname
    from tenant_tables as t
    where (
        select array_agg(
          format(
            '%s to %s using %s with check %s',
            p.polcmd,
            p.polroles::text,
            regexp_replace(pg_get_expr(p.polqual, p.polrelid), '\s+', ' ', 'g'),
            regexp_replace(pg_get_expr(p.polwithcheck, p.polrelid), '\s+', ' ', 'g')
          )
        )
        from pg_policy as p
        where p.polrelid = t.oid and p.polpermissive
      ) is distinct from array[
        '* to {0} using '
        '(firm_id = ( SELECT citeledger.current_firm_id() AS current_firm_id)) with check '
        '(firm_id = ( SELECT citeledger.current_firm_id() AS current_firm_id))'
      ]$$,
  'every tenant table has one permissive policy: firm_id is the context''s, to read and to write'
);
select set_eq(
  $$select format(
      '%s on %s: %s, %s to %s using %s with check %s',
      p.polname,
      p.polrelid::regclass,
      case when p.polpermissive then 'permissive' else 'restrictive' end,
      p.polcmd,
      p.polroles::text,
      regexp_replace(pg_get_expr(p.polqual, p.polrelid), '\s+', ' ', 'g'),
      regexp_replace(pg_get_expr(p.polwithcheck, p.polrelid), '\s+', ' ', 'g')
    )
    from pg_policy as p
    join pg_class as c on c.oid = p.polrelid
    where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and (not p.polpermissive or c.relname = 'firms')$$,
  array[
    'firms_are_their_own on citeledger.firms: permissive, * to {0} using '
      '(id = ( SELECT citeledger.current_firm_id() AS current_firm_id)) with check '
      '(id = ( SELECT citeledger.current_firm_id() AS current_firm_id))',
    'projects_behind_a_wall on citeledger.projects: restrictive, * to {0} using '
      '(NOT citeledger_private.is_behind_wall(firm_id, id)) with check true'
  ],
  'beside those there is the policy of firms and the wall of projects, which is restrictive'
);

-- Keys.
select is_empty(
  $$select k.conname
    from pg_constraint as k
    where k.contype = 'f'
      and k.conrelid in (select t.oid from tenant_tables as t)
      and k.confrelid in (select t.oid from tenant_tables as t)
      -- firm_id on both sides, and in the same place of the key.
      and not exists (
        select
        from unnest(k.conkey, k.confkey) as pair (here, there)
        join pg_attribute as h on h.attrelid = k.conrelid and h.attnum = pair.here
        join pg_attribute as f on f.attrelid = k.confrelid and f.attnum = pair.there
        where h.attname = 'firm_id' and f.attname = 'firm_id'
      )$$,
  'every foreign key between tenant tables pairs firm_id with firm_id'
);
select is(
  (
    select count(*)
    from pg_constraint as k
    where k.contype = 'f' and k.conrelid in (select t.oid from tenant_tables as t)
  ),
  33::bigint,
  'there are as many foreign keys as were looked at'
);
select is_empty(
  $$select t.relname
    from tenant_tables as t
    where not exists (
      with recursive reached (oid) as (
        select t.oid
        union
        select k.confrelid
        from reached as r
        join pg_constraint as k on k.conrelid = r.oid and k.contype = 'f' and k.confdeltype = 'c'
      )
      select from reached as r where r.oid = 'citeledger.firms'::regclass
    )$$,
  'every tenant table hangs on firms by cascading foreign keys'
);
select is_empty(
  $$select k.conname
    from pg_constraint as k
    where k.contype = 'f'
      and k.connamespace = 'citeledger'::regnamespace
      and (
        -- SET NULL names the columns, else it would null firm_id; nothing is deferred.
        -- A type of relationship that is in use stays declared.
        (k.confdeltype not in ('c', 'n') and k.conname <> 'kg_relationships_relation_type_fkey')
        or (k.confdeltype = 'n' and coalesce(cardinality(k.confdelsetcols), 0) <> 1)
        or k.confupdtype <> 'a'
        or k.condeferrable
      )$$,
  'every foreign key cascades, or sets one named column to null; none is deferrable'
);
select is_empty(
  $$select i.indexrelid::regclass
    from pg_index as i
    where i.indrelid in (select t.oid from tenant_tables as t)
      and i.indisunique
      and (
        select a.attname
        from pg_attribute as a
        where a.attrelid = i.indrelid and a.attnum = i.indkey[0]
      ) is distinct from 'firm_id'$$,
  'every unique key of a tenant table starts with firm_id'
);
select is_empty(
  $$select i.indexrelid::regclass
    from pg_index as i
    join pg_class as c on c.oid = i.indrelid
    where c.relnamespace = 'citeledger'::regnamespace
      and (not i.indisvalid or not i.indisready or not i.indislive)$$,
  'every index is valid'
);
-- A partial index serves a foreign key when it leaves out nothing but nulls.
select is_empty(
  $$select k.conname
    from pg_constraint as k
    where k.contype = 'f'
      and k.connamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and not exists (
        select
        from pg_index as i
        where i.indrelid = k.conrelid
          and i.indisvalid
          and (
            i.indpred is null
            or pg_get_expr(i.indpred, i.indrelid) in (
              select format('(%I IS NOT NULL)', a.attname)
              from pg_attribute as a
              where a.attrelid = k.conrelid and a.attnum = any(k.conkey)
            )
          )
          -- Its leading columns are columns of the key: all of them, or of a partial unique index
          -- as many as it has.
          and (
            select array_agg(i.indkey[n.n] order by n.n)
            from generate_series(
              0, least(cardinality(k.conkey), i.indnkeyatts) - 1
            ) as n (n)
          ) <@ k.conkey
          and (i.indnkeyatts >= cardinality(k.conkey) or (i.indisunique and i.indpred is not null))
      )$$,
  'the referencing side of every foreign key has an index'
);

-- Indexes and triggers, by name: what is not the referencing side of a foreign key would not be
-- missed by the tests above.
select set_eq(
  $$select format(
      '%s%s on %s (%s)%s',
      case when i.indisunique then 'unique ' else '' end,
      x.relname,
      c.relname,
      (
        select string_agg(a.attname, ', ' order by k.place)
        from unnest(i.indkey::smallint[]) with ordinality as k (attnum, place)
        join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum
      ),
      ' where ' || pg_get_expr(i.indpred, i.indrelid)
    )
    from pg_index as i
    join pg_class as c on c.oid = i.indrelid
    join pg_class as x on x.oid = i.indexrelid
    where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)$$,
  array[
    'unique chats_pkey on chats (firm_id, id)',
    'chats_project_idx on chats (firm_id, project_id)',
    'unique citation_ledger_entry_caselaw_citation_key on citation_ledger_entry (firm_id, '
      'message_caselaw_citation_id) where (message_caselaw_citation_id IS NOT NULL)',
    'citation_ledger_entry_chat_idx on citation_ledger_entry (firm_id, chat_id, message_id)',
    'unique citation_ledger_entry_citation_key on citation_ledger_entry (firm_id, '
      'message_citation_id) where (message_citation_id IS NOT NULL)',
    'citation_ledger_entry_message_idx on citation_ledger_entry (firm_id, message_id)',
    'unique citation_ledger_entry_pkey on citation_ledger_entry (firm_id, id)',
    'citation_ledger_entry_project_idx on citation_ledger_entry (firm_id, project_id)',
    'unique citation_ledger_entry_tool_source_key on citation_ledger_entry (firm_id, '
      'message_tool_source_id) where (message_tool_source_id IS NOT NULL)',
    'citation_ledger_entry_revision_entry_idx on citation_ledger_entry_revision (firm_id, '
      'entry_id)',
    'citation_ledger_entry_revision_message_idx on citation_ledger_entry_revision (firm_id, '
      'message_id)',
    'unique citation_ledger_entry_revision_pkey on citation_ledger_entry_revision (firm_id, id)',
    'unique documents_pkey on documents (firm_id, id)',
    'documents_project_idx on documents (firm_id, project_id)',
    'finalize_failure_message_idx on finalize_failure (firm_id, message_id)',
    'unique finalize_failure_pkey on finalize_failure (firm_id, id)',
    'unique firms_pkey on firms (id)',
    'unique message_caselaw_citations_message_source_key on message_caselaw_citations '
      '(firm_id, message_id, id)',
    'unique message_caselaw_citations_pkey on message_caselaw_citations (firm_id, id)',
    'message_citations_document_idx on message_citations (firm_id, source_document_id)',
    'unique message_citations_message_source_key on message_citations (firm_id, message_id, id)',
    'unique message_citations_pkey on message_citations (firm_id, id)',
    'unique message_tool_sources_message_source_key on message_tool_sources (firm_id, '
      'message_id, id)',
    'unique message_tool_sources_pkey on message_tool_sources (firm_id, id)',
    'unique messages_chat_message_key on messages (firm_id, chat_id, id)',
    'unique messages_pkey on messages (firm_id, id)',
    'unique project_members_pkey on project_members (firm_id, project_id, user_id)',
    'unique projects_matter_number_key on projects (firm_id, matter_number)',
    'unique projects_pkey on projects (firm_id, id)',
    'work_product_fiduciary_gate_chat_idx on work_product_fiduciary_gate (firm_id, chat_id, '
      'message_id)',
    'unique work_product_fiduciary_gate_message_key on work_product_fiduciary_gate (firm_id, '
      'message_id)',
    'unique work_product_fiduciary_gate_pkey on work_product_fiduciary_gate (firm_id, id)',
    'work_product_fiduciary_gate_project_idx on work_product_fiduciary_gate (firm_id, project_id)',
    'unique document_pages_pkey on document_pages (firm_id, document_id, page_number)',
    'unique document_page_blocks_pkey on document_page_blocks (firm_id, document_id, '
      'page_number, block_index)',
    'unique kg_entity_mentions_pkey on kg_entity_mentions (firm_id, entity_id, chunk_id)',
    'kg_entity_mentions_chunk_idx on kg_entity_mentions (firm_id, chunk_id)',
    'document_references_doi_key_idx on document_references (firm_id, doi_key)',
    'unique kg_relationships_pkey on kg_relationships (firm_id, id)',
    'unique kg_relation_types_pkey on kg_relation_types (firm_id, relation_type)',
    'unique chunks_pkey on chunks (firm_id, id)',
    'documents_doi_key_idx on documents (firm_id, doi_key) where (doi_key IS NOT NULL)',
    'documents_withdrawn_idx on documents (firm_id, id) where (deleted_at IS NOT NULL)',
    'documents_in_matters_idx on documents (firm_id, id) where (num_nonnulls(project_id) = 1)',
    'kg_relationships_target_entity_idx on kg_relationships (firm_id, target_entity_id, '
      'source_entity_id)',
    'unique document_references_pkey on document_references (firm_id, id)',
    'unique document_references_list_key on document_references (firm_id, document_id, source, '
      'doi_key)',
    'unique kg_entities_name_key on kg_entities (firm_id, name_key)',
    'unique chunks_document_place_key on chunks (firm_id, document_id, chunk_index)',
    'document_citations_cited_idx on document_citations (firm_id, cited_document_id, '
      'citing_document_id)',
    'kg_relationships_source_entity_idx on kg_relationships (firm_id, source_entity_id, '
      'target_entity_id)',
    'kg_relationships_relation_type_idx on kg_relationships (firm_id, relation_type)',
    'kg_relationships_chunk_idx on kg_relationships (firm_id, chunk_id)',
    'unique kg_entities_pkey on kg_entities (firm_id, id)',
    'unique document_citations_pkey on document_citations (firm_id, citing_document_id, '
      'cited_document_id)'
  ],
  'exactly these indexes, unique and not'
);
select set_eq(
  $$select format(
      '%s %s %s of %s for each %s: %s%s',
      t.tgname,
      case when t.tgtype & 2 = 2 then 'before' else 'after' end,
      case
        when t.tgtype & 4 = 4 then 'insert'
        when t.tgtype & 8 = 8 then 'delete'
        when t.tgtype & 16 = 16 then 'update'
      end,
      t.tgrelid::regclass,
      case when t.tgtype & 1 = 1 then 'row' else 'statement' end,
      t.tgfoid::regproc,
      case t.tgenabled when 'O' then '' else ', not as usual' end
    )
    from pg_trigger as t
    join pg_class as c on c.oid = t.tgrelid
    where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and not t.tgisinternal$$,
  array[
    'citation_ledger_entry_keep_deleted after delete of citeledger.citation_ledger_entry for '
      'each statement: citeledger_private.keep_deleted_values',
    'citation_ledger_entry_keep_replaced after update of citeledger.citation_ledger_entry '
      'for each statement: citeledger_private.keep_replaced_values',
    'message_caselaw_citations_deleted after delete of citeledger.message_caselaw_citations '
      'for each statement: citeledger_private.source_deleted',
    'message_caselaw_citations_inserted after insert of citeledger.message_caselaw_citations '
      'for each statement: citeledger_private.source_inserted',
    'message_caselaw_citations_updated after update of citeledger.message_caselaw_citations '
      'for each statement: citeledger_private.citation_updated',
    'message_citations_deleted after delete of citeledger.message_citations for each '
      'statement: citeledger_private.source_deleted',
    'message_citations_inserted after insert of citeledger.message_citations for each '
      'statement: citeledger_private.source_inserted',
    'message_citations_updated after update of citeledger.message_citations for each '
      'statement: citeledger_private.citation_updated',
    'message_tool_sources_deleted after delete of citeledger.message_tool_sources for each '
      'statement: citeledger_private.source_deleted',
    'message_tool_sources_inserted after insert of citeledger.message_tool_sources for each '
      'statement: citeledger_private.source_inserted',
    'messages_finalize_inserted after insert of citeledger.messages for each statement: '
      'citeledger_private.finalize_inserted',
    'messages_finalize_updated after update of citeledger.messages for each statement: '
      'citeledger_private.finalize_updated',
    'messages_seal before update of citeledger.messages for each row: '
      'citeledger_private.seal_message',
    'documents_before_insert before insert of citeledger.documents for each statement: '
      'citeledger_private.before_ingest',
    'chunks_before_insert before insert of citeledger.chunks for each statement: '
      'citeledger_private.before_ingest',
    'kg_relation_types_before_insert before insert of '
      'citeledger.kg_relation_types for each statement: '
      'citeledger_private.before_ingest',
    'kg_entities_before_insert before insert of '
      'citeledger.kg_entities for each statement: '
      'citeledger_private.before_ingest',
    'kg_entity_mentions_before_insert before insert of '
      'citeledger.kg_entity_mentions for each statement: '
      'citeledger_private.before_ingest',
    'kg_relationships_before_insert before insert of '
      'citeledger.kg_relationships for each statement: '
      'citeledger_private.before_ingest',
    'projects_before_delete before delete of citeledger.projects for each statement: '
      'citeledger_private.before_ingest',
    'documents_before_delete before delete of citeledger.documents for each statement: '
      'citeledger_private.before_ingest',
    'documents_left after delete of citeledger.documents for each statement: '
      'citeledger_private.documents_left',
    'documents_changed after update of citeledger.documents for each statement: '
      'citeledger_private.documents_changed',
    'documents_before_update before update of citeledger.documents for each statement: '
      'citeledger_private.before_ingest',
    'documents_arrived after insert of citeledger.documents for each statement: '
      'citeledger_private.documents_arrived'
  ],
  'exactly these triggers, all of them enabled'
);

-- Functions.
select is_empty(
  $$select p.oid::regprocedure
    from pg_proc as p
    cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as g
    where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and g.grantee = 0$$,
  'no function is executable by PUBLIC'
);
select is_empty(
  $$select p.oid::regprocedure, p.proconfig
    from pg_proc as p
    cross join lateral array_remove(p.proconfig, 'jit=off') as c (config)
    where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and c.config is distinct from array['search_path=pg_catalog, pg_temp']
      and c.config is distinct from array[
        'search_path=pg_catalog, pg_temp', 'plan_cache_mode=force_generic_plan'
      ]
      and c.config is distinct from array[
        'search_path=pg_catalog, pg_temp', 'quote_all_identifiers=off'
      ]
      -- Its names were bound when it was made, and the planner may put it in place of a call.
      and not (
        p.prosqlbody is not null
        and p.proconfig is null
        and p.provolatile = 'i'
        and not p.prosecdef
      )$$,
  'every function has its search_path set, and nothing else but how it is planned or quotes'
);
-- Those that read for one turn, document or chat: a plan made for a firm that is newer than the
-- statistics would read all that the firm has. None of them fires a foreign key, whose plans it
-- would spoil.
select set_eq(
  $$select p.proname
    from pg_proc as p
    where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and 'plan_cache_mode=force_generic_plan' = any(p.proconfig)$$,
  array[
    'all_were_settled', 'cite', 'cite_ledger_entry', 'cite_many', 'clear_failures', 'count_entries',
    'documents_in_scope', 'entry_values', 'finalize_report', 'get_citations', 'graph_stage',
    'holds_record', 'judged_references', 'ledger_trace', 'lock_turns', 'read_pages',
    'recheck_document', 'recount', 'resolve_spans', 'settle_turn', 'suggest_spans',
    'visible_documents', 'visible_matter_number', 'walk_citations'
  ],
  'exactly these are planned once for every firm'
);
-- What is called from outside, or by a trigger, runs all the rest.
select set_eq(
  $$select p.oid::regprocedure::text
    from pg_proc as p
    join pg_language as l on l.oid = p.prolang
    where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and (p.pronamespace = 'citeledger'::regnamespace or p.prorettype = 'trigger'::regtype)
      and l.lanname = 'plpgsql'
      and not coalesce('jit=off' = any(p.proconfig), false)$$,
  array[
    -- They read no table, or none whose plan could be dear: a catalog, or to insert one row.
    'citeledger.create_firm(text)', 'citeledger.current_firm_id()', 'citeledger.current_user_id()',
    'citeledger.deep_link(text,uuid,integer,integer)', 'citeledger.has_permission(text)',
    'citeledger.metadata_only_violations()', 'citeledger.normalize_doi(text)',
    'citeledger.require_permission(text)', 'citeledger.set_context(uuid,uuid,text[])'
  ],
  'no other function has its statements compiled'
);
-- Where pg_temp is not named it is searched first, and a temporary table hijacks the function.
select is_empty(
  $$select p.oid::regprocedure, p.proconfig
    from pg_proc as p
    where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and p.prosecdef
      and not exists (
        select
        from unnest(p.proconfig) as s (setting)
        where s.setting ~ '^search_path=.*,\s*"?pg_temp"?$'
      )$$,
  'every security definer function searches pg_temp last'
);
select set_eq(
  $$select format(
      '%s %s %s, parallel %s, security %s',
      p.oid::regprocedure,
      l.lanname,
      case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
      case p.proparallel when 's' then 'safe' when 'r' then 'restricted' else 'unsafe' end,
      case when p.prosecdef then 'definer' else 'invoker' end
    )
    from pg_proc as p
    join pg_language as l on l.oid = p.prolang
    where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)$$,
  array[
    'citeledger.assemble_ledger_entries(uuid) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.check_integrity() plpgsql stable, parallel safe, security definer',
    'citeledger.compute_and_record_gate(uuid) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.create_firm(text) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.current_firm_id() plpgsql stable, parallel safe, security invoker',
    'citeledger.current_user_id() plpgsql stable, parallel safe, security invoker',
    'citeledger.delete_firm(uuid) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.finalize_pending(integer) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.finalize_turn(uuid) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.finalize_turns(uuid[]) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.firm_ids() sql stable, parallel safe, security definer',
    'citeledger.has_permission(text) plpgsql stable, parallel safe, security invoker',
    'citeledger.ledger_trace(uuid,uuid) plpgsql stable, parallel safe, security definer',
    'citeledger.metadata_only_violations() plpgsql stable, parallel safe, security invoker',
    'citeledger.require_permission(text) plpgsql stable, parallel safe, security invoker',
    'citeledger.set_context(uuid,uuid,text[]) plpgsql volatile, parallel unsafe, security invoker',
    'citeledger.verification_tier(text) sql immutable, parallel safe, security invoker',
    'citeledger.version() sql immutable, parallel safe, security invoker',
    'citeledger_private.assemble_rows(uuid,uuid,uuid[])'
      ' plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.assemble_set(uuid,uuid[],uuid[])'
      ' plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.citation_updated() plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.describe_function(regprocedure)'
      ' plpgsql stable, parallel safe, security invoker',
    'citeledger_private.describe_relation(regclass)'
      ' plpgsql stable, parallel safe, security invoker',
    'citeledger_private.enter_firm(uuid) plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.entry_values(uuid,uuid[],uuid[])'
      ' plpgsql stable, parallel safe, security invoker',
    'citeledger_private.expose_hidden_gates(uuid,uuid[]) plpgsql volatile, parallel unsafe, '
      'security invoker',
    'citeledger_private.finalize_inserted() plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.finalize_updated() plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.is_behind_wall(uuid,uuid) plpgsql stable, parallel safe, security definer',
    'citeledger_private.keep_deleted_values() plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.keep_replaced_values()'
      ' plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.leave_firm(text) plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.lock_turns(uuid,uuid[])'
      ' plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.log_failure(uuid,uuid[],text,text)'
      ' plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.record_gates(uuid,uuid[])'
      ' plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.recount(uuid,uuid[]) plpgsql stable, parallel safe, security invoker',
    'citeledger_private.seal_message() plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.settle(uuid,uuid[],uuid[])'
      ' plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.source_deleted() plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.source_inserted() plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.verify_function(regprocedure,text)'
      ' plpgsql stable, parallel safe, security invoker',
    'citeledger_private.verify_lines(text,text[],text,text)'
      ' plpgsql stable, parallel safe, security invoker',
    'citeledger_private.verify_parts(regclass,text)'
      ' plpgsql stable, parallel safe, security invoker',
    'citeledger_private.verify_relation(regclass,text)'
      ' plpgsql stable, parallel safe, security invoker',
    'citeledger_private.withdraw_gates(uuid,uuid[],text,text)'
      ' plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.visible_matter_number(uuid,uuid) plpgsql stable, parallel safe, '
      'security invoker',
    'citeledger_private.holds_record(uuid,uuid,uuid) plpgsql stable, parallel safe, security '
      'invoker',
    'citeledger.replace_document_pages(uuid,jsonb) plpgsql volatile, parallel unsafe, security '
      'definer',
    'citeledger.cite_ledger_entry(uuid) plpgsql stable, parallel safe, security definer',
    'citeledger_private.cite_resolution(text,citeledger_private.span,text) plpgsql stable, '
      'parallel safe, security invoker',
    'citeledger_private.write_span(citeledger_private.span) plpgsql immutable, parallel safe, '
      'security invoker',
    'citeledger_private.cite_answer(text,uuid,integer,integer,jsonb,text) plpgsql stable, '
      'parallel safe, security invoker',
    'citeledger_private.is_plain_span(jsonb) sql immutable, parallel safe, security invoker',
    'citeledger_private.quote_fault(text,integer,integer,text) sql immutable, parallel safe, '
      'security invoker',
    'citeledger.read_pages(uuid,uuid,integer) plpgsql stable, parallel safe, security definer',
    'citeledger_private.matter_link(text) plpgsql stable, parallel safe, security invoker',
    'citeledger_private.page_link(text,uuid,integer,integer) sql immutable, parallel safe, security '
      'invoker',
    'citeledger.deep_link(text,uuid,integer,integer) plpgsql stable, parallel safe, security '
      'invoker',
    'citeledger.suggest_spans(uuid,jsonb,integer) plpgsql stable, parallel safe, security definer',
    'citeledger.cite(uuid,jsonb) plpgsql stable, parallel safe, security definer',
    'citeledger_private.refuse_as_not_found() plpgsql stable, parallel safe, security invoker',
    'citeledger_private.pages_fault(jsonb) plpgsql immutable, parallel safe, security invoker',
    'citeledger_private.is_blank(text) plpgsql immutable, parallel safe, security invoker',
    'citeledger_private.read_span(jsonb) plpgsql immutable, parallel safe, security invoker',
    'citeledger.resolve_span(jsonb) plpgsql stable, parallel safe, security definer',
    'citeledger_private.resolve_spans(uuid,citeledger_private.span[]) plpgsql stable, parallel '
      'safe, security invoker',
    'citeledger.recheck_document(uuid) plpgsql stable, parallel safe, security definer',
    'citeledger.cite_many(uuid,jsonb) plpgsql stable, parallel safe, security definer',
    'citeledger_private.span_fault(jsonb) plpgsql immutable, parallel safe, security invoker',
    'citeledger_private.occurrences(text,text) sql immutable, parallel safe, security invoker',
    'citeledger_private.is_whole_number(jsonb,integer) plpgsql immutable, parallel safe, '
      'security invoker',
    'citeledger_private.documents_in_scope(uuid,uuid[],jsonb) plpgsql stable, parallel safe, '
      'security invoker',
    'citeledger.graph_gc(boolean) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.record_crossref_work(uuid,jsonb) plpgsql volatile, parallel unsafe, security '
      'definer',
    'citeledger_private.visible_documents(uuid,uuid[]) plpgsql stable, parallel safe, security '
      'invoker',
    'citeledger_private.before_ingest() plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.scope_fault(jsonb) plpgsql immutable, parallel safe, security invoker',
    'citeledger.corpus_delete(uuid[]) plpgsql volatile, parallel unsafe, security definer',
    'citeledger.graph_stage(text[],integer,boolean,jsonb,integer) plpgsql stable, parallel '
      'safe, security definer',
    'citeledger_private.documents_arrived() plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.documents_left() plpgsql volatile, parallel unsafe, security definer',
    'citeledger.resolve_references(boolean) plpgsql volatile, parallel unsafe, security definer',
    'citeledger_private.percent_decode(text) plpgsql immutable, parallel safe, security invoker',
    'citeledger_private.documents_changed() plpgsql volatile, parallel unsafe, security definer',
    'citeledger.get_citations(uuid) plpgsql stable, parallel safe, security definer',
    'citeledger_private.settle_new(uuid,uuid[]) plpgsql volatile, parallel unsafe, security '
      'invoker',
    'citeledger_private.gate_status(integer,integer,integer) sql immutable, parallel safe, security '
      'invoker',
    'citeledger_private.all_were_settled(uuid,uuid[]) plpgsql volatile, parallel unsafe, security '
      'invoker',
    'citeledger_private.entry_id(uuid,uuid) sql immutable, parallel safe, security invoker',
    'citeledger_private.settle_turn(uuid,uuid) plpgsql volatile, parallel unsafe, security '
      'invoker',
    'citeledger_private.warn_of_unrecognized(text) plpgsql volatile, parallel unsafe, security '
      'invoker',
    'citeledger_private.count_entries(uuid,uuid) plpgsql stable, parallel safe, security invoker',
    'citeledger_private.finalize_report(uuid,uuid) plpgsql stable, parallel safe, security '
      'invoker',
    'citeledger_private.edge_doi(text) plpgsql immutable, parallel safe, security invoker',
    'citeledger_private.to_span(jsonb) plpgsql immutable, parallel safe, security invoker',
    'citeledger_private.queue_ingest(uuid) plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.lock_graph(uuid) plpgsql volatile, parallel unsafe, security invoker',
    'citeledger_private.judged_references(uuid,uuid[],text[]) plpgsql stable, parallel safe, '
      'security invoker',
    'citeledger_private.edges_in_question(uuid,uuid[],uuid[]) plpgsql stable, parallel safe, '
      'security invoker',
    'citeledger.normalize_doi(text) plpgsql immutable, parallel safe, security definer',
    'citeledger.record_references(uuid,text[],text) plpgsql volatile, parallel unsafe, security '
      'definer',
    'citeledger_private.reconcile_edges(uuid,uuid[],text[],text,boolean) plpgsql volatile, '
      'parallel unsafe, security invoker',
    'citeledger.walk_citations(uuid[],integer,text) plpgsql stable, parallel safe, security '
      'definer',
    'citeledger_private.clear_failures(uuid,uuid[]) plpgsql volatile, parallel unsafe, security '
      'invoker',
    'citeledger_private.assemble_turn(uuid,uuid) plpgsql volatile, parallel unsafe, security '
      'invoker'
  ],
  'every function is what it is declared to be: language, volatility, parallel label, security'
);

-- An estimate of EXPLAIN is made of all rows, whoever asks: a histogram of texts would tell one
-- firm about those of another. Labels and names of the house are no content.
select set_eq(
  $$select format('%s.%s', c.relname, a.attname)
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relkind in ('r', 'p')
      and a.atttypid = 'text'::regtype
      and a.attstattarget is distinct from 0$$,
  array[
    'citation_ledger_entry.provider',
    'citation_ledger_entry.source_kind',
    'citation_ledger_entry.verification_status',
    'citation_ledger_entry_revision.provider',
    'citation_ledger_entry_revision.source_kind',
    'citation_ledger_entry_revision.verification_status',
    'document_citations.source',
    'document_references.source',
    'documents.document_kind',
    'documents.source',
    'finalize_failure.sqlstate',
    'finalize_failure.stage',
    'kg_entities.entity_type',
    'kg_relation_types.relation_type',
    'kg_relationships.relation_type',
    'message_caselaw_citations.verification_method',
    'message_citations.verification_method',
    'message_tool_sources.provider',
    'message_tool_sources.source_kind',
    'messages.role',
    'work_product_fiduciary_gate.gate_status'
  ],
  'statistics are gathered of labels and names alone, of no other text'
);

select * from finish();

rollback;
