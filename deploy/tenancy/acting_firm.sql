-- Deploy citeledger:tenancy/acting_firm to pg
-- requires: tenancy/current_firm_id

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.enter_firm(
  p_firm_id uuid
)
returns text
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outer text;
begin
  if citeledger.current_firm_id() = p_firm_id then
    return null;
  end if;
  v_outer := coalesce(current_setting('citeledger.firm_id', true), '');
  execute format('set local citeledger.firm_id = %L', p_firm_id);
  return v_outer;
end
$$;

create function citeledger_private.leave_firm(
  p_outer text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_outer is not null then
    execute format('set local citeledger.firm_id = %L', p_outer);
  end if;
end
$$;

comment on function citeledger_private.enter_firm(uuid) is
  'Makes p_firm_id the firm of the context while a trigger works for that firm''s rows, whoever '
  'wrote them. Returns what leave_firm needs to put the writer''s own context back: null when the '
  'context is that firm already, else the earlier value of citeledger.firm_id. An error in between '
  'needs no leave_firm: the setting is undone with the subtransaction.';
comment on function citeledger_private.leave_firm(text) is
  'Puts back the context that enter_firm replaced. p_outer: what enter_firm returned.';

revoke all on function citeledger_private.enter_firm(uuid) from public;
revoke all on function citeledger_private.leave_firm(text) from public;

commit;
