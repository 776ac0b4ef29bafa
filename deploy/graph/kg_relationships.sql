-- Deploy citeledger:graph/kg_relationships to pg
-- requires: graph/kg_entities
-- requires: graph/kg_relation_types
-- requires: graph/chunks
-- requires: graph/lock_graph

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.kg_relationships (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  source_entity_id uuid not null,
  target_entity_id uuid not null,
  relation_type text not null,
  chunk_id uuid not null,
  evidence text not null,
  confidence double precision,
  created_at timestamptz not null default now(),
  constraint kg_relationships_pkey primary key (firm_id, id),
  constraint kg_relationships_source_entity_fkey foreign key (firm_id, source_entity_id)
    references citeledger.kg_entities (firm_id, id) on delete cascade,
  constraint kg_relationships_target_entity_fkey foreign key (firm_id, target_entity_id)
    references citeledger.kg_entities (firm_id, id) on delete cascade,
  constraint kg_relationships_relation_type_fkey foreign key (firm_id, relation_type)
    references citeledger.kg_relation_types (firm_id, relation_type),
  constraint kg_relationships_chunk_fkey foreign key (firm_id, chunk_id)
    references citeledger.chunks (firm_id, id) on delete cascade,
  constraint kg_relationships_confidence_is_a_share check (confidence >= 0 and confidence <= 1)
);

create index kg_relationships_source_entity_idx
  on citeledger.kg_relationships (firm_id, source_entity_id, target_entity_id);
create index kg_relationships_target_entity_idx
  on citeledger.kg_relationships (firm_id, target_entity_id, source_entity_id);
create index kg_relationships_relation_type_idx
  on citeledger.kg_relationships (firm_id, relation_type);
create index kg_relationships_chunk_idx
  on citeledger.kg_relationships (firm_id, chunk_id);

alter table citeledger.kg_relationships enable row level security;
alter table citeledger.kg_relationships force row level security;

create policy kg_relationships_of_the_firm on citeledger.kg_relationships
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

create trigger kg_relationships_before_insert
  before insert on citeledger.kg_relationships
  for each statement
  execute function citeledger_private.before_ingest();

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.kg_relationships alter column evidence set statistics 0;

comment on table citeledger.kg_relationships is
  'Relationships between concepts, each with the phrase that says so.';
comment on column citeledger.kg_relationships.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.kg_relationships.id is
  'The relationship.';
comment on column citeledger.kg_relationships.source_entity_id is
  'From which entity.';
comment on column citeledger.kg_relationships.target_entity_id is
  'To which entity.';
comment on column citeledger.kg_relationships.relation_type is
  'Of which declared type.';
comment on column citeledger.kg_relationships.chunk_id is
  'The chunk that says so.';
comment on column citeledger.kg_relationships.evidence is
  'The quoted phrase.';
comment on column citeledger.kg_relationships.confidence is
  'The extractor''s confidence, 0 to 1, or null.';
comment on column citeledger.kg_relationships.created_at is
  'When the row was recorded.';
comment on constraint kg_relationships_pkey on citeledger.kg_relationships is
  'A relationship is known within its firm.';
comment on constraint kg_relationships_source_entity_fkey on citeledger.kg_relationships is
  'A relationship goes with the entity that it comes from.';
comment on constraint kg_relationships_target_entity_fkey on citeledger.kg_relationships is
  'A relationship goes with the entity that it leads to.';
comment on constraint kg_relationships_relation_type_fkey on citeledger.kg_relationships is
  'Only declared types; one that is in use stays declared.';
comment on constraint kg_relationships_chunk_fkey on citeledger.kg_relationships is
  'A relationship goes with the chunk that says so.';
comment on constraint kg_relationships_confidence_is_a_share on citeledger.kg_relationships is
  'From 0 to 1, or null; NaN is neither.';
comment on index citeledger.kg_relationships_source_entity_idx is
  'The walk along relationships. Referencing side of kg_relationships_source_entity_fkey.';
comment on index citeledger.kg_relationships_target_entity_idx is
  'The walk against relationships. Referencing side of kg_relationships_target_entity_fkey.';
comment on index citeledger.kg_relationships_relation_type_idx is
  'Referencing side of kg_relationships_relation_type_fkey.';
comment on index citeledger.kg_relationships_chunk_idx is
  'Referencing side of kg_relationships_chunk_fkey.';
comment on policy kg_relationships_of_the_firm on citeledger.kg_relationships is
  'Only rows of the firm of the context, to read and to write.';
comment on trigger kg_relationships_before_insert on citeledger.kg_relationships is
  'The graph''s lock comes before the locks of rows.';

revoke all on table citeledger.kg_relationships from public;
grant select, insert on table citeledger.kg_relationships to citeledger_app;

commit;
