-- Deploy citeledger:ledger/finalize_failure to pg
-- requires: ledger/messages

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.finalize_failure (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  stage text not null,
  sqlstate text not null,
  failed_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default now(),
  constraint finalize_failure_pkey primary key (firm_id, id),
  constraint finalize_failure_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint finalize_failure_stage_is_label check (stage ~ '^[a-z][a-z0-9_]{0,31}$'),
  constraint finalize_failure_sqlstate_is_code check (sqlstate ~ '^[0-9A-Z]{5}$')
);

create index finalize_failure_message_idx on citeledger.finalize_failure (firm_id, message_id);

alter table citeledger.finalize_failure enable row level security;
alter table citeledger.finalize_failure force row level security;

create policy finalize_failure_of_the_firm on citeledger.finalize_failure
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.finalize_failure is
  'What went wrong when a turn was finalized: the stage and the code, never the text of the error, '
  'which could hold content. Cleared when the turn is finalized again without that failure.';
comment on column citeledger.finalize_failure.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.finalize_failure.id is 'The failure.';
comment on column citeledger.finalize_failure.message_id is 'The turn.';
comment on column citeledger.finalize_failure.stage is
  'lock (the turn was busy), isolation (no verdict can be had under this isolation level), '
  'assemble (the ledger), assemble_row (one source of it was skipped), gate (the verdict) or '
  'withdraw (an old verdict could not be removed).';
comment on column citeledger.finalize_failure.sqlstate is
  'The SQLSTATE of the error: five characters.';
comment on column citeledger.finalize_failure.failed_at is 'When it failed, by the clock.';
comment on column citeledger.finalize_failure.created_at is
  'When the row was recorded: the start of that transaction.';
comment on constraint finalize_failure_pkey on citeledger.finalize_failure is
  'A failure is known within its firm.';
comment on constraint finalize_failure_message_fkey on citeledger.finalize_failure is
  'A failure goes with its turn.';
comment on constraint finalize_failure_stage_is_label on citeledger.finalize_failure is
  'A label: it cannot hold content.';
comment on constraint finalize_failure_sqlstate_is_code on citeledger.finalize_failure is
  'Five digits or capital letters: it cannot hold content.';
comment on index citeledger.finalize_failure_message_idx is
  'The failures of a turn. Referencing side of finalize_failure_message_fkey.';
comment on policy finalize_failure_of_the_firm on citeledger.finalize_failure is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.finalize_failure from public;
grant select on table citeledger.finalize_failure to citeledger_app;

commit;
