-- Deploy citeledger:tenancy/create_firm to pg
-- requires: tenancy/firms

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.create_firm(
  p_name text
)
returns uuid
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid;
begin
  if p_name is null or p_name !~ '[^[:space:]]' or length(p_name) > 200 then
    raise exception using
      errcode = '22023',
      message = 'p_name is not a name for a firm',
      detail = format(
        'p_name is %s.',
        case
          when p_name is null then 'null'
          when length(p_name) > 200 then length(p_name) || ' characters long'
          else 'blank'
        end
      ),
      hint = 'Pass 1 to 200 characters, not all of them white space.';
  end if;

  insert into citeledger.firms (name)
  values (p_name)
  returning id into v_firm_id;
  return v_firm_id;
end
$$;

comment on function citeledger.create_firm(text) is
  'Onboards a firm and returns its id. p_name: 1 to 200 characters, not blank; names may repeat. '
  'For citeledger_admin. Errors: 22023 for a blank, null or longer name.';

revoke all on function citeledger.create_firm(text) from public;
grant execute on function citeledger.create_firm(text) to citeledger_admin;

commit;
