-- Deploy citeledger:cite/quote_fault to pg
-- requires: cite/span

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

-- In place of a call the planner puts what is below, for every span of a list: that takes a body
-- that is bound when the function is made, and no setting of its own.
create or replace function citeledger_private.quote_fault(
  p_content text,
  p_char_start integer,
  p_char_end integer,
  p_quote text
)
returns text
language sql
immutable
parallel safe
security invoker
return case
  -- Mostly the first place of the quote is the one that is asked for. If it is as long as it should
  -- be, it is what the offsets cut out, and the characters of the whole text need not be counted.
  -- Looking for a quote can take its length times the text's, cutting it out never does: where
  -- either is long it is cut out at once.
  when p_char_start is not null
    and octet_length(p_content) <= 16384
    and octet_length(p_quote) <= 256
    and strpos(p_content collate "C", p_quote collate "C") = p_char_start + 1
    and char_length(p_quote) = p_char_end - p_char_start
    -- Nearly always the first character is a letter, digit or sign of ASCII.
    and (ascii(p_quote) between 33 and 126 or citeledger_private.is_blank(p_quote) is false)
    then null
  when p_char_start is null then case
    when strpos(p_content collate "C", p_quote collate "C") > 0
      and not citeledger_private.is_blank(p_quote)
      then null
    else 'quote_absent'
  end
  -- Checked before the slice is cut: substring would clip to the text without a word.
  when p_char_end > char_length(p_content) then 'offsets_out_of_range'
  when substring(p_content from p_char_start + 1 for p_char_end - p_char_start) collate "C"
      = p_quote collate "C"
    and not citeledger_private.is_blank(p_quote)
    then null
  else 'text_mismatch'
end;

comment on function citeledger_private.quote_fault(text, integer, integer, text) is
  'Compares a quote with the live text of its unit, byte for byte: null where it verifies, else '
  'offsets_out_of_range, text_mismatch or, without offsets, quote_absent. A blank quote verifies '
  'nowhere, nor does anything in a text that is null. The one place where a quote is compared.';

revoke all on function citeledger_private.quote_fault(text, integer, integer, text) from public;

commit;
