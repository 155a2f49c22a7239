begin;
\ir ../setup.psql
\ir setup.psql
select plan(58);

create temporary table said (n bigint, line text);
insert into said values
  (1, 'السلام عليكم، يا عالم؟'), (2, 'שלום עולם!'), (3, 'नमस्ते दुनिया। फिर मिलेंगे'), (4, 'เชื่อมต่อฐานข้อมูลไม่ได้'),
  (5, '데이터베이스 연결에 실패했습니다'), (6, '无法连接到数据库：超时'), (7, '𠀀𠀁𠀂 は珍しい'), (8, 'deployed 🚀 to prod'),
  (9, 'Ελληνικά ΣΦΆΛΜΑ δικτύου'), (10, 'İstanbul''da hata: ağ yok'), (11, 'l’erreur «réseau» : délai…'),
  (15, 'Le cafe' || U&'\0301' || ' a e' || U&'\0301' || 'choue' || U&'\0301'), (16, 'Le café a échoué'),
  (17, U&'\1112\1161\11ab\1100\1173\11af' || ' 오류'), (18, U&'\200fשגיאה\200f ' || U&'\2067קריטית\2069'), (19, U&'\202bخطأ\202c فادح'),
  (20, chr(27) || '[1;31mERROR' || chr(27) || '[0m disk' || chr(27) || '[Kfull'), (21, 'family 👨‍👩‍👧‍👦 and flag 🇨🇭, 👍🏽'),
  (22, repeat('x', 3000) || 'ende'), (23, repeat('same ', 600) || 'last'), (24, repeat('错', 600) || '尾'),
  (25, 'a' || repeat(U&'\0301', 3000) || ' zalgo'), (26, 'ⅷ ﬁle ＡＢＣ'), (27, chr(1114109) || ' plane'),
  (12, 'ሰላም፡ለዓለም።'), (13, 'narrow no-break' || chr(8239) || 'space'), (14, 'հարցում՞ այո');
insert into counterfoil.run_journal (
  org_id, run_id, identity, channel, position, producer_attempt, occurred_at, line, content_digest, event_id, recorded_at, terms
)
select 'acme', 'r1', 'i' || s.n, 'log', s.n, 1, now(), s.line, sha256(''), 'e', now(),
  counterfoil.journal_terms('acme', 'r1', 'log', null, now(), s.line)
from said as s;

create function pg_temp.found(p_query text, p_mode text default 'words') returns text
language sql stable parallel unsafe as $function$
  select coalesce(string_agg(s.position::text, ' ' order by s.position), 'nothing')
  from counterfoil.search_journal('acme', p_query, p_mode => p_mode) as s
  where s.kind = 'entry'
$function$;

select is(pg_temp.found(q.query), q.found, q.query)
from (values
  ('عليكم', '1'), ('عالم', '1'), ('עולם', '2'), ('दुनिया', '3'), ('ฐานข้อมูล', '4'), ('ข้อมูลฐาน', 'nothing'),
  ('연결에', '5'), ('数据库', '6'), ('超时', '6'), ('库数', 'nothing'), ('𠀁', '7'), ('𠀁𠀀', 'nothing'), ('🚀', '8'), ('🚀 prod', '8'),
  ('ΔΙΚΤΎΟΥ', '9'), ('réseau', '11'), ('RÉSEAU', '11'), ('délai', '11'), ('erreur', '11'), ('ለዓለም', '12'), ('space', '13'),
  ('հարցում', '14'), ('ağ', '10')
) as q (query, found);
select is(pg_temp.found(q.query, 'substring'), q.found, q.query || ' within words')
from (values ('سلام', '1'), ('लेंगे', '3'), ('เชื่อม', '4'), ('패했', '5'), ('接到', '6'), ('𠀁𠀂 は', '7'), ('éseau» : dé', '11')) as q (query, found);
-- Composed or not, marks of direction, colours of a terminal, what no lexeme of a tsvector could hold: 2,046 bytes, 16,383 places.
select is(pg_temp.found(q.query, q.mode), q.found, q.title)
from (values
  ('café', 'words', '15 16', 'composed letters find both'), ('CAFE' || U&'\0301', 'words', '15 16', 'and so do decomposed ones'),
  ('caf', 'words', 'nothing', 'a part of a word is none'), ('a échoué', 'substring', '15 16', 'a substring finds both'),
  ('"cafe' || U&'\0301' || ' a échoué"', 'words', '15 16', 'a quotation finds both'), ('한글', 'words', '17', 'letters of Hangul'),
  ('שגיאה', 'words', '18', 'a word between marks of direction'), ('קריטית', 'words', '18', 'an isolated word'), ('خطأ', 'words', '19', 'an embedded word'),
  (U&'\200fשגיאה', 'words', '18', 'marks in the query'), ('error', 'words', '20', 'a coloured word'), ('disk full', 'words', '20', 'words beside moves'),
  ('0m', 'words', 'nothing', 'a colour is no word'), ('👨‍👩‍👧‍👦', 'words', '21', 'joined emoji'), ('🇨🇭', 'words', '21', 'a flag'), ('👍🏽', 'words', '21', 'a tone'),
  (repeat('x', 3000) || 'ende', 'words', '22', 'a word of 3,004 letters'), ('xende', 'substring', '22', 'its end'),
  (repeat('X', 3000), 'words', 'nothing', 'but not its beginning'), ('last', 'words', '23', 'behind 600 words, all the same'),
  ('尾', 'words', '24', 'behind 600 letters, all the same'), ('zalgo', 'words', '25', 'beside 3,000 marks'),
  ('ﬁle', 'words', '26', 'a ligature as it is written'), (chr(1114109), 'words', '27', 'a character nobody has assigned')
) as q (query, mode, found, title);
select is(
  (select string_agg(s.highlights::text, ' ' order by s.position) from counterfoil.search_journal('acme', 'échoué') as s where s.kind = 'entry'),
  '[[11, 8]] [[10, 6]]', 'matches are highlighted where they stand, composed or not');
select is(counterfoil.fold_text(q.text), q.folded, 'folding once is enough')
from (select t.text, counterfoil.fold_text(counterfoil.fold_text(t.text)) as folded from (select string_agg(s.line, '') as text from said as s) as t) as q;
select is(
  cardinality(counterfoil.journal_terms('o', 'r', 'log', null, now(), (select string_agg('w' || n, ' ') from generate_series(1, 200000) as n))),
  504, 'a line of 200,000 words has 500 of them in the index');
select is(
  (select s.highlights from counterfoil.search_journal('acme', '数据库') as s where s.kind = 'entry'), '[[5, 3]]'::jsonb,
  'and matches are highlighted by characters');

select * from finish();
rollback;
