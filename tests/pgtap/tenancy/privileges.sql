-- Who may do what, exactly: each role's privileges on every schema, table, column, function and
-- type of citeledger, compared as a whole with what the catalogs say. A grant too many is as red as
-- one too few.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(14);

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

select set_eq(
  $$select format(
      '%s: %s to %s%s',
      n.nspname,
      lower(g.privilege_type collate "C"),
      case when g.grantee = 0 then 'public' else g.grantee::regrole::text end,
      case when g.is_grantable then ' with grant option' else '' end
    )
    from pg_namespace as n
    cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as g
    where n.nspname in ('citeledger', 'citeledger_private') and g.grantee <> n.nspowner$$,
  array[
    'citeledger: usage to citeledger_reader',
    'citeledger: usage to citeledger_app',
    'citeledger: usage to citeledger_admin'
  ],
  'schemas: all three roles may look into citeledger, nobody into citeledger_private'
);

select set_eq(
  $$select format(
      '%s: %s to %s%s',
      c.relname,
      string_agg(lower(g.privilege_type collate "C"), ', ' order by g.privilege_type collate "C"),
      case when g.grantee = 0 then 'public' else g.grantee::regrole::text end,
      case when g.is_grantable then ' with grant option' else '' end
    )
    from pg_class as c
    cross join lateral aclexplode(c.relacl) as g
    where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and c.relkind not in ('i', 'I')
      and g.grantee <> c.relowner
    group by c.relname, g.grantee, g.is_grantable$$,
  array[
    'firms: select to citeledger_app',
    'projects: insert, select to citeledger_app',
    'projects: delete, insert, select to citeledger_admin',
    'project_members: delete, insert, select, update to citeledger_admin',
    'documents: insert, select to citeledger_app',
    'chats: insert, select to citeledger_app',
    'chats: delete, insert, select to citeledger_admin',
    'messages: insert, select to citeledger_app',
    'messages: delete, insert, select to citeledger_admin',
    'message_citations: delete, insert, select to citeledger_app',
    'message_caselaw_citations: delete, insert, select to citeledger_app',
    'message_tool_sources: delete, insert, select to citeledger_app',
    'citation_ledger_entry: select to citeledger_app',
    'citation_ledger_entry_revision: select to citeledger_app',
    'work_product_fiduciary_gate: select to citeledger_app',
    'finalize_failure: select to citeledger_app',
    'document_pages: select to citeledger_app',
    'kg_entity_mentions: insert, select to citeledger_app',
    'chunks: insert, select to citeledger_app',
    'document_citations: select to citeledger_app',
    'document_references: select to citeledger_app',
    'kg_relationships: insert, select to citeledger_app',
    'kg_entities: insert, select to citeledger_app',
    'kg_relation_types: insert, select to citeledger_app'
  ],
  'tables: exactly these privileges, none for the reader, none for PUBLIC'
);

select set_eq(
  $$select format(
      '%s: %s of %s to %s%s',
      c.relname,
      lower(g.privilege_type collate "C"),
      string_agg(a.attname, ', ' order by a.attname collate "C"),
      case when g.grantee = 0 then 'public' else g.grantee::regrole::text end,
      case when g.is_grantable then ' with grant option' else '' end
    )
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid and not a.attisdropped
    cross join lateral aclexplode(a.attacl) as g
    where c.relnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and g.grantee <> c.relowner
    group by c.relname, g.grantee, g.privilege_type, g.is_grantable$$,
  array[
    'documents: update of deleted_at, document_kind, doi, is_privileged, license_class, '
      'project_id, publication_year, source, title to citeledger_app',
    'messages: update of content, finalized_at to citeledger_app',
    'message_citations: update of verification_confidence, verification_method, verified to '
      'citeledger_app',
    'message_caselaw_citations: update of verification_confidence, verification_method, verified '
      'to citeledger_app'
  ],
  'columns: exactly these may be updated'
);

select set_eq(
  $$select format(
      '%s: %s to %s%s',
      p.oid::regprocedure,
      lower(g.privilege_type collate "C"),
      string_agg(
        case when g.grantee = 0 then 'public' else g.grantee::regrole::text end, ', '
        order by g.grantee::regrole::text collate "C"
      ),
      case when g.is_grantable then ' with grant option' else '' end
    )
    from pg_proc as p
    cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as g
    where p.pronamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and g.grantee <> p.proowner
    group by p.oid, g.privilege_type, g.is_grantable$$,
  array[
    -- The context.
    'citeledger.current_firm_id(): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.current_user_id(): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.has_permission(text): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.require_permission(text): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.set_context(uuid,uuid,text[]): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    -- What only reads and checks for itself.
    'citeledger.ledger_trace(uuid,uuid): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.verification_tier(text): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.version(): execute to citeledger_admin, citeledger_app, citeledger_reader',
    'citeledger.check_integrity(): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.metadata_only_violations(): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    -- What a turn writes.
    'citeledger.assemble_ledger_entries(uuid): execute to citeledger_admin, citeledger_app',
    'citeledger.compute_and_record_gate(uuid): execute to citeledger_admin, citeledger_app',
    'citeledger.finalize_turn(uuid): execute to citeledger_admin, citeledger_app',
    'citeledger.finalize_turns(uuid[]): execute to citeledger_admin, citeledger_app',
    'citeledger.finalize_pending(integer): execute to citeledger_admin, citeledger_app',
    -- What onboards, erases or sweeps.
    'citeledger.create_firm(text): execute to citeledger_admin',
    'citeledger.delete_firm(uuid): execute to citeledger_admin',
    'citeledger.firm_ids(): execute to citeledger_admin',
    -- The one helper that a policy calls as the querying role.
    'citeledger_private.is_behind_wall(uuid,uuid): execute to citeledger_admin, citeledger_app',
    'citeledger.cite_many(uuid,jsonb): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.recheck_document(uuid): execute to citeledger_admin, citeledger_app',
    'citeledger.suggest_spans(uuid,jsonb,integer): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.replace_document_pages(uuid,jsonb): execute to citeledger_admin, citeledger_app',
    'citeledger.read_pages(uuid,uuid,integer): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.resolve_span(jsonb): execute to citeledger_admin, citeledger_app',
    'citeledger.cite(uuid,jsonb): execute to citeledger_admin, citeledger_app, citeledger_reader',
    'citeledger.cite_ledger_entry(uuid): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.normalize_doi(text): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.walk_citations(uuid[],integer,text): execute to citeledger_admin, '
      'citeledger_app, citeledger_reader',
    'citeledger.record_references(uuid,text[],text): execute to citeledger_admin, citeledger_app',
    'citeledger.graph_gc(boolean): execute to citeledger_admin',
    'citeledger.get_citations(uuid): execute to citeledger_admin, citeledger_app, '
      'citeledger_reader',
    'citeledger.graph_stage(text[],integer,boolean,jsonb,integer): execute to citeledger_admin, '
      'citeledger_app, citeledger_reader',
    'citeledger.resolve_references(boolean): execute to citeledger_admin',
    'citeledger.record_crossref_work(uuid,jsonb): execute to citeledger_admin, citeledger_app',
    'citeledger.corpus_delete(uuid[]): execute to citeledger_admin'
  ],
  'functions: exactly these may be executed, none by PUBLIC'
);

select set_eq(
  $$select format('%s: %s to %s', t.oid::regtype, lower(g.privilege_type collate "C"), g.grantee::regrole)
    from pg_type as t
    cross join lateral aclexplode(t.typacl) as g
    where t.typnamespace in ('citeledger'::regnamespace, 'citeledger_private'::regnamespace)
      and g.grantee <> t.typowner$$,
  array[
    'citeledger.span_resolution: usage to citeledger_app',
    'citeledger.span_resolution: usage to citeledger_admin'
  ],
  'types: exactly these may be used, none by PUBLIC'
);

-- What does not exist yet is closed too: a function that is made later is not PUBLIC's.
select set_eq(
  $$select format(
      'new %s of %s: %s to %s',
      case d.defaclobjtype::text
        when 'f' then 'functions' when 'T' then 'types' else d.defaclobjtype::text
      end,
      d.defaclrole::regrole,
      lower(g.privilege_type collate "C"),
      case when g.grantee = 0 then 'public' else g.grantee::regrole::text end
    )
    from pg_default_acl as d
    cross join lateral aclexplode(d.defaclacl) as g
    where d.defaclrole = 'citeledger_owner'::regrole$$,
  array[
    'new functions of citeledger_owner: execute to citeledger_owner',
    'new types of citeledger_owner: usage to citeledger_owner'
  ],
  'defaults: what the owner makes later is closed to PUBLIC'
);

-- The roles themselves, and what they inherit.
select set_eq(
  $$select format(
      '%s: %s%s%s%s%s%s',
      r.rolname,
      case when r.rolcanlogin then 'login ' else '' end,
      case when r.rolsuper then 'superuser ' else '' end,
      case when r.rolbypassrls then 'bypassrls ' else '' end,
      case when r.rolcreaterole then 'createrole ' else '' end,
      case when r.rolcreatedb then 'createdb ' else '' end,
      case when r.rolreplication then 'replication ' else '' end
    )
    from pg_roles as r
    where r.rolname in (
      'citeledger_owner', 'citeledger_reader', 'citeledger_app', 'citeledger_admin'
    )$$,
  array[
    'citeledger_owner: ', 'citeledger_reader: ', 'citeledger_app: ', 'citeledger_admin: '
  ],
  'roles: four, none of which may log in, is a superuser or exempt from row security'
);
select set_eq(
  $$select format('%s is a member of %s', m.member::regrole, m.roleid::regrole)
    from pg_auth_members as m
    where m.member in (
      'citeledger_owner'::regrole, 'citeledger_reader'::regrole, 'citeledger_app'::regrole,
      'citeledger_admin'::regrole
    )$$,
  array[
    'citeledger_app is a member of citeledger_reader',
    'citeledger_admin is a member of citeledger_app'
  ],
  'roles: the app has the reader''s rights, the admin the app''s, and nobody anything else'
);

-- The same from the other end, by what the server answers for each role.
select is(
  (
    select count(*)
    from pg_class as c
    cross join (values ('select'), ('insert'), ('update'), ('delete'), ('truncate')) as p (name)
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relkind = 'r'
      and has_table_privilege('citeledger_reader', c.oid, p.name)
  ),
  0::bigint,
  'the reader has no privilege on any table'
);
select is(
  (
    select count(*)
    from pg_class as c
    cross join (values ('citeledger_reader'), ('citeledger_app'), ('citeledger_admin')) as r (name)
    cross join (values ('insert'), ('update'), ('delete'), ('truncate')) as p (name)
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relname in (
        'citation_ledger_entry', 'citation_ledger_entry_revision', 'work_product_fiduciary_gate',
        'finalize_failure', 'firms'
      )
      and (
        has_table_privilege(r.name, c.oid, p.name)
        or (p.name in ('insert', 'update') and has_any_column_privilege(r.name, c.oid, p.name))
      )
  ),
  0::bigint,
  'no role writes what functions write'
);
select is(
  (
    select count(*)
    from pg_class as c
    cross join (values ('citeledger_reader'), ('citeledger_app'), ('citeledger_admin')) as r (name)
    where c.relnamespace = 'citeledger'::regnamespace
      and c.relkind = 'r'
      and has_table_privilege(r.name, c.oid, 'truncate, trigger, references')
  ),
  0::bigint,
  'no role may truncate a table, hang a trigger on it or reference it'
);

select * from finish();

rollback;
