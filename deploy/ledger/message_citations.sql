-- Deploy citeledger:ledger/message_citations to pg
-- requires: ledger/messages
-- requires: cite/documents

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create table citeledger.message_citations (
  firm_id uuid not null default citeledger.current_firm_id(),
  id uuid not null default gen_random_uuid(),
  message_id uuid not null,
  source_document_id uuid,
  source_page integer,
  source_block integer,
  source_offset_start integer,
  source_offset_end integer,
  source_text text not null,
  verified boolean not null default false,
  verification_method text,
  verification_confidence numeric(3,2),
  created_at timestamptz not null default clock_timestamp(),
  constraint message_citations_pkey primary key (firm_id, id),
  constraint message_citations_message_source_key unique (firm_id, message_id, id),
  constraint message_citations_message_fkey foreign key (firm_id, message_id)
    references citeledger.messages (firm_id, id) on delete cascade,
  constraint message_citations_document_fkey foreign key (firm_id, source_document_id)
    references citeledger.documents (firm_id, id) on delete set null (source_document_id),
  constraint message_citations_offsets_are_a_range check (
    (source_offset_start is null) = (source_offset_end is null)
    and source_offset_start >= 0
    and source_offset_end > source_offset_start
  ),
  constraint message_citations_method_is_known check (
    verification_method in (
      'exact_match', 'tolerant_match', 'paraphrase_judge', 'ensemble_strict', 'ensemble_majority',
      'failed'
    )
  ),
  constraint message_citations_confidence_is_a_share check (
    verification_confidence >= 0 and verification_confidence <= 1
  ),
  constraint message_citations_verified_names_method check (
    not verified or verification_method is not null
  ),
  -- A year within the calendar's ends, so that it is in it under every zone.
  constraint message_citations_created_at_is_in_the_calendar check (
    isfinite(created_at) and extract(year from created_at at time zone 'UTC') between 2 and 9998
  )
);

create index message_citations_document_idx
  on citeledger.message_citations (firm_id, source_document_id);

alter table citeledger.message_citations enable row level security;
alter table citeledger.message_citations force row level security;

create policy message_citations_of_the_firm on citeledger.message_citations
  using (firm_id = (select citeledger.current_firm_id()))
  with check (firm_id = (select citeledger.current_firm_id()));

-- No statistics of content: an estimate would tell one firm about the texts of another.
alter table citeledger.message_citations alter column source_text set statistics 0;

comment on table citeledger.message_citations is
  'Citations of the firm''s own documents that a turn made. Record failed ones too, as verified = '
  'false: the gate cannot see a citation that nobody recorded.';
comment on column citeledger.message_citations.firm_id is
  'The tenant; default the firm of the context.';
comment on column citeledger.message_citations.id is 'The citation.';
comment on column citeledger.message_citations.message_id is 'The turn that made it.';
comment on column citeledger.message_citations.source_document_id is
  'The cited document; null when unknown, and after the document was deleted.';
comment on column citeledger.message_citations.source_page is 'Page of the quote, from 1, or null.';
comment on column citeledger.message_citations.source_block is
  'Block of the page, from 0; null when the offsets count in the whole page.';
comment on column citeledger.message_citations.source_offset_start is
  'First character of the quote, in Unicode code points from 0, in the block or page; or null.';
comment on column citeledger.message_citations.source_offset_end is
  'One past the last character of the quote, counted alike; null exactly when the start is.';
comment on column citeledger.message_citations.source_text is 'The quote, as the turn gave it.';
comment on column citeledger.message_citations.verified is
  'Whether the method of verification found the quote to hold.';
comment on column citeledger.message_citations.verification_method is
  'How it was verified: exact_match, tolerant_match, paraphrase_judge, ensemble_strict, '
  'ensemble_majority or failed; null when nobody has tried.';
comment on column citeledger.message_citations.verification_confidence is
  'The verifier''s confidence, 0 to 1 with two decimals, or null.';
comment on column citeledger.message_citations.created_at is
  'When it was recorded, by the clock, so that the order within a transaction shows.';
comment on constraint message_citations_pkey on citeledger.message_citations is
  'A citation is known within its firm.';
comment on constraint message_citations_message_source_key on citeledger.message_citations is
  'Lets a ledger entry reference turn and citation at once, so that it cannot mix two turns. '
  'Serves the citations of a turn and the referencing side of message_citations_message_fkey.';
comment on constraint message_citations_message_fkey on citeledger.message_citations is
  'A citation goes with its turn.';
comment on constraint message_citations_document_fkey on citeledger.message_citations is
  'A citation points to a document of its own firm; the quote stays when the document goes.';
comment on constraint message_citations_offsets_are_a_range on citeledger.message_citations is
  'Offsets are both there or both absent, start at 0 or later, and end after they start.';
comment on constraint message_citations_method_is_known on citeledger.message_citations is
  'One of the six methods, or null.';
comment on constraint message_citations_confidence_is_a_share on citeledger.message_citations is
  'From 0 to 1, or null; NaN is neither.';
comment on constraint message_citations_verified_names_method on citeledger.message_citations is
  'What is verified says by which method.';
comment on constraint message_citations_created_at_is_in_the_calendar
  on citeledger.message_citations is
  'A time that every client can read: neither infinite nor beyond the years 2 to 9998.';
comment on index citeledger.message_citations_document_idx is
  'The citations of a document; the referencing side of message_citations_document_fkey.';
comment on policy message_citations_of_the_firm on citeledger.message_citations is
  'Only rows of the firm of the context, to read and to write.';

revoke all on table citeledger.message_citations from public;
grant select, insert, delete on table citeledger.message_citations to citeledger_app;
grant update (verified, verification_method, verification_confidence)
  on table citeledger.message_citations to citeledger_app;

commit;
