-- Deploy citeledger:ledger/citation_ledger_entry_revision to pg
-- requires: ledger/citation_ledger_entry
-- requires: tenancy/acting_firm

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.citation_ledger_entry_revision (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  entry_id uuid not null,
  source_kind text not null,
  verification_status text not null,
  confidence double precision,
  provider text,
  retrieved_at timestamptz,
  superseded_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default now(),
  constraint citation_ledger_entry_revision_pkey primary key (firm_id, id),
  constraint citation_ledger_entry_revision_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint citation_ledger_entry_revision_source_kind_is_label check (
    source_kind ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint citation_ledger_entry_revision_status_is_label check (
    verification_status ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint citation_ledger_entry_revision_provider_is_name check (
    provider ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'
  )
);

create index citation_ledger_entry_revision_message_idx
  on citeledger.citation_ledger_entry_revision (firm_id, message_id);
create index citation_ledger_entry_revision_entry_idx
  on citeledger.citation_ledger_entry_revision (firm_id, entry_id);

alter table citeledger.citation_ledger_entry_revision enable row level security;
alter table citeledger.citation_ledger_entry_revision force row level security;

create policy citation_ledger_entry_revision_of_the_firm
  on citeledger.citation_ledger_entry_revision
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.citation_ledger_entry_revision is
  'What a ledger entry said before it was refreshed, or before it was deleted with its source '
  'while the turn stays. Written by triggers of the ledger; by no role.';
comment on column citeledger.citation_ledger_entry_revision.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.citation_ledger_entry_revision.id is 'The revision.';
comment on column citeledger.citation_ledger_entry_revision.message_id is 'The turn.';
comment on column citeledger.citation_ledger_entry_revision.entry_id is
  'The entry; it may be gone, so there is no foreign key.';
comment on column citeledger.citation_ledger_entry_revision.source_kind is
  'The entry''s source_kind until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.verification_status is
  'The entry''s verification_status until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.confidence is
  'The entry''s confidence until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.provider is
  'The entry''s provider until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.retrieved_at is
  'The entry''s retrieved_at until superseded_at.';
comment on column citeledger.citation_ledger_entry_revision.superseded_at is
  'When the values were replaced or taken, by the clock.';
comment on column citeledger.citation_ledger_entry_revision.created_at is
  'When the row was recorded: the start of that transaction.';
comment on constraint citation_ledger_entry_revision_pkey
  on citeledger.citation_ledger_entry_revision is
  'A revision is known within its firm.';
comment on constraint citation_ledger_entry_revision_message_fkey
  on citeledger.citation_ledger_entry_revision is
  'A revision goes with its turn.';
comment on constraint citation_ledger_entry_revision_source_kind_is_label
  on citeledger.citation_ledger_entry_revision is
  'A label: it cannot hold content.';
comment on constraint citation_ledger_entry_revision_status_is_label
  on citeledger.citation_ledger_entry_revision is
  'A label: it cannot hold content.';
comment on constraint citation_ledger_entry_revision_provider_is_name
  on citeledger.citation_ledger_entry_revision is
  'A name: it cannot hold content.';
comment on index citeledger.citation_ledger_entry_revision_message_idx is
  'The revisions of a turn. Referencing side of citation_ledger_entry_revision_message_fkey.';
comment on index citeledger.citation_ledger_entry_revision_entry_idx is
  'The history of an entry.';
comment on policy citation_ledger_entry_revision_of_the_firm
  on citeledger.citation_ledger_entry_revision is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.citation_ledger_entry_revision from public;
grant select on table citeledger.citation_ledger_entry_revision to citeledger_app;

commit;
