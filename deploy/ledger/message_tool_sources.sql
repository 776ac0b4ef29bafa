-- Deploy citeledger:ledger/message_tool_sources to pg
-- requires: ledger/messages

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.message_tool_sources (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  source_kind text not null,
  label text not null,
  subtitle text,
  url text,
  external_ref text,
  provider text,
  tool text,
  created_at timestamptz not null default clock_timestamp(),
  constraint message_tool_sources_pkey primary key (firm_id, id),
  constraint message_tool_sources_message_source_key unique (firm_id, message_id, id),
  constraint message_tool_sources_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint message_tool_sources_source_kind_is_label check (
    source_kind ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint message_tool_sources_provider_is_name check (
    provider ~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$'
  ),
  -- A year within the calendar's ends, so that it is in it under every zone.
  constraint message_tool_sources_created_at_is_in_the_calendar check (
    isfinite(created_at) and extract(year from created_at at time zone 'UTC') between 2 and 9998
  )
);

alter table citeledger.message_tool_sources enable row level security;
alter table citeledger.message_tool_sources force row level security;

create policy message_tool_sources_of_the_firm on citeledger.message_tool_sources
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.message_tool_sources alter column label set statistics 0;
alter table citeledger.message_tool_sources alter column subtitle set statistics 0;
alter table citeledger.message_tool_sources alter column url set statistics 0;
alter table citeledger.message_tool_sources alter column external_ref set statistics 0;
alter table citeledger.message_tool_sources alter column tool set statistics 0;

comment on table citeledger.message_tool_sources is
  'What a tool brought into the context of a turn: provenance, not an assertion that could be '
  'verified.';
comment on column citeledger.message_tool_sources.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.message_tool_sources.id is 'The source.';
comment on column citeledger.message_tool_sources.message_id is 'The turn that used it.';
comment on column citeledger.message_tool_sources.source_kind is
  'What kind of source: a label such as web_search.';
comment on column citeledger.message_tool_sources.label is 'Display title.';
comment on column citeledger.message_tool_sources.subtitle is 'Second display line, or null.';
comment on column citeledger.message_tool_sources.url is 'Where it stands, or null.';
comment on column citeledger.message_tool_sources.external_ref is
  'The provider''s own identifier, or null.';
comment on column citeledger.message_tool_sources.provider is
  'Who delivered it: a name such as courtlistener, or null.';
comment on column citeledger.message_tool_sources.tool is 'The tool that was called, or null.';
comment on column citeledger.message_tool_sources.created_at is
  'When it was recorded, by the clock; the ledger takes it as the time of retrieval.';
comment on constraint message_tool_sources_pkey on citeledger.message_tool_sources is
  'A source is known within its firm.';
comment on constraint message_tool_sources_message_source_key on citeledger.message_tool_sources is
  'Lets a ledger entry reference turn and source at once, so that it cannot mix two turns. Serves '
  'the sources of a turn and the referencing side of message_tool_sources_message_fkey.';
comment on constraint message_tool_sources_message_fkey on citeledger.message_tool_sources is
  'A source goes with its turn.';
comment on constraint message_tool_sources_source_kind_is_label
  on citeledger.message_tool_sources is
  'A label: a lower-case letter, then at most 31 lower-case letters, digits or underscores.';
comment on constraint message_tool_sources_provider_is_name on citeledger.message_tool_sources is
  'A name: a letter or digit, then at most 63 letters, digits or ._:- .';
comment on constraint message_tool_sources_created_at_is_in_the_calendar
  on citeledger.message_tool_sources is
  'A time that every client can read: neither infinite nor beyond the years 2 to 9998.';
comment on policy message_tool_sources_of_the_firm on citeledger.message_tool_sources is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.message_tool_sources from public;
grant select, insert, delete on table citeledger.message_tool_sources to citeledger_app;

commit;
