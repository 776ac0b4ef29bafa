-- Deploy citeledger:gate/message_triggers to pg
-- requires: gate/settle
-- requires: tenancy/acting_firm

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.seal_message()
returns trigger
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  if new.content is distinct from old.content
    or new.finalized_at is distinct from old.finalized_at
    or new.role is distinct from old.role
  then
    raise exception using
      errcode = '55000',
      message = 'the message is finalized and sealed',
      detail = format(
        'Of a finalized message, %s cannot change.',
        case
          when new.content is distinct from old.content then 'content'
          when new.finalized_at is distinct from old.finalized_at then 'finalized_at'
          else 'role'
        end
      ),
      hint = 'Answer in a new message; the verification columns of its sources stay open.';
  end if;
  return new;
end
$$;

create function citeledger_private.finalize_inserted()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  for v_firm in
    select n.firm_id, array_agg(n.id order by n.id) as message_ids
    from new_rows as n
    where n.finalized_at is not null and n.role = 'assistant'
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.settle(v_firm.firm_id, v_firm.message_ids);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

create function citeledger_private.finalize_updated()
returns trigger
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm record;
  v_outer text;
begin
  -- The UPDATE itself holds the lock of every row that is here.
  for v_firm in
    select n.firm_id, array_agg(n.id order by n.id) as message_ids
    from new_rows as n
    join old_rows as o on o.firm_id = n.firm_id and o.id = n.id
    where n.finalized_at is not null and o.finalized_at is null and n.role = 'assistant'
    group by n.firm_id
    order by n.firm_id
  loop
    v_outer := citeledger_private.enter_firm(v_firm.firm_id);
    perform citeledger_private.settle(v_firm.firm_id, v_firm.message_ids);
    perform citeledger_private.leave_firm(v_outer);
  end loop;
  return null;
end
$$;

comment on function citeledger_private.seal_message() is
  'Trigger function: refuses to change content, role or finalized_at of a finalized message. '
  'Errors: 55000.';
comment on function citeledger_private.finalize_inserted() is
  'Trigger function: finalizes the turns that were inserted with finalized_at already set.';
comment on function citeledger_private.finalize_updated() is
  'Trigger function: finalizes the turns whose finalized_at was just set.';

revoke all on function citeledger_private.seal_message() from public;
revoke all on function citeledger_private.finalize_inserted() from public;
revoke all on function citeledger_private.finalize_updated() from public;

create trigger messages_seal
  before update on citeledger.messages
  for each row
  when (old.finalized_at is not null)
  execute function citeledger_private.seal_message();

create trigger messages_finalize_inserted
  after insert on citeledger.messages
  referencing new table as new_rows
  for each statement
  execute function citeledger_private.finalize_inserted();

create trigger messages_finalize_updated
  after update on citeledger.messages
  referencing old table as old_rows new table as new_rows
  for each statement
  execute function citeledger_private.finalize_updated();

comment on trigger messages_seal on citeledger.messages is
  'A finalized message is sealed.';
comment on trigger messages_finalize_inserted on citeledger.messages is
  'No call site can forget to finalize: a turn that arrives finalized gets its verdict.';
comment on trigger messages_finalize_updated on citeledger.messages is
  'No call site can forget to finalize: setting finalized_at is enough.';

commit;
