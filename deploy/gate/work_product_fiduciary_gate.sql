-- Deploy citeledger:gate/work_product_fiduciary_gate to pg
-- requires: ledger/messages

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.work_product_fiduciary_gate (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  chat_id uuid not null,
  project_id uuid,
  gate_status text not null,
  pass_count integer not null,
  supported_count integer not null,
  fail_count integer not null,
  total_assertions integer not null,
  unrecognized_count integer not null,
  confidence double precision,
  computed_at timestamptz not null default clock_timestamp(),
  created_at timestamptz not null default now(),
  constraint work_product_fiduciary_gate_pkey primary key (firm_id, id),
  constraint work_product_fiduciary_gate_message_key unique (firm_id, message_id),
  constraint work_product_fiduciary_gate_message_fkey foreign key (firm_id, chat_id, message_id)
    references citeledger.messages (firm_id, chat_id, id) on delete cascade,
  constraint work_product_fiduciary_gate_project_fkey foreign key (firm_id, project_id)
    references citeledger.projects (firm_id, id) on delete set null (project_id),
  constraint work_product_fiduciary_gate_counts_are_not_negative check (
    pass_count >= 0 and supported_count >= 0 and fail_count >= 0 and unrecognized_count >= 0
  ),
  constraint work_product_fiduciary_gate_total_is_the_sum check (
    total_assertions = pass_count + supported_count + fail_count
  ),
  constraint work_product_fiduciary_gate_status_is_what_counts_say check (
    gate_status = case
      when fail_count > 0 or unrecognized_count > 0 then 'flagged'
      when supported_count > 0 then 'supported_only'
      else 'fiduciary_grade'
    end
  ),
  constraint work_product_fiduciary_gate_status_is_label check (
    gate_status ~ '^[a-z][a-z0-9_]{0,31}$'
  ),
  constraint work_product_fiduciary_gate_confidence_is_a_share check (
    confidence >= 0 and confidence <= 1
  )
)
-- Room on the page for a verdict that changes, which then costs no index entry.
with (fillfactor = 90);

create index work_product_fiduciary_gate_chat_idx
  on citeledger.work_product_fiduciary_gate (firm_id, chat_id, message_id);
create index work_product_fiduciary_gate_project_idx
  on citeledger.work_product_fiduciary_gate (firm_id, project_id);

alter table citeledger.work_product_fiduciary_gate enable row level security;
alter table citeledger.work_product_fiduciary_gate force row level security;

create policy work_product_fiduciary_gate_of_the_firm on citeledger.work_product_fiduciary_gate
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

comment on table citeledger.work_product_fiduciary_gate is
  'The verdict of each turn, computed from its ledger and never set by hand: one row a turn. A '
  'verdict of fiduciary_grade with total_assertions 0 means that the turn asserted nothing that '
  'was recorded; show it as such.';
comment on column citeledger.work_product_fiduciary_gate.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.work_product_fiduciary_gate.id is 'The verdict.';
comment on column citeledger.work_product_fiduciary_gate.message_id is 'The turn.';
comment on column citeledger.work_product_fiduciary_gate.chat_id is 'The chat of the turn.';
comment on column citeledger.work_product_fiduciary_gate.project_id is
  'The matter of the chat when the verdict was computed; null for none, and after it was deleted.';
comment on column citeledger.work_product_fiduciary_gate.gate_status is
  'flagged when something failed or is unrecognised, else supported_only when something is merely '
  'supported, else fiduciary_grade.';
comment on column citeledger.work_product_fiduciary_gate.pass_count is
  'Assertions whose quote matched: exact_match, tolerant_match.';
comment on column citeledger.work_product_fiduciary_gate.supported_count is
  'Assertions that a judge found supported: paraphrase_judge, ensemble_strict, ensemble_majority.';
comment on column citeledger.work_product_fiduciary_gate.fail_count is
  'Assertions that are unverified or failed, or that have no ledger entry.';
comment on column citeledger.work_product_fiduciary_gate.total_assertions is
  'pass_count + supported_count + fail_count. What a tool brought is provenance, not an assertion.';
comment on column citeledger.work_product_fiduciary_gate.unrecognized_count is
  'Entries with a status that verification_tier does not know: in no other count, but flagging.';
comment on column citeledger.work_product_fiduciary_gate.confidence is
  'Mean of the confidences of the counted entries that have one, 0 to 1, or null.';
comment on column citeledger.work_product_fiduciary_gate.computed_at is
  'When this verdict was computed, by the clock; an unchanged verdict is not written again.';
comment on column citeledger.work_product_fiduciary_gate.created_at is
  'When the turn got its first verdict.';
comment on constraint work_product_fiduciary_gate_pkey on citeledger.work_product_fiduciary_gate is
  'A verdict is known within its firm.';
comment on constraint work_product_fiduciary_gate_message_key
  on citeledger.work_product_fiduciary_gate is
  'A turn has one verdict.';
comment on constraint work_product_fiduciary_gate_message_fkey
  on citeledger.work_product_fiduciary_gate is
  'A verdict goes with its turn, and its chat is the turn''s.';
comment on constraint work_product_fiduciary_gate_project_fkey
  on citeledger.work_product_fiduciary_gate is
  'A verdict names a matter of its own firm; it stays when the matter goes.';
comment on constraint work_product_fiduciary_gate_counts_are_not_negative
  on citeledger.work_product_fiduciary_gate is
  'Counts are zero or more.';
comment on constraint work_product_fiduciary_gate_total_is_the_sum
  on citeledger.work_product_fiduciary_gate is
  'The total is what passed, is supported and failed: nothing is dropped, nothing counted twice.';
comment on constraint work_product_fiduciary_gate_status_is_what_counts_say
  on citeledger.work_product_fiduciary_gate is
  'A verdict that contradicts its counts cannot be stored: fail or unrecognised > 0 is flagged, '
  'else supported > 0 is supported_only, else fiduciary_grade.';
comment on constraint work_product_fiduciary_gate_status_is_label
  on citeledger.work_product_fiduciary_gate is
  'A label: it cannot hold content.';
comment on constraint work_product_fiduciary_gate_confidence_is_a_share
  on citeledger.work_product_fiduciary_gate is
  'From 0 to 1, or null; NaN is neither.';
comment on index citeledger.work_product_fiduciary_gate_chat_idx is
  'The verdicts of a chat. Referencing side of work_product_fiduciary_gate_message_fkey.';
comment on index citeledger.work_product_fiduciary_gate_project_idx is
  'The verdicts of a matter. Referencing side of work_product_fiduciary_gate_project_fkey.';
comment on policy work_product_fiduciary_gate_of_the_firm
  on citeledger.work_product_fiduciary_gate is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.work_product_fiduciary_gate from public;
grant select on table citeledger.work_product_fiduciary_gate to citeledger_app;

commit;
