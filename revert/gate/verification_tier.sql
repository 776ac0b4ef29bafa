-- Revert citeledger:gate/verification_tier from pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create or replace function citeledger.verification_tier(
  p_status text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  return case p_status collate "C"
    when 'exact_match' then 'pass'
    when 'tolerant_match' then 'pass'
    when 'paraphrase_judge' then 'supported'
    when 'ensemble_strict' then 'supported'
    when 'ensemble_majority' then 'supported'
    when 'unverified' then 'fail'
    when 'failed' then 'fail'
    when 'provenance' then 'provenance'
  end;
end
$$;

comment on function citeledger.verification_tier(text) is
  'The tier of a verification status: pass (exact_match, tolerant_match), supported '
  '(paraphrase_judge, ensemble_strict, ensemble_majority), fail (unverified, failed) or '
  'provenance. Null for any other status, compared exactly: no case is folded and no blank '
  'trimmed.';

revoke all on function citeledger.verification_tier(text) from public;
grant execute on function citeledger.verification_tier(text) to citeledger_reader;
grant execute on function citeledger.verification_tier(text) to citeledger_app;
grant execute on function citeledger.verification_tier(text) to citeledger_admin;

commit;
