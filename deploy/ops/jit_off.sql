-- Deploy citeledger:ops/jit_off to pg
-- requires: ops/describe_function
-- requires: tenancy/delete_firm
-- requires: ledger/keep_revisions
-- requires: ledger/assemble_ledger_entries
-- requires: gate/compute_and_record_gate
-- requires: gate/finalize_pending
-- requires: cite/replace_document_pages
-- requires: cite/resolve_span
-- requires: cite/cite_ledger_entry
-- requires: cite/recheck_document
-- requires: cite/read_pages
-- requires: cite/suggest_spans
-- requires: graph/lock_graph
-- requires: graph/resolve_references
-- requires: graph/record_crossref_work
-- requires: graph/graph_stage
-- requires: graph/corpus_delete
-- requires: graph/graph_gc
-- requires: ops/check_integrity
-- requires: gate/source_triggers
-- requires: gate/message_triggers
-- requires: gate/finalize_turn
-- requires: gate/finalize_turns
-- requires: ledger/ledger_trace
-- requires: cite/cite
-- requires: cite/cite_many
-- requires: graph/get_citations
-- requires: graph/walk_citations
-- requires: graph/document_triggers
-- requires: graph/record_references

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- Whatever is called from outside, and so all that it calls, has its statements interpreted. A
-- server that can compile plans goes by their estimate, and that of a plan that is kept is high: it
-- counts on ten elements of each array, and on a firm of average size. To compile such a plan takes
-- a hundred times as long as to run it, and is done anew each time.
alter function citeledger.assemble_ledger_entries(uuid) set jit = off;
alter function citeledger.check_integrity() set jit = off;
alter function citeledger.cite(uuid, jsonb) set jit = off;
alter function citeledger.cite_ledger_entry(uuid) set jit = off;
alter function citeledger.cite_many(uuid, jsonb) set jit = off;
alter function citeledger.compute_and_record_gate(uuid) set jit = off;
alter function citeledger.corpus_delete(uuid[]) set jit = off;
alter function citeledger.delete_firm(uuid) set jit = off;
alter function citeledger.finalize_pending(integer) set jit = off;
alter function citeledger.finalize_turn(uuid) set jit = off;
alter function citeledger.finalize_turns(uuid[]) set jit = off;
alter function citeledger.get_citations(uuid) set jit = off;
alter function citeledger.graph_gc(boolean) set jit = off;
alter function citeledger.graph_stage(text[], integer, boolean, jsonb, integer) set jit = off;
alter function citeledger.ledger_trace(uuid, uuid) set jit = off;
alter function citeledger.read_pages(uuid, uuid, integer) set jit = off;
alter function citeledger.recheck_document(uuid) set jit = off;
alter function citeledger.record_crossref_work(uuid, jsonb) set jit = off;
alter function citeledger.record_references(uuid, text[], text) set jit = off;
alter function citeledger.replace_document_pages(uuid, jsonb) set jit = off;
alter function citeledger.resolve_references(boolean) set jit = off;
alter function citeledger.resolve_span(jsonb) set jit = off;
alter function citeledger.suggest_spans(uuid, jsonb, integer) set jit = off;
alter function citeledger.walk_citations(uuid[], integer, text) set jit = off;
alter function citeledger_private.before_ingest() set jit = off;
alter function citeledger_private.citation_updated() set jit = off;
alter function citeledger_private.documents_arrived() set jit = off;
alter function citeledger_private.documents_changed() set jit = off;
alter function citeledger_private.documents_left() set jit = off;
alter function citeledger_private.finalize_inserted() set jit = off;
alter function citeledger_private.finalize_updated() set jit = off;
alter function citeledger_private.keep_deleted_values() set jit = off;
alter function citeledger_private.keep_replaced_values() set jit = off;
alter function citeledger_private.seal_message() set jit = off;
alter function citeledger_private.source_deleted() set jit = off;
alter function citeledger_private.source_inserted() set jit = off;

commit;
