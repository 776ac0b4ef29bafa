-- Deploy citeledger:graph/normalize_doi to pg
-- requires: tenancy/schemas

begin;

set local role citeledger_owner;
set local search_path = pg_catalog, pg_temp;

create function citeledger_private.percent_decode(
  p_text text
)
returns text
language plpgsql
immutable
parallel safe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hex text := '';
  v_piece text;
  v_bytes bytea;
  v_decoded text := '';
begin
  if strpos(p_text, '%') = 0 then
    return p_text;
  end if;

  -- Runs of encoded bytes are decoded together, for a character may take several; what lies between
  -- them is copied. A percent sign that encodes nothing stands for itself.
  for v_piece in
    select p.piece[1]
    from regexp_matches(p_text collate "C", '(?:%[0-9A-Fa-f]{2})+|[^%]+|%', 'g') as p (piece)
  loop
    if v_piece collate "C" !~ '^%[0-9A-Fa-f]{2}' then
      v_decoded := v_decoded || v_piece;
      continue;
    end if;
    v_hex := lower(replace(v_piece, '%', '') collate "C");
    -- Well-formed UTF-8 and nothing else: no overlong form, no surrogate, no NUL.
    if v_hex collate "C" !~ (
      '^(?:(?!00)[0-7][0-9a-f]|c[2-9a-f][89ab][0-9a-f]|d[0-9a-f][89ab][0-9a-f]'
      || '|e0[ab][0-9a-f][89ab][0-9a-f]|e[1-9abcef][89ab][0-9a-f][89ab][0-9a-f]'
      || '|ed[89][0-9a-f][89ab][0-9a-f]|f0[9ab][0-9a-f](?:[89ab][0-9a-f]){2}'
      || '|f[1-3](?:[89ab][0-9a-f]){3}|f48[0-9a-f](?:[89ab][0-9a-f]){2})+$'
    ) then
      return null;
    end if;
    for v_bytes in
      select decode(c.hex[1], 'hex')
      from regexp_matches(
        v_hex collate "C",
        '[0-7][0-9a-f]|[cd][0-9a-f]{3}|e[0-9a-f]{5}|f[0-9a-f]{7}',
        'g'
      ) as c (hex)
    loop
      v_decoded := v_decoded || chr(
        case length(v_bytes)
          when 1 then get_byte(v_bytes, 0)
          when 2 then
            ((get_byte(v_bytes, 0) & 31) << 6) | (get_byte(v_bytes, 1) & 63)
          when 3 then
            ((get_byte(v_bytes, 0) & 15) << 12)
            | ((get_byte(v_bytes, 1) & 63) << 6)
            | (get_byte(v_bytes, 2) & 63)
          else
            ((get_byte(v_bytes, 0) & 7) << 18)
            | ((get_byte(v_bytes, 1) & 63) << 12)
            | ((get_byte(v_bytes, 2) & 63) << 6)
            | (get_byte(v_bytes, 3) & 63)
        end
      );
    end loop;
  end loop;
  return v_decoded;
end
$$;

create function citeledger.normalize_doi(
  p_doi text
)
returns text
language plpgsql
immutable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- White space in every script, and the zero-width characters that travel with copied text.
  v_blanks constant text :=
    E'\u0009\u000a\u000b\u000c\u000d\u0020\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005'
    || E'\u2006\u2007\u2008\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff';
  v_doi text;
  v_prefix text;
  v_is_url boolean := false;
  -- Opening, closing, opening, closing: four kinds.
  v_brackets constant text := '()[]{}<>';
  v_body text;
  v_tail text;
  v_balance integer[];
  v_letter text;
  v_position integer;
  v_bracket integer;
  v_kind integer;
  v_end integer := 0;
begin
  -- No DOI of 2048 bytes grows to more, however it is encoded; beyond it nothing is looked at.
  if p_doi is null or octet_length(p_doi) > 8192 then
    return null;
  end if;
  -- What nearly every list holds: nothing to drop, nothing to decode, only letters to lower.
  if p_doi collate "C" ~ '^10[.][0-9]+(?:[.][0-9]+)*/[A-Za-z0-9._/-]*[A-Za-z0-9]$'
    and octet_length(p_doi) <= 2048
  then
    return translate(p_doi, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz');
  end if;

  v_doi := btrim(p_doi, v_blanks);
  loop
    v_prefix := substring(
      v_doi collate "C"
      from '^(?:[dD][oO][iI]:|(?:[hH][tT][tT][pP][sS]?://)?(?:[dD][xX][.]|[wW][wW][wW][.])?'
        || '[dD][oO][iI][.][oO][rR][gG]/)'
    );
    exit when v_prefix is null;
    v_is_url := v_is_url or right(v_prefix, 1) = '/';
    v_doi := ltrim(substr(v_doi, length(v_prefix) + 1), v_blanks);
  end loop;

  if v_is_url then
    v_doi := split_part(split_part(v_doi, '#', 1), '?', 1);
    -- Once: what a DOI has encoded in itself stays encoded.
    v_doi := citeledger_private.percent_decode(v_doi);
  end if;

  -- ASCII letters alone, letter by letter: lower() would ask a locale.
  v_doi := translate(v_doi, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz');

  -- An ampersand that was escaped again and again is unescaped until nothing is left to do.
  while strpos(v_doi, '&amp;') > 0 loop
    v_doi := replace(v_doi, '&amp;', '&');
  end loop;
  v_doi := replace(replace(v_doi, '&lt;', '<'), '&gt;', '>');

  -- What follows a DOI in a sentence: punctuation, opening brackets, closing ones of no pair. So it
  -- ends with the last closing bracket that is balanced up to there, or before all of these.
  v_body := rtrim(v_doi, v_blanks || E'.,;:!?''"\u2019\u201d\u00bb\u2026' || v_brackets);
  v_tail := substr(v_doi, length(v_body) + 1);
  if v_tail <> '' then
    v_balance := array(
      select length(replace(v_body, substr(v_brackets, 2 * k.kind, 1), ''))
        - length(replace(v_body, substr(v_brackets, 2 * k.kind - 1, 1), ''))
      from generate_series(1, 4) as k (kind)
      order by k.kind
    );
    for v_letter, v_position in
      select t.letter, t.position::integer
      from string_to_table(v_tail, null) with ordinality as t (letter, position)
    loop
      v_bracket := strpos(v_brackets, v_letter);
      continue when v_bracket = 0;
      v_kind := (v_bracket + 1) / 2;
      if v_bracket % 2 = 1 then
        v_balance[v_kind] := v_balance[v_kind] + 1;
      else
        v_balance[v_kind] := v_balance[v_kind] - 1;
        if v_balance[v_kind] >= 0 then
          v_end := v_position;
        end if;
      end if;
    end loop;
    v_doi := v_body || left(v_tail, v_end);
  end if;

  if v_doi collate "C" !~ '^10[.][0-9]+(?:[.][0-9]+)*/.+$'
    or octet_length(v_doi) > 2048
    or length(translate(v_doi, v_blanks, '')) < length(v_doi)
  then
    return null;
  end if;
  return v_doi;
end
$$;

comment on function citeledger_private.percent_decode(text) is
  'The text with its percent sequences decoded once; null when they decode to NUL or to what is '
  'not UTF-8. A percent sign that encodes nothing stands for itself.';
comment on function citeledger.normalize_doi(text) is
  'The key of a DOI as printed, or null when the whole text is none; it does not search for a DOI '
  'inside other text. It trims; drops doi: and the resolvers doi.org/, dx.doi.org/, www.doi.org/ '
  'with or without http:// or https://, in any case; of a resolver''s address it drops ?query and '
  '#fragment and percent-decodes once; decodes &lt; &gt; &amp; until none is left; drops trailing '
  'white space, sentence punctuation and unbalanced brackets; and lowers ASCII letters, under no '
  'locale. A key is 10.registrant/suffix without white space, the registrant digits with dotted '
  'sub-divisions, at most 2048 bytes. Idempotent. Stored keys (documents.doi_key, '
  'document_references.doi_key) do not follow a change of this function by themselves.';

revoke all on function citeledger_private.percent_decode(text) from public;
revoke all on function citeledger.normalize_doi(text) from public;
-- The generated columns call it as the inserting role, which may not look into the private schema:
-- hence security definer.
grant execute on function citeledger.normalize_doi(text) to citeledger_reader;
grant execute on function citeledger.normalize_doi(text) to citeledger_app;
grant execute on function citeledger.normalize_doi(text) to citeledger_admin;

commit;
