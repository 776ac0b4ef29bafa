-- Deploy citeledger:gate/gate_status to pg
-- requires: tenancy/schemas

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every verdict: that takes a body that is
-- bound when the function is made, and no setting of its own.
create or replace function citeledger_private.gate_status(
  p_supported_count integer,
  p_fail_count integer,
  p_unrecognized_count integer
)
returns text
language sql
immutable
parallel safe
security invoker
return case
  when p_fail_count > 0 or p_unrecognized_count > 0 then 'flagged'
  when p_supported_count > 0 then 'supported_only'
  else 'fiduciary_grade'
end;

comment on function citeledger_private.gate_status(integer, integer, integer) is
  'The verdict of a turn with so many citations that are supported, that fail, and whose status is '
  'not known. A CHECK of work_product_fiduciary_gate holds the same rule against every row.';

revoke all on function citeledger_private.gate_status(integer, integer, integer) from public;

commit;
