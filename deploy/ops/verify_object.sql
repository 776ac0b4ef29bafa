-- Deploy citeledger:ops/verify_object to pg
-- requires: ops/describe_relation
-- requires: ops/describe_function

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.verify_lines(
  p_object text,
  p_found text[],
  p_expected text,
  p_closed text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_expected text[];
  v_found text[];
  v_missing text[];
  v_unexpected text[];
begin
  -- A line that is indented by four or more blanks continues the one before.
  v_expected := array(
    select regexp_replace(btrim(l.line), '[[:space:]]+', ' ', 'g')
    from string_to_table(regexp_replace(p_expected, E'\n {4,}', ' ', 'g'), E'\n') as l (line)
    where btrim(l.line) <> ''
  );
  v_found := array(
    select regexp_replace(f.line, '[[:space:]]+', ' ', 'g') from unnest(p_found) as f (line)
  );
  v_missing := array(select unnest(v_expected) except select unnest(v_found) order by 1);
  v_unexpected := array(
    select f.line
    from (select unnest(v_found) except select unnest(v_expected)) as f (line)
    where f.line ~ p_closed
    order by 1
  );
  if cardinality(v_missing) + cardinality(v_unexpected) > 0 then
    raise exception using
      errcode = '55000',
      message = format('%s is not as it was deployed', p_object),
      detail = concat_ws(
        E'\n',
        'Missing: ' || nullif(array_to_string(v_missing, E'\n  '), ''),
        'Unexpected: ' || nullif(array_to_string(v_unexpected, E'\n  '), '')
      ),
      hint = 'Somebody changed it by hand: put it back, or revert and deploy the change.';
  end if;
end
$$;

create function citeledger_private.verify_relation(
  p_relation regclass,
  p_expected text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A later change may add a column, an index or a trigger, but nothing may open another door.
  perform citeledger_private.verify_lines(
    p_relation::text,
    array(select citeledger_private.describe_relation(p_relation)),
    p_expected,
    '^(owner|row security|grant|uncommented) |^policy [^ ]+ permissive '
  );
end
$$;

create function citeledger_private.verify_parts(
  p_relation regclass,
  p_expected text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform citeledger_private.verify_lines(
    p_relation::text,
    array(select citeledger_private.describe_relation(p_relation)),
    p_expected,
    '^uncommented '
  );
end
$$;

create function citeledger_private.verify_function(
  p_function regprocedure,
  p_expected text
)
returns void
language plpgsql
stable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform citeledger_private.verify_lines(
    p_function::text,
    array(select citeledger_private.describe_function(p_function)),
    p_expected,
    ''
  );
end
$$;

comment on function citeledger_private.verify_lines(text, text[], text, text) is
  'Compares what was found of an object with the lines of p_expected; a found line that is not '
  'expected is an error where it matches the pattern p_closed. In p_expected a line indented by '
  'four or more blanks continues the one before. Errors: 55000 naming the lines.';
comment on function citeledger_private.verify_relation(regclass, text) is
  'For the verify scripts: the table is as p_expected says, a line for each fact (see '
  'describe_relation), with no other owner, grant or permissive policy and everything commented. '
  'Errors: 55000 naming the lines.';
comment on function citeledger_private.verify_parts(regclass, text) is
  'For the verify scripts of what is added to a table of another change: the lines of p_expected '
  'are there, and everything is commented. Errors: 55000 naming the lines.';
comment on function citeledger_private.verify_function(regprocedure, text) is
  'For the verify scripts: the function is exactly as p_expected says, a line for each fact (see '
  'describe_function). Errors: 55000 naming the lines.';

revoke all on function citeledger_private.verify_lines(text, text[], text, text) from public;
revoke all on function citeledger_private.verify_relation(regclass, text) from public;
revoke all on function citeledger_private.verify_parts(regclass, text) from public;
revoke all on function citeledger_private.verify_function(regprocedure, text) from public;

commit;
