-- Deploy citeledger:tenancy/current_firm_id to pg
-- requires: tenancy/schemas

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.current_firm_id()
returns uuid
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_setting text := current_setting('citeledger.firm_id', true);
  v_claims text;
begin
  -- SET LOCAL leaves '' behind when its transaction ends, so '' means "not set", like null.
  if v_setting is null or v_setting = '' then
    v_claims := current_setting('request.jwt.claims', true);
    if v_claims is null or v_claims = '' then
      return null;
    end if;
    v_setting := v_claims::jsonb ->> 'firm_id';
  end if;
  -- The form is looked at before the cast: an exception block would rule out parallel plans.
  -- Dashes in their places and else nothing but digits: twice as fast as a regular expression, and
  -- row security calls this for every table of every statement.
  if v_setting like '________-____-____-____-____________'
    and translate(v_setting, '0123456789abcdefABCDEF', '') = '----'
  then
    return v_setting::uuid;
  end if;
  return null;
end
$$;

comment on function citeledger.current_firm_id() is
  'The firm (tenant) of the current context, or null when there is none. Source: the setting '
  'citeledger.firm_id (see set_context); only when that is unset or empty, firm_id of the JSON '
  'object in request.jwt.claims. A malformed uuid is no context, and a malformed setting does not '
  'fall back to the claims. Errors: 22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.current_firm_id() from public;
-- Defaults and policies of the tables call it as the querying role.
grant execute on function citeledger.current_firm_id() to citeledger_reader;
grant execute on function citeledger.current_firm_id() to citeledger_app;
grant execute on function citeledger.current_firm_id() to citeledger_admin;

commit;
