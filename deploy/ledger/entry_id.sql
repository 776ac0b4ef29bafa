-- Deploy citeledger:ledger/entry_id to pg
-- requires: tenancy/schemas

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every entry of a ledger: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.entry_id(
  p_message_id uuid,
  p_random uuid
)
returns uuid
language sql
immutable
parallel safe
security invoker
return (left(p_message_id::text, 14) || substr(p_random::text, 15))::uuid;

comment on function citeledger_private.entry_id(uuid, uuid) is
  'The id of an entry of the turn p_message_id: 48 bits of the turn''s, then the rest of p_random, '
  'which is a random uuid made for it. So the entries of a turn lie side by side in the primary '
  'key: in a large ledger a turn reads, changes and logs one page of it, not one for each entry.';

revoke all on function citeledger_private.entry_id(uuid, uuid) from public;

commit;
