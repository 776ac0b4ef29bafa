-- Verify citeledger:gate/compute_and_record_gate on pg

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

select citeledger_private.verify_function(
  'citeledger.compute_and_record_gate(uuid)', $facts$
  arguments p_message_id uuid
  grant execute to citeledger_admin
  grant execute to citeledger_app
  language plpgsql
  owner citeledger_owner
  parallel unsafe
  returns citeledger.work_product_fiduciary_gate
  security definer
  set search_path=pg_catalog, pg_temp
  volatile
$facts$);

rollback;
