-- Deploy citeledger:graph/kg_entities to pg
-- requires: tenancy/firms
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.kg_entities (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  name text not null,
  -- Stored, because under row security no index can be used over a function like lower().
  name_key text not null generated always as (lower(name)) stored,
  entity_type text not null,
  description text,
  created_at timestamptz not null default now(),
  constraint kg_entities_pkey primary key (firm_id, id),
  constraint kg_entities_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint kg_entities_name_is_short check (name ~ '[^[:space:]]' and length(name) <= 500),
  constraint kg_entities_entity_type_is_label check (entity_type ~ '^[a-z][a-z0-9_]{0,31}$')
);

create unique index kg_entities_name_key
  on citeledger.kg_entities (firm_id, name_key);

alter table citeledger.kg_entities enable row level security;
alter table citeledger.kg_entities force row level security;

create policy kg_entities_of_the_firm on citeledger.kg_entities
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger kg_entities_before_insert
  before insert on citeledger.kg_entities
  for each statement
  execute function citeledger_private.before_ingest();

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.kg_entities alter column name set statistics 0;
alter table citeledger.kg_entities alter column name_key set statistics 0;
alter table citeledger.kg_entities alter column description set statistics 0;

comment on table citeledger.kg_entities is
  'Concepts: people, clauses, statutes, ideas. No document is one; documents are joined by '
  'citations.';
comment on column citeledger.kg_entities.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.kg_entities.id is
  'The entity.';
comment on column citeledger.kg_entities.name is
  'Its name: 1 to 500 characters, unique in the firm whatever the case.';
comment on column citeledger.kg_entities.name_key is
  'The name in lower case, by which it is found.';
comment on column citeledger.kg_entities.entity_type is
  'What kind of concept: a label such as person.';
comment on column citeledger.kg_entities.description is
  'What is known of it, or null.';
comment on column citeledger.kg_entities.created_at is
  'When the row was recorded.';
comment on constraint kg_entities_pkey on citeledger.kg_entities is
  'An entity is known within its firm.';
comment on constraint kg_entities_firm_fkey on citeledger.kg_entities is
  'An entity goes with its firm.';
comment on constraint kg_entities_name_is_short on citeledger.kg_entities is
  'A name has a visible character and at most 500 characters.';
comment on constraint kg_entities_entity_type_is_label on citeledger.kg_entities is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on index citeledger.kg_entities_name_key is
  'A firm has a name once, whatever the case.';
comment on policy kg_entities_of_the_firm on citeledger.kg_entities is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger kg_entities_before_insert on citeledger.kg_entities is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.kg_entities from public;
grant select, insert on table citeledger.kg_entities to citeledger_app;

commit;
