-- Deploy citeledger:ledger/chats to pg
-- requires: tenancy/projects

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.chats (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  project_id uuid,
  title text,
  created_at timestamptz not null default now(),
  constraint chats_pkey primary key (firm_id, id),
  constraint chats_firm_fkey foreign key (firm_id)
    references citeledger.firms (id) on delete cascade,
  constraint chats_project_fkey foreign key (firm_id, project_id)
    references citeledger.projects (firm_id, id) on delete set null (project_id)
);

create index chats_project_idx on citeledger.chats (firm_id, project_id);

alter table citeledger.chats enable row level security;
alter table citeledger.chats force row level security;

create policy chats_of_the_firm on citeledger.chats
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.chats alter column title set statistics 0;

comment on table citeledger.chats is
  'Conversations with an assistant, each in one matter or in none.';
comment on column citeledger.chats.firm_id is 'The tenant; default the firm of the context.';
comment on column citeledger.chats.id is 'The chat.';
comment on column citeledger.chats.project_id is
  'The matter that the chat is about; null for none, and after its matter was deleted.';
comment on column citeledger.chats.title is 'Display title, or null.';
comment on column citeledger.chats.created_at is 'When the row was recorded.';
comment on constraint chats_pkey on citeledger.chats is 'A chat is known within its firm.';
comment on constraint chats_firm_fkey on citeledger.chats is 'A chat goes with its firm.';
comment on constraint chats_project_fkey on citeledger.chats is
  'A chat is about a matter of its own firm; when the matter goes it is about none.';
comment on index citeledger.chats_project_idx is
  'The chats of a matter; the referencing side of chats_project_fkey.';
comment on policy chats_of_the_firm on citeledger.chats is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.chats from public;
grant select, insert on table citeledger.chats to citeledger_app;
grant select, insert, delete on table citeledger.chats to citeledger_admin;

commit;
