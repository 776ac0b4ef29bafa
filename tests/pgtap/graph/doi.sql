-- normalize_doi: each kind of DOI that lists really hold, and what looks like one and is none.
--
-- Run by a login that is no superuser, not exempt from row security, owner of nothing, and a
-- member of citeledger_reader, citeledger_app and citeledger_admin alone. All is rolled back.

begin;

select plan(180);

-- A superuser, a role exempt from row security, or an owner would pass tests that guard nothing.
select is(
  (select r.rolsuper from pg_roles as r where r.rolname = session_user),
  false,
  'the login is no superuser'
);
select is(
  (select r.rolbypassrls from pg_roles as r where r.rolname = session_user),
  false,
  'the login is not exempt from row security'
);
select ok(
  not pg_has_role(session_user, 'citeledger_owner', 'member'),
  'the login is no member of citeledger_owner'
);

set local role citeledger_reader;

create temporary table given (printed text, key text, why text);
grant select on given to public;
insert into given
values
  -- Plain.
  ('10.1000/abc.7', '10.1000/abc.7', 'a plain DOI is its own key'),
  ('10.1000/ABC.7', '10.1000/abc.7', 'letters are lowered'),
  ('10.1000.10/123456', '10.1000.10/123456', 'a registrant may be sub-divided'),
  ('10.1000.10.2/x', '10.1000.10.2/x', 'more than once'),
  ('10.12/x', '10.12/x', 'a registrant of two digits'),
  ('10.12345678901/x', '10.12345678901/x', 'and one of eleven'),
  ('10.1037//0033-2909.126.6.910', '10.1037//0033-2909.126.6.910', 'a suffix may start with a /'),
  ('10.1000/a/b/c', '10.1000/a/b/c', 'and hold more of them'),
  ('10.1000/x', '10.1000/x', 'a suffix of one letter'),
  ('10.1000/a_b-c~d*e''f', '10.1000/a_b-c~d*e''f', 'every printable sign may stand inside'),
  ('10.1000/a10.1000/a', '10.1000/a10.1000/a', 'two pasted together are neither of them'),
  -- Letters beyond ASCII.
  ('10.1000/ÄÉÎ', '10.1000/ÄÉÎ', 'letters beyond ASCII are not lowered'),
  ('10.1000/Iİıi', '10.1000/iİıi', 'neither are the i of Turkish'),
  ('10.1000/ΣΑΣ', '10.1000/ΣΑΣ', 'nor the sigma at the end of a word'),
  (E'10.1049/ip\u2010gtd:20010431', E'10.1049/ip\u2010gtd:20010431', 'a hyphen of type is kept'),
  (E'10.1007/s10711\u20130018\u20130327\u20134', E'10.1007/s10711\u20130018\u20130327\u20134',
    'and so are en dashes: no DOI is made up'),
  -- Prefixes.
  ('doi:10.1000/abc', '10.1000/abc', 'doi: is dropped'),
  ('DOI: 10.1000/abc', '10.1000/abc', 'in any case, with a space behind'),
  ('doi.org/10.1000/abc', '10.1000/abc', 'so is a resolver without a scheme'),
  ('http://doi.org/10.1000/abc', '10.1000/abc', 'with http'),
  ('https://doi.org/10.1000/abc', '10.1000/abc', 'with https'),
  ('http://dx.doi.org/10.1000/abc', '10.1000/abc', 'dx.doi.org'),
  ('dx.doi.org/10.1000/abc', '10.1000/abc', 'without a scheme'),
  ('https://www.doi.org/10.1000/abc', '10.1000/abc', 'www.doi.org'),
  ('HTTPS://DX.DOI.ORG/10.1000/ABC', '10.1000/abc', 'in capitals'),
  ('doi:https://doi.org/10.1000/abc', '10.1000/abc', 'and one behind the other'),
  ('https://doi.org/doi:10.1000/abc', '10.1000/abc', 'in either order'),
  ('https://example.org/10.1000/abc', null, 'another site is no resolver'),
  ('https://doi.org.example/10.1000/abc', null, 'nor is one that only starts like it'),
  ('ftp://doi.org/10.1000/abc', null, 'nor another scheme'),
  ('https://hal.science/hal-02312483', null, 'an address is no DOI'),
  ('info:doi/10.1000/abc', null, 'nor is another identifier that holds one'),
  -- The address form.
  ('https://doi.org/10.1000/abc?locatt=label', '10.1000/abc', 'an address loses its query'),
  ('https://doi.org/10.1000/abc#page=3', '10.1000/abc', 'and its fragment'),
  ('doi.org/10.1000/abc?a=b#c?d', '10.1000/abc', 'and both'),
  ('10.1002/1097-0142(196509)18:9<1145::AID-CNCR2820180915>3.0.CO;2-#',
    '10.1002/1097-0142(196509)18:9<1145::aid-cncr2820180915>3.0.co;2-#', 'a bare DOI keeps its #'),
  ('10.1000/abc?x', '10.1000/abc?x', 'and its question mark'),
  ('https://doi.org/10.1000/a%2Fb', '10.1000/a/b', 'an address is decoded'),
  ('https://doi.org/10.1002%2Fabc', '10.1002/abc', 'its slash too'),
  ('https://doi.org/10.1000/a%3fb%23c', '10.1000/a?b#c', 'what was encoded is no query'),
  ('https://doi.org/10.1000/a%252Fb', '10.1000/a%2fb', 'once, not twice'),
  ('10.1000/a%2Fb', '10.1000/a%2fb', 'a bare DOI is not decoded'),
  ('doi:10.1000/a%2Fb', '10.1000/a%2fb', 'not with doi: either'),
  ('https://doi.org/10.1000/100%', '10.1000/100%', 'a percent sign alone stands for itself'),
  ('https://doi.org/10.1000/a%zz', '10.1000/a%zz', 'and so does one before other letters'),
  ('https://doi.org/10.1000/%C3%A9', '10.1000/é', 'UTF-8 is decoded'),
  ('https://doi.org/10.1000/%E2%80%93%F0%9F%98%80', E'10.1000/\u2013\U0001F600', 'of any length'),
  ('https://doi.org/10.1000/a%00b', null, 'NUL is refused'),
  ('https://doi.org/10.1000/%C3', null, 'a sequence cut short is refused'),
  ('https://doi.org/10.1000/%A9', null, 'one that starts in the middle'),
  ('https://doi.org/10.1000/%C0%AF', null, 'an overlong one'),
  ('https://doi.org/10.1000/%ED%A0%80', null, 'half of a surrogate pair'),
  ('https://doi.org/10.1000/%F4%90%80%80', null, 'and one beyond Unicode'),
  ('https://doi.org/10.1000/a%20b', null, 'white space inside is refused, however it is written'),
  -- Entities.
  ('10.1175/1520-0469(1979)036&lt;0099:TRITAS&gt;2.0.CO;2',
    '10.1175/1520-0469(1979)036<0099:tritas>2.0.co;2', 'entities are decoded'),
  ('10.1892/0891-6640(2005)19&lt;115:UTMOPI>2.0.CO;2',
    '10.1892/0891-6640(2005)19<115:utmopi>2.0.co;2', 'one of a pair'),
  ('10.1000/a&amp;b', '10.1000/a&b', 'the ampersand'),
  ('10.1000/a&amp;lt;b&amp;amp;gt;c', '10.1000/a<b>c', 'until none is left'),
  ('10.1000/a&AMP;b&LT;c', '10.1000/a&b<c', 'in capitals'),
  ('https://doi.org/10.1000/a%26lt%3Bb', '10.1000/a<b', 'after the percent sequences'),
  ('10.1000/a&quot;b', '10.1000/a&quot;b', 'no other entity'),
  -- SICI.
  ('10.1002/(SICI)1096-9861(19960129)365:1<113::AID-CNE9>3.0.CO;2-6',
    '10.1002/(sici)1096-9861(19960129)365:1<113::aid-cne9>3.0.co;2-6', 'a SICI is whole'),
  ('10.1002/(sici)1096-9861(19960129)365:1', '10.1002/(sici)1096-9861(19960129)365:1',
    'and not what stands before its bracket'),
  ('10.1890/1540-9295(2005)003[0029:ETTEID]2.0.CO;2',
    '10.1890/1540-9295(2005)003[0029:etteid]2.0.co;2', 'brackets of another kind'),
  ('https://doi.org/10.1002/(SICI)1096-9861(19960129)365:1%3C113::AID-CNE9%3E3.0.CO;2-6',
    '10.1002/(sici)1096-9861(19960129)365:1<113::aid-cne9>3.0.co;2-6', 'and from its address'),
  -- What follows in a sentence.
  ('10.1067/mhn.2001.115906.', '10.1067/mhn.2001.115906', 'a full stop is dropped'),
  ('10.1016/0360-3016(84)90054-3,', '10.1016/0360-3016(84)90054-3', 'a comma'),
  ('10.1000/abc;', '10.1000/abc', 'a semicolon'),
  ('10.1000/abc:!?', '10.1000/abc', 'and others, one behind the other'),
  ('10.1000/abc."', '10.1000/abc', 'a quotation mark'),
  (E'10.1000/abc\u201d.', '10.1000/abc', 'a typographic one'),
  ('10.1000/abc (', '10.1000/abc', 'an opening bracket'),
  ('10.1000/abc);', '10.1000/abc', 'a closing one of no pair'),
  ('10.1000/abc)]}>', '10.1000/abc', 'of every kind'),
  ('10.1000/(abc))', '10.1000/(abc)', 'but not the pair'),
  ('10.3319/TAO.2009.05.25.02(IWNOP)', '10.3319/tao.2009.05.25.02(iwnop)', 'a pair stays'),
  ('10.1061/(ASCE)0733-9399(2002)128:4(380).', '10.1061/(asce)0733-9399(2002)128:4(380)',
    'before a full stop too'),
  ('10.1000/a(b).)', '10.1000/a(b)', 'and when others follow'),
  ('10.1000/a(.', '10.1000/a', 'an opening bracket at the end opens nothing'),
  ('10.1000/...', null, 'nothing but punctuation is no suffix'),
  -- White space.
  (E' \t\n10.1000/abc\r\n ', '10.1000/abc', 'white space around is dropped'),
  (E'\u00a010.1000/abc\u2003\ufeff', '10.1000/abc', 'of every script'),
  ('10.1126/science. 1109070', null, 'inside it is refused'),
  (E'10.1146/annurev-financial-010421-\n085556', null, 'a line break is not guessed away'),
  (E'10.1016/j.ijheatfluid-\nflow.2008.07.001', null, 'wherever it stands'),
  (E'10.1000/a\u00a0b', null, 'nor a no-break space'),
  -- No DOI at all.
  (null, null, 'null has no key'),
  ('', null, 'nothing is no DOI'),
  ('   ', null, 'nor are blanks'),
  ('10.1000', null, 'nor a registrant'),
  ('10.1000/', null, 'nor one with a slash'),
  ('10/abc', null, 'a short DOI is no DOI'),
  ('10./abc', null, 'nor is one without a registrant'),
  ('10.a/abc', null, 'a registrant is digits'),
  ('10.1000./abc', null, 'and does not end with a dot'),
  ('10.1000..1/abc', null, 'or have two of them'),
  ('11.1000/abc', null, 'other handles are no DOIs'),
  ('10.１０００/abc', null, 'other digits are no digits'),
  ('see doi:10.1000/abc', null, 'it does not search in a text'),
  ('(see doi:10.1000/abc.7).', null, 'wherever the DOI stands'),
  ('null', null, 'the word null is no DOI');

select is(citeledger.normalize_doi(g.printed), g.key collate "C", g.why)
from given as g;

select is(
  citeledger.normalize_doi(g.key), g.key, 'idempotent: ' || g.why
)
from given as g
where g.key is not null;

-- Length.
select is(
  octet_length(citeledger.normalize_doi('10.1000/' || repeat('x', 2040))),
  2048,
  'a key of 2048 bytes is one'
);
select is(
  citeledger.normalize_doi('10.1000/' || repeat('x', 2041)), null, 'one of 2049 is none'
);
select is(
  citeledger.normalize_doi('10.1000/' || repeat('é', 1021)), null, 'bytes are counted, not letters'
);
select is(
  length(citeledger.normalize_doi('https://doi.org/10.1000/' || repeat('%41', 2000))),
  2008,
  'and counted of the key, not of what was printed'
);
select is(
  citeledger.normalize_doi('10.1000/' || repeat('a', 20000)), null, 'a long one is none'
);
select is(
  citeledger.normalize_doi('10.1000/' || repeat(')', 100000)), null, 'nor is a very long one'
);

select is(
  (
    select array_agg(p.provolatile::text || p.proparallel::text order by p.oid)
    from pg_proc as p
    where p.oid = 'citeledger.normalize_doi(text)'::regprocedure
  ),
  array['is'],
  'it is immutable and parallel safe'
);

select * from finish();

rollback;
