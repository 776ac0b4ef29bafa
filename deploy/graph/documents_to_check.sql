-- Deploy citeledger:graph/documents_to_check to pg
-- requires: cite/documents

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Not concurrently, which no transaction can: writers of documents wait while they are read once.
-- A no-op but where an upgrade was interrupted and is run again; then it needs no notice.
set local client_min_messages = warning;
-- squawk-ignore require-concurrent-index-creation
create index if not exists documents_withdrawn_idx on citeledger.documents (firm_id, id)
  where deleted_at is not null;
-- Not "is not null": what looks for a document of a known matter would take it for the primary key.
-- squawk-ignore require-concurrent-index-creation
create index if not exists documents_in_matters_idx on citeledger.documents (firm_id, id)
  where num_nonnulls(project_id) = 1;

comment on index citeledger.documents_withdrawn_idx is
  'Which of some documents are withdrawn: asked at each hop of a walk, and mostly of few rows.';
comment on index citeledger.documents_in_matters_idx is
  'Which of some documents are in a matter, so that a wall may stand before them: asked at each '
  'hop of a walk where the firm has walls.';

commit;
