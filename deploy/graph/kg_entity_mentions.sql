-- Deploy citeledger:graph/kg_entity_mentions to pg
-- requires: graph/kg_entities
-- requires: graph/chunks
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.kg_entity_mentions (
  firm_id uuid not null default citeledger.current_firm_id(),
  entity_id uuid not null,
  chunk_id uuid not null,
  created_at timestamptz not null default now(),
  constraint kg_entity_mentions_pkey primary key (firm_id, entity_id, chunk_id),
  constraint kg_entity_mentions_entity_fkey foreign key (firm_id, entity_id)
    references citeledger.kg_entities (firm_id, id) on delete cascade,
  constraint kg_entity_mentions_chunk_fkey foreign key (firm_id, chunk_id)
    references citeledger.chunks (firm_id, id) on delete cascade
);

create index kg_entity_mentions_chunk_idx
  on citeledger.kg_entity_mentions (firm_id, chunk_id);

alter table citeledger.kg_entity_mentions enable row level security;
alter table citeledger.kg_entity_mentions force row level security;

create policy kg_entity_mentions_of_the_firm on citeledger.kg_entity_mentions
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger kg_entity_mentions_before_insert
  before insert on citeledger.kg_entity_mentions
  for each statement
  execute function citeledger_private.before_ingest();

comment on table citeledger.kg_entity_mentions is
  'Where an entity is mentioned: its evidence. An entity without any is swept by graph_gc.';
comment on column citeledger.kg_entity_mentions.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.kg_entity_mentions.entity_id is
  'The entity.';
comment on column citeledger.kg_entity_mentions.chunk_id is
  'The chunk that mentions it.';
comment on column citeledger.kg_entity_mentions.created_at is
  'When the row was recorded.';
comment on constraint kg_entity_mentions_pkey on citeledger.kg_entity_mentions is
  'A chunk mentions an entity once. Referencing side of kg_entity_mentions_entity_fkey.';
comment on constraint kg_entity_mentions_entity_fkey on citeledger.kg_entity_mentions is
  'A mention goes with its entity.';
comment on constraint kg_entity_mentions_chunk_fkey on citeledger.kg_entity_mentions is
  'A mention goes with its chunk.';
comment on index citeledger.kg_entity_mentions_chunk_idx is
  'The mentions of a chunk. Referencing side of kg_entity_mentions_chunk_fkey.';
comment on policy kg_entity_mentions_of_the_firm on citeledger.kg_entity_mentions is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger kg_entity_mentions_before_insert on citeledger.kg_entity_mentions is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.kg_entity_mentions from public;
grant select, insert on table citeledger.kg_entity_mentions to citeledger_app;

commit;
