begin;
\ir ../setup.psql
\ir setup.psql
select plan(31);

create temporary table said (n bigint, line text);
insert into said values
  (1, 'السلام عليكم، يا عالم؟'), (2, 'שלום עולם!'), (3, 'नमस्ते दुनिया। फिर मिलेंगे'), (4, 'เชื่อมต่อฐานข้อมูลไม่ได้'),
  (5, '데이터베이스 연결에 실패했습니다'), (6, '无法连接到数据库：超时'), (7, '𠀀𠀁𠀂 は珍しい'), (8, 'deployed 🚀 to prod'),
  (9, 'Ελληνικά ΣΦΆΛΜΑ δικτύου'), (10, 'İstanbul''da hata: ağ yok'), (11, 'l’erreur «réseau» : délai…'),
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
select is(
  (select s.highlights from counterfoil.search_journal('acme', '数据库') as s where s.kind = 'entry'), '[[5, 3]]'::jsonb,
  'and matches are highlighted by characters');

select * from finish();
rollback;
