-- Deploy citeledger:ledger/messages to pg
-- requires: ledger/chats

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.messages (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  chat_id uuid not null,
  role text not null,
  content text,
  finalized_at timestamptz,
  created_at timestamptz not null default now(),
  constraint messages_pkey primary key (firm_id, id),
  constraint messages_chat_message_key unique (firm_id, chat_id, id),
  constraint messages_chat_fkey foreign key (firm_id, chat_id)
    references citeledger.chats (firm_id, id) on delete cascade,
  constraint messages_role_is_known check (role in ('user', 'assistant', 'system', 'tool'))
);

alter table citeledger.messages enable row level security;
alter table citeledger.messages force row level security;

create policy messages_of_the_firm on citeledger.messages
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.messages alter column content set statistics 0;

comment on table citeledger.messages is
  'Messages of a chat. An assistant''s message is a turn: it has sources and, once finalized, one '
  'ledger entry for each of them and one verdict.';
comment on column citeledger.messages.firm_id is 'The tenant; default the firm of the context.';
comment on column citeledger.messages.id is 'The message.';
comment on column citeledger.messages.chat_id is 'The chat that it belongs to.';
comment on column citeledger.messages.role is
  'Who speaks: user, assistant, system or tool. Only an assistant''s message gets a verdict.';
comment on column citeledger.messages.content is
  'Its text, or null. It cannot change once the message is finalized.';
comment on column citeledger.messages.finalized_at is
  'When the message was finalized; null while it is being written. Once set it stays.';
comment on column citeledger.messages.created_at is 'When the row was recorded.';
comment on constraint messages_pkey on citeledger.messages is 'A message is known within its firm.';
comment on constraint messages_chat_message_key on citeledger.messages is
  'Lets the ledger and the gate reference chat and message at once, so that they cannot disagree. '
  'Serves the messages of a chat and the referencing side of messages_chat_fkey.';
comment on constraint messages_chat_fkey on citeledger.messages is 'A message goes with its chat.';
comment on constraint messages_role_is_known on citeledger.messages is
  'One of user, assistant, system, tool.';
comment on policy messages_of_the_firm on citeledger.messages is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.messages from public;
grant select, insert on table citeledger.messages to citeledger_app;
grant update (content, finalized_at) on table citeledger.messages to citeledger_app;
grant select, insert, delete on table citeledger.messages to citeledger_admin;

commit;
