-- Deploy citeledger:gate/finalize_pending to pg
-- requires: gate/settle

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger.finalize_pending(
  p_limit integer default 1000
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_firm_id uuid := citeledger.current_firm_id();
  v_message_ids uuid[];
  v_verdicts integer;
begin
  if p_limit is null or p_limit < 1 then
    raise exception using
      errcode = '22023',
      message = 'p_limit is not a number of turns',
      detail = format('p_limit is %s.', coalesce(p_limit::text, 'null')),
      hint = 'Pass a number from 1 up, or leave it out for 1000.';
  end if;

  -- Those that failed longest ago first, so that turns that fail again and again starve no other.
  v_message_ids := array(
    select pending.id
    from (
      select m.id
      from citeledger.messages as m
      where m.firm_id = v_firm_id
        and m.role = 'assistant'
        and m.finalized_at is not null
        and (
          not exists (
            select
            from citeledger.work_product_fiduciary_gate as g
            where g.firm_id = v_firm_id and g.message_id = m.id
          )
          or exists (
            select
            from citeledger.finalize_failure as f
            where f.firm_id = v_firm_id and f.message_id = m.id
          )
        )
      order by
        (
          select max(f.failed_at)
          from citeledger.finalize_failure as f
          where f.firm_id = v_firm_id and f.message_id = m.id
        ) nulls first,
        m.id
      limit p_limit
      for no key update of m skip locked
    ) as pending
    order by pending.id
  );

  perform citeledger_private.settle(v_firm_id, v_message_ids);

  select count(*)::integer
  into v_verdicts
  from citeledger.work_product_fiduciary_gate as g
  where g.firm_id = v_firm_id and g.message_id = any(v_message_ids);
  return v_verdicts;
end
$$;

comment on function citeledger.finalize_pending(integer) is
  'Finalizes up to p_limit of the context firm''s finalized turns that lack a verdict or have '
  'logged failures, skipping those that another session has locked; returns how many of them have '
  'a verdict now. Run it from a job, under read committed; a turn whose source cannot be written '
  'keeps its flagged verdict and its failure, and is tried again each time, after all others. '
  'Locks those messages until the transaction ends. For citeledger_app. Errors: 22023 for a '
  'p_limit that is null or below 1; those that pass, as for finalize_turn.';

revoke all on function citeledger.finalize_pending(integer) from public;
grant execute on function citeledger.finalize_pending(integer) to citeledger_app;
grant execute on function citeledger.finalize_pending(integer) to citeledger_admin;

commit;
