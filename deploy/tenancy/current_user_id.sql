-- Deploy citeledger:tenancy/current_user_id to pg
-- requires: tenancy/current_user_id@v0.1.0

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.current_user_id()
returns uuid
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm text := current_setting('citeledger.firm_id', true);
  v_setting text;
  v_claims text;
begin
  -- Which of the two sources holds is decided by the firm alone, so that they are never mixed.
  if v_firm is not null and v_firm <> '' then
    v_setting := current_setting('citeledger.user_id', true);
  else
    v_claims := current_setting('request.jwt.claims', true);
    if v_claims is null or v_claims = '' then
      return null;
    end if;
    v_setting := v_claims::jsonb ->> 'sub';
  end if;
  -- Dashes in their places, nowhere else, and the rest digits, as in current_firm_id.
  if v_setting collate "C" like '________-____-____-____-____________'
    and v_setting collate "C" not like '%-%-%-%-%-%'
    and v_setting collate "C" !~ '[^0-9a-fA-F-]'
  then
    return v_setting::uuid;
  end if;
  return null;
end
$$;

comment on function citeledger.current_user_id() is
  'The person of the current context, or null when there is none; decides which walled matters are '
  'visible. Source: the setting citeledger.user_id when citeledger.firm_id is set, else sub of the '
  'JSON object in request.jwt.claims; never a mix of the two. A malformed uuid is nobody. Errors: '
  '22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.current_user_id() from public;
grant execute on function citeledger.current_user_id() to citeledger_reader;
grant execute on function citeledger.current_user_id() to citeledger_app;
grant execute on function citeledger.current_user_id() to citeledger_admin;

commit;
