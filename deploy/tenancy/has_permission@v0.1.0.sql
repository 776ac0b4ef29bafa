-- Deploy citeledger:tenancy/has_permission to pg
-- requires: tenancy/current_firm_id

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.has_permission(
  p_permission text
)
returns boolean
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm text := current_setting('citeledger.firm_id', true);
  v_setting text;
  v_claims jsonb;
begin
  -- Without a firm there is nothing that a permission could be for.
  if p_permission is null or citeledger.current_firm_id() is null then
    return false;
  end if;

  if v_firm is not null and v_firm <> '' then
    v_setting := current_setting('citeledger.permissions', true);
    -- Only the plain form of a text[] literal counts; anything else grants nothing. Splitting it by
    -- hand cannot fail, a cast could.
    if v_setting is null
      or v_setting !~ (
        '^[{](?:[A-Za-z0-9._:-]+|"[A-Za-z0-9._:-]+")'
        || '(?:,(?:[A-Za-z0-9._:-]+|"[A-Za-z0-9._:-]+"))*[}]$'
      )
    then
      return false;
    end if;
    return p_permission = any(
      string_to_array(replace(btrim(v_setting, '{}'), '"', ''), ',')
    );
  end if;

  v_claims := current_setting('request.jwt.claims', true)::jsonb -> 'permissions';
  if jsonb_typeof(v_claims) is distinct from 'array' then
    return false;
  end if;
  return v_claims ? p_permission;
end
$$;

comment on function citeledger.has_permission(text) is
  'Whether the current context holds the permission p_permission, compared exactly. False without '
  'a firm, for null, and for settings or claims that are malformed. Source: the setting '
  'citeledger.permissions (a text[] literal) when citeledger.firm_id is set, else the array '
  'permissions in request.jwt.claims. Errors: 22P02 when the claims are consulted and are no JSON.';

revoke all on function citeledger.has_permission(text) from public;
grant execute on function citeledger.has_permission(text) to citeledger_reader;
grant execute on function citeledger.has_permission(text) to citeledger_app;
grant execute on function citeledger.has_permission(text) to citeledger_admin;

commit;
