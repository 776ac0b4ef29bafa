-- Deploy citeledger:graph/kg_relation_types to pg
-- requires: tenancy/firms
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.kg_relation_types (
  firm_id uuid not null default citeledger.current_firm_id(),
  relation_type text not null,
  created_at timestamptz not null default now(),
  constraint kg_relation_types_pkey primary key (firm_id, relation_type),
  constraint kg_relation_types_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint kg_relation_types_relation_type_is_label check (
    relation_type ~ '^[a-z][a-z0-9_]{0,31}$'
  )
);

alter table citeledger.kg_relation_types enable row level security;
alter table citeledger.kg_relation_types force row level security;

create policy kg_relation_types_of_the_firm on citeledger.kg_relation_types
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger kg_relation_types_before_insert
  before insert on citeledger.kg_relation_types
  for each statement
  execute function citeledger_private.before_ingest();

comment on table citeledger.kg_relation_types is
  'The firm''s ontology: the types of relationship that it has declared.';
comment on column citeledger.kg_relation_types.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.kg_relation_types.relation_type is
  'The type: a label such as governs.';
comment on column citeledger.kg_relation_types.created_at is
  'When the row was recorded.';
comment on constraint kg_relation_types_pkey on citeledger.kg_relation_types is
  'A type is declared once.';
comment on constraint kg_relation_types_firm_fkey on citeledger.kg_relation_types is
  'The ontology goes with its firm.';
comment on constraint kg_relation_types_relation_type_is_label on citeledger.kg_relation_types is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on policy kg_relation_types_of_the_firm on citeledger.kg_relation_types is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger kg_relation_types_before_insert on citeledger.kg_relation_types is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.kg_relation_types from public;
grant select, insert on table citeledger.kg_relation_types to citeledger_app;

commit;
