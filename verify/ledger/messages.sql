-- Verify citeledger:ledger/messages on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_relation(
  'citeledger.messages', $facts$
  column chat_id uuid not null
  column content text without statistics
  column created_at timestamp with time zone not null default now()
  column finalized_at timestamp with time zone
  column firm_id uuid not null default citeledger.current_firm_id()
  column id uuid not null default gen_random_uuid()
  column role text not null
  constraint messages_chat_fkey FOREIGN KEY (firm_id, chat_id) REFERENCES citeledger.chats(firm_id,
    id) ON DELETE CASCADE
  constraint messages_chat_message_key UNIQUE (firm_id, chat_id, id)
  constraint messages_pkey PRIMARY KEY (firm_id, id)
  constraint messages_role_is_known CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text,
    'system'::text, 'tool'::text])))
  grant delete, insert, select to citeledger_admin
  grant insert, select to citeledger_app
  grant update (content, finalized_at) to citeledger_app
  owner citeledger_owner
  policy messages_of_the_firm permissive for all to public using (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id)) with check (firm_id = ( SELECT
    citeledger.current_firm_id() AS current_firm_id))
  row security forced
$facts$);

rollback;
