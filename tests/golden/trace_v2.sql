-- The demo trace of tests/profiler/trace_fixture.h as tidemark recorded it when traces were of version 2 (.dump of the sqlite3
-- shell). Traces outlive programs: test_convert makes a file of it and converts that.
PRAGMA page_size = 8192;
PRAGMA application_id = 1953064037;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE meta(
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('clock','CLOCK_MONOTONIC, ns');
INSERT INTO meta VALUES('created_by','tidemark');
INSERT INTO meta VALUES('created_utc','2026-11-22T01:52:58Z');
INSERT INTO meta VALUES('freed_bytes','11008');
INSERT INTO meta VALUES('n_blocks','13');
INSERT INTO meta VALUES('n_events','38');
INSERT INTO meta VALUES('n_names','17');
INSERT INTO meta VALUES('n_orphan_frees','0');
INSERT INTO meta VALUES('n_runs','2');
INSERT INTO meta VALUES('n_scope_events','30');
INSERT INTO meta VALUES('n_scopes','10');
INSERT INTO meta VALUES('requested_bytes','11048');
INSERT INTO meta VALUES('schema','tidemark.trace');
INSERT INTO meta VALUES('version','2');
CREATE TABLE op(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO op VALUES(1,'alloc');
INSERT INTO op VALUES(2,'free_requested');
INSERT INTO op VALUES(3,'free_completed');
INSERT INTO op VALUES(4,'segment_alloc');
INSERT INTO op VALUES(5,'segment_free');
INSERT INTO op VALUES(6,'oom');
CREATE TABLE kind(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  purpose TEXT NOT NULL
) STRICT;
INSERT INTO kind VALUES(0,'Default','ordinary tensors: graph inputs and outputs');
INSERT INTO kind VALUES(1,'Persistent','weights: as long as the model');
INSERT INTO kind VALUES(2,'Workspace','activations and kernel scratch of one run');
INSERT INTO kind VALUES(3,'KVCache','attention state that grows from run to run');
INSERT INTO kind VALUES(4,'HostPinned','page-locked host memory for DMA');
INSERT INTO kind VALUES(5,'HostPageable','plain host memory');
CREATE TABLE device(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
INSERT INTO device VALUES(1,'cpu');
CREATE TABLE name(
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;
INSERT INTO name VALUES(1,'cpu');
INSERT INTO name VALUES(2,'x');
INSERT INTO name VALUES(3,'w');
INSERT INTO name VALUES(4,'y');
INSERT INTO name VALUES(5,'demo');
INSERT INTO name VALUES(6,'conv');
INSERT INTO name VALUES(7,'a');
INSERT INTO name VALUES(8,'conv.scratch');
INSERT INTO name VALUES(9,'relu');
INSERT INTO name VALUES(10,'b');
INSERT INTO name VALUES(11,'conv2');
INSERT INTO name VALUES(12,'c');
INSERT INTO name VALUES(13,'conv2.scratch');
INSERT INTO name VALUES(14,'add');
INSERT INTO name VALUES(15,'plan buffer');
INSERT INTO name VALUES(16,'kept');
INSERT INTO name VALUES(17,'too much');
CREATE TABLE scope(
  id INTEGER PRIMARY KEY,
  name_id INTEGER NOT NULL,
  kind TEXT NOT NULL,
  step INTEGER,
  parent_id INTEGER
) STRICT;
INSERT INTO scope VALUES(1,5,'run',0,NULL);
INSERT INTO scope VALUES(2,6,'operator',0,1);
INSERT INTO scope VALUES(3,9,'operator',1,1);
INSERT INTO scope VALUES(4,11,'operator',2,1);
INSERT INTO scope VALUES(5,14,'operator',3,1);
INSERT INTO scope VALUES(6,5,'run',1,NULL);
INSERT INTO scope VALUES(7,6,'operator',0,6);
INSERT INTO scope VALUES(8,9,'operator',1,6);
INSERT INTO scope VALUES(9,11,'operator',2,6);
INSERT INTO scope VALUES(10,14,'operator',3,6);
CREATE TABLE run(
  id INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  source TEXT,
  mode TEXT NOT NULL,
  strategy TEXT,
  device TEXT NOT NULL,
  contexts INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL,
  end_ns INTEGER,
  first_event INTEGER NOT NULL,
  last_event INTEGER,
  plan_bytes INTEGER,
  plan_naive_bytes INTEGER,
  plan_lower_bound_bytes INTEGER
) STRICT;
INSERT INTO run VALUES(1,'demo','demo.json','naive',NULL,'cpu',1,1000,1600,1,24,2560,3328,2560);
INSERT INTO run VALUES(2,'demo','demo.json','planned','by_hand','cpu',1,2000,2900,25,38,2560,3328,2560);
CREATE TABLE event(
  id INTEGER PRIMARY KEY,
  run_id INTEGER,
  t_ns INTEGER NOT NULL,
  op INTEGER NOT NULL,
  block_id INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  device INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  requested_bytes INTEGER NOT NULL,
  reserved_bytes INTEGER NOT NULL,
  address INTEGER NOT NULL,
  thread INTEGER NOT NULL,
  allocator_id INTEGER,
  tag_id INTEGER,
  scope_id INTEGER
) STRICT;
INSERT INTO event VALUES(1,1,1010,1,1,0,1,0,1024,1024,139637976731648,1,1,2,NULL);
INSERT INTO event VALUES(2,1,1020,1,2,1,1,0,512,512,139637976735744,1,1,3,NULL);
INSERT INTO event VALUES(3,1,1030,1,3,0,1,0,1024,1024,139637976739840,1,1,4,NULL);
INSERT INTO event VALUES(4,1,1110,1,4,2,1,0,1024,1024,139637976743936,1,1,7,2);
INSERT INTO event VALUES(5,1,1120,1,5,2,1,0,768,768,139637976748032,1,1,8,2);
INSERT INTO event VALUES(6,1,1179,2,5,2,1,0,768,768,139637976748032,1,1,8,2);
INSERT INTO event VALUES(7,1,1180,3,5,2,1,0,768,768,139637976748032,1,1,8,2);
INSERT INTO event VALUES(8,1,1210,1,6,2,1,0,512,512,139637976752128,1,1,10,3);
INSERT INTO event VALUES(9,1,1310,1,7,2,1,0,768,768,139637976756224,1,1,12,4);
INSERT INTO event VALUES(10,1,1320,1,8,2,1,0,256,256,139637976760320,1,1,13,4);
INSERT INTO event VALUES(11,1,1369,2,8,2,1,0,256,256,139637976760320,1,1,13,4);
INSERT INTO event VALUES(12,1,1370,3,8,2,1,0,256,256,139637976760320,1,1,13,4);
INSERT INTO event VALUES(13,1,1379,2,6,2,1,0,512,512,139637976752128,1,1,10,4);
INSERT INTO event VALUES(14,1,1380,3,6,2,1,0,512,512,139637976752128,1,1,10,4);
INSERT INTO event VALUES(15,1,1469,2,7,2,1,0,768,768,139637976756224,1,1,12,5);
INSERT INTO event VALUES(16,1,1470,3,7,2,1,0,768,768,139637976756224,1,1,12,5);
INSERT INTO event VALUES(17,1,1479,2,4,2,1,0,1024,1024,139637976743936,1,1,7,5);
INSERT INTO event VALUES(18,1,1480,3,4,2,1,0,1024,1024,139637976743936,1,1,7,5);
INSERT INTO event VALUES(19,1,1499,2,3,0,1,0,1024,1024,139637976739840,1,1,4,NULL);
INSERT INTO event VALUES(20,1,1500,3,3,0,1,0,1024,1024,139637976739840,1,1,4,NULL);
INSERT INTO event VALUES(21,1,1509,2,2,1,1,0,512,512,139637976735744,1,1,3,NULL);
INSERT INTO event VALUES(22,1,1510,3,2,1,1,0,512,512,139637976735744,1,1,3,NULL);
INSERT INTO event VALUES(23,1,1519,2,1,0,1,0,1024,1024,139637976731648,1,1,2,NULL);
INSERT INTO event VALUES(24,1,1520,3,1,0,1,0,1024,1024,139637976731648,1,1,2,NULL);
INSERT INTO event VALUES(25,2,2010,1,11,0,1,0,1024,1024,139637976772608,1,1,2,NULL);
INSERT INTO event VALUES(26,2,2020,1,12,1,1,0,512,512,139637976776704,1,1,3,NULL);
INSERT INTO event VALUES(27,2,2030,1,13,0,1,0,1024,1024,139637976780800,1,1,4,NULL);
INSERT INTO event VALUES(28,2,2040,1,14,2,1,0,2560,2560,139637976784896,1,1,15,NULL);
INSERT INTO event VALUES(29,2,2660,1,15,0,1,0,40,64,139637976788992,1,1,16,10);
INSERT INTO event VALUES(30,2,2670,6,0,2,1,0,1000000,0,0,1,1,17,10);
INSERT INTO event VALUES(31,2,2799,2,14,2,1,0,2560,2560,139637976784896,1,1,15,NULL);
INSERT INTO event VALUES(32,2,2800,3,14,2,1,0,2560,2560,139637976784896,1,1,15,NULL);
INSERT INTO event VALUES(33,2,2809,2,13,0,1,0,1024,1024,139637976780800,1,1,4,NULL);
INSERT INTO event VALUES(34,2,2810,3,13,0,1,0,1024,1024,139637976780800,1,1,4,NULL);
INSERT INTO event VALUES(35,2,2819,2,12,1,1,0,512,512,139637976776704,1,1,3,NULL);
INSERT INTO event VALUES(36,2,2820,3,12,1,1,0,512,512,139637976776704,1,1,3,NULL);
INSERT INTO event VALUES(37,2,2829,2,11,0,1,0,1024,1024,139637976772608,1,1,2,NULL);
INSERT INTO event VALUES(38,2,2830,3,11,0,1,0,1024,1024,139637976772608,1,1,2,NULL);
CREATE TABLE scope_event(
  id INTEGER PRIMARY KEY,
  run_id INTEGER,
  t_ns INTEGER NOT NULL,
  enter INTEGER NOT NULL,
  scope_id INTEGER NOT NULL,
  thread INTEGER NOT NULL
) STRICT;
INSERT INTO scope_event VALUES(1,1,1090,1,1,1);
INSERT INTO scope_event VALUES(2,1,1100,1,2,1);
INSERT INTO scope_event VALUES(3,1,1190,0,2,1);
INSERT INTO scope_event VALUES(4,1,1200,1,3,1);
INSERT INTO scope_event VALUES(5,1,1290,0,3,1);
INSERT INTO scope_event VALUES(6,1,1300,1,4,1);
INSERT INTO scope_event VALUES(7,1,1390,0,4,1);
INSERT INTO scope_event VALUES(8,1,1400,1,5,1);
INSERT INTO scope_event VALUES(9,1,1490,0,5,1);
INSERT INTO scope_event VALUES(10,1,1495,0,1,1);
INSERT INTO scope_event VALUES(11,2,2090,1,1,1);
INSERT INTO scope_event VALUES(12,2,2100,1,2,1);
INSERT INTO scope_event VALUES(13,2,2140,0,2,1);
INSERT INTO scope_event VALUES(14,2,2150,1,3,1);
INSERT INTO scope_event VALUES(15,2,2190,0,3,1);
INSERT INTO scope_event VALUES(16,2,2200,1,4,1);
INSERT INTO scope_event VALUES(17,2,2240,0,4,1);
INSERT INTO scope_event VALUES(18,2,2250,1,5,1);
INSERT INTO scope_event VALUES(19,2,2290,0,5,1);
INSERT INTO scope_event VALUES(20,2,2300,0,1,1);
INSERT INTO scope_event VALUES(21,2,2490,1,6,1);
INSERT INTO scope_event VALUES(22,2,2500,1,7,1);
INSERT INTO scope_event VALUES(23,2,2540,0,7,1);
INSERT INTO scope_event VALUES(24,2,2550,1,8,1);
INSERT INTO scope_event VALUES(25,2,2590,0,8,1);
INSERT INTO scope_event VALUES(26,2,2600,1,9,1);
INSERT INTO scope_event VALUES(27,2,2640,0,9,1);
INSERT INTO scope_event VALUES(28,2,2650,1,10,1);
INSERT INTO scope_event VALUES(29,2,2690,0,10,1);
INSERT INTO scope_event VALUES(30,2,2700,0,6,1);
CREATE TABLE block(
  id INTEGER PRIMARY KEY,
  run_id INTEGER,
  alloc_event INTEGER NOT NULL,
  free_event INTEGER,
  alloc_ns INTEGER NOT NULL,
  free_requested_ns INTEGER,
  free_ns INTEGER,
  kind INTEGER NOT NULL,
  device INTEGER NOT NULL,
  stream INTEGER NOT NULL,
  requested_bytes INTEGER NOT NULL,
  reserved_bytes INTEGER NOT NULL,
  address INTEGER NOT NULL,
  thread INTEGER NOT NULL,
  allocator_id INTEGER,
  tag_id INTEGER,
  scope_id INTEGER
) STRICT;
INSERT INTO block VALUES(1,1,1,24,1010,1519,1520,0,1,0,1024,1024,139637976731648,1,1,2,NULL);
INSERT INTO block VALUES(2,1,2,22,1020,1509,1510,1,1,0,512,512,139637976735744,1,1,3,NULL);
INSERT INTO block VALUES(3,1,3,20,1030,1499,1500,0,1,0,1024,1024,139637976739840,1,1,4,NULL);
INSERT INTO block VALUES(4,1,4,18,1110,1479,1480,2,1,0,1024,1024,139637976743936,1,1,7,2);
INSERT INTO block VALUES(5,1,5,7,1120,1179,1180,2,1,0,768,768,139637976748032,1,1,8,2);
INSERT INTO block VALUES(6,1,8,14,1210,1379,1380,2,1,0,512,512,139637976752128,1,1,10,3);
INSERT INTO block VALUES(7,1,9,16,1310,1469,1470,2,1,0,768,768,139637976756224,1,1,12,4);
INSERT INTO block VALUES(8,1,10,12,1320,1369,1370,2,1,0,256,256,139637976760320,1,1,13,4);
INSERT INTO block VALUES(11,2,25,38,2010,2829,2830,0,1,0,1024,1024,139637976772608,1,1,2,NULL);
INSERT INTO block VALUES(12,2,26,36,2020,2819,2820,1,1,0,512,512,139637976776704,1,1,3,NULL);
INSERT INTO block VALUES(13,2,27,34,2030,2809,2810,0,1,0,1024,1024,139637976780800,1,1,4,NULL);
INSERT INTO block VALUES(14,2,28,32,2040,2799,2800,2,1,0,2560,2560,139637976784896,1,1,15,NULL);
INSERT INTO block VALUES(15,2,29,NULL,2660,NULL,NULL,0,1,0,40,64,139637976788992,1,1,16,10);
CREATE TABLE plan(
  run_id INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  strategy TEXT NOT NULL,
  form TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  align_bytes INTEGER NOT NULL,
  naive_bytes INTEGER NOT NULL,
  lower_bound_bytes INTEGER NOT NULL,
  naive_peak_bytes INTEGER NOT NULL,
  proved_bytes INTEGER NOT NULL,
  proven INTEGER NOT NULL,
  verified INTEGER NOT NULL,
  time_ns INTEGER NOT NULL,
  n_steps INTEGER NOT NULL,
  n_tensors INTEGER NOT NULL,
  n_pools INTEGER NOT NULL,
  n_buffers INTEGER NOT NULL
) STRICT;
INSERT INTO "plan" VALUES(1,'demo','by_hand','offsets',2560,256,3328,2560,2560,2560,1,1,4321,4,8,0,1);
INSERT INTO "plan" VALUES(2,'demo','by_hand','offsets',2560,256,3328,2560,2560,2560,1,1,4321,4,8,0,1);
CREATE TABLE plan_buffer(
  run_id INTEGER NOT NULL,
  buffer INTEGER NOT NULL,
  device TEXT NOT NULL,
  kind INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  align_bytes INTEGER NOT NULL,
  naive_bytes INTEGER NOT NULL,
  naive_peak_bytes INTEGER NOT NULL,
  lower_bound_bytes INTEGER NOT NULL,
  proved_bytes INTEGER NOT NULL,
  proof TEXT NOT NULL,
  PRIMARY KEY(run_id, buffer)
) STRICT, WITHOUT ROWID;
INSERT INTO plan_buffer VALUES(1,0,'cpu',2,2560,256,3328,2560,2560,2560,'live sum');
INSERT INTO plan_buffer VALUES(2,0,'cpu',2,2560,256,3328,2560,2560,2560,'live sum');
CREATE TABLE plan_tensor(
  run_id INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  name TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  aligned_bytes INTEGER NOT NULL,
  align_bytes INTEGER NOT NULL,
  begin_step INTEGER NOT NULL,
  end_step INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  device TEXT NOT NULL,
  role TEXT NOT NULL,
  persistent INTEGER NOT NULL,
  node INTEGER,
  port INTEGER,
  value INTEGER,
  pool INTEGER,
  offset_bytes INTEGER,
  unrounded INTEGER NOT NULL,
  fixed_offset_bytes INTEGER,
  apart_set INTEGER,
  alias TEXT,
  alias_of INTEGER,
  alias_offset_bytes INTEGER,
  PRIMARY KEY(run_id, idx)
) STRICT, WITHOUT ROWID;
INSERT INTO plan_tensor VALUES(1,0,'x',1000,1024,256,0,4,0,'cpu','input',1,NULL,NULL,0,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(1,1,'w',300,512,256,0,4,1,'cpu','weight',1,NULL,NULL,1,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(1,2,'a',1000,1024,256,0,4,2,'cpu','intermediate',0,0,0,2,NULL,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(1,3,'conv.scratch',600,768,256,0,1,2,'cpu','scratch',0,0,NULL,NULL,NULL,1024,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(1,4,'b',500,512,256,1,3,2,'cpu','intermediate',0,1,0,4,NULL,1024,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(1,5,'c',700,768,256,2,4,2,'cpu','intermediate',0,2,0,5,NULL,1536,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(1,6,'conv2.scratch',200,256,256,2,3,2,'cpu','scratch',0,2,NULL,NULL,NULL,2304,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(1,7,'y',1000,1024,256,0,4,0,'cpu','output',1,NULL,NULL,7,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(2,0,'x',1000,1024,256,0,4,0,'cpu','input',1,NULL,NULL,0,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(2,1,'w',300,512,256,0,4,1,'cpu','weight',1,NULL,NULL,1,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(2,2,'a',1000,1024,256,0,4,2,'cpu','intermediate',0,0,0,2,NULL,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(2,3,'conv.scratch',600,768,256,0,1,2,'cpu','scratch',0,0,NULL,NULL,NULL,1024,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(2,4,'b',500,512,256,1,3,2,'cpu','intermediate',0,1,0,4,NULL,1024,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(2,5,'c',700,768,256,2,4,2,'cpu','intermediate',0,2,0,5,NULL,1536,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(2,6,'conv2.scratch',200,256,256,2,3,2,'cpu','scratch',0,2,NULL,NULL,NULL,2304,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO plan_tensor VALUES(2,7,'y',1000,1024,256,0,4,0,'cpu','output',1,NULL,NULL,7,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE plan_gap(
  run_id INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  gap INTEGER NOT NULL,
  begin_step INTEGER NOT NULL,
  end_step INTEGER NOT NULL,
  lo_bytes INTEGER NOT NULL,
  hi_bytes INTEGER NOT NULL,
  PRIMARY KEY(run_id, idx, gap)
) STRICT, WITHOUT ROWID;
CREATE TABLE plan_point(
  run_id INTEGER NOT NULL,
  point INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY(run_id, point)
) STRICT, WITHOUT ROWID;
CREATE TABLE plan_point_size(
  run_id INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  point INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  PRIMARY KEY(run_id, idx, point)
) STRICT, WITHOUT ROWID;
CREATE TABLE plan_pool(
  run_id INTEGER NOT NULL,
  pool INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  offset_bytes INTEGER NOT NULL,
  members INTEGER NOT NULL,
  buffer INTEGER NOT NULL,
  PRIMARY KEY(run_id, pool)
) STRICT, WITHOUT ROWID;
CREATE TABLE plan_step(
  run_id INTEGER NOT NULL,
  step INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY(run_id, step)
) STRICT, WITHOUT ROWID;
INSERT INTO plan_step VALUES(1,0,'conv');
INSERT INTO plan_step VALUES(1,1,'relu');
INSERT INTO plan_step VALUES(1,2,'conv2');
INSERT INTO plan_step VALUES(1,3,'add');
INSERT INTO plan_step VALUES(2,0,'conv');
INSERT INTO plan_step VALUES(2,1,'relu');
INSERT INTO plan_step VALUES(2,2,'conv2');
INSERT INTO plan_step VALUES(2,3,'add');
CREATE TABLE plan_recomputed(
  run_id INTEGER NOT NULL,
  idx INTEGER NOT NULL,
  name TEXT NOT NULL,
  PRIMARY KEY(run_id, idx)
) STRICT, WITHOUT ROWID;
CREATE VIEW span AS
SELECT 0 AS run_id, 1 AS first_event, coalesce(max(id), 0) AS last_event,
       coalesce(min(t_ns), 0) AS begin_ns, coalesce(max(t_ns), 0) AS end_ns FROM event
UNION ALL
SELECT id, first_event, last_event, begin_ns, end_ns FROM run;
CREATE VIEW live_change AS
SELECT s.run_id, max(b.alloc_event, s.first_event - 1) AS event_id, max(b.alloc_ns, s.begin_ns) AS t_ns,
       b.id AS block_id, b.kind, b.device, b.alloc_event >= s.first_event AS is_alloc, 0 AS is_free,
       b.requested_bytes AS delta_bytes, b.reserved_bytes AS delta_reserved_bytes
FROM span s JOIN block b ON b.alloc_event <= s.last_event
                       AND (b.free_event IS NULL OR b.free_event >= s.first_event)
UNION ALL
SELECT s.run_id, b.free_event, b.free_ns, b.id, b.kind, b.device, 0, 1, -b.requested_bytes, -b.reserved_bytes
FROM span s JOIN block b ON b.free_event BETWEEN s.first_event AND s.last_event;
CREATE VIEW live_bytes AS
SELECT c.run_id, c.event_id, c.t_ns, k.name AS kind, d.name AS device,
       sum(c.delta_bytes) OVER one AS kind_bytes,
       sum(c.delta_reserved_bytes) OVER one AS kind_reserved_bytes,
       sum(c.delta_bytes) OVER every AS total_bytes
FROM live_change c JOIN kind k ON k.id = c.kind JOIN device d ON d.id = c.device
WINDOW one AS (PARTITION BY c.run_id, c.kind, c.device ORDER BY c.event_id),
       every AS (PARTITION BY c.run_id ORDER BY c.event_id)
ORDER BY c.run_id, c.event_id;
CREATE VIEW peak AS
SELECT run_id, total_bytes AS peak_bytes, t_ns, event_id FROM (
  SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY total_bytes DESC, event_id) AS place
  FROM live_bytes)
WHERE place = 1;
CREATE VIEW peak_by_kind AS
SELECT run_id, kind, device, kind_bytes AS peak_bytes, t_ns, event_id FROM (
  SELECT *, row_number() OVER (PARTITION BY run_id, kind, device ORDER BY kind_bytes DESC, event_id) AS place
  FROM live_bytes)
WHERE place = 1;
CREATE VIEW bytes_by_kind AS
WITH total AS (
  SELECT c.run_id, k.name AS kind, d.name AS device, sum(c.is_alloc) AS allocations, sum(c.is_free) AS frees,
         sum(c.is_alloc * c.delta_bytes) AS requested_bytes, sum(c.delta_bytes) AS live_at_end_bytes
  FROM live_change c JOIN kind k ON k.id = c.kind JOIN device d ON d.id = c.device
  GROUP BY c.run_id, c.kind, c.device),
top AS (
  SELECT run_id, kind, device, max(kind_bytes) AS peak_bytes, max(kind_reserved_bytes) AS peak_reserved_bytes
  FROM live_bytes GROUP BY run_id, kind, device)
SELECT run_id, kind, device, allocations, frees, requested_bytes, peak_bytes, peak_reserved_bytes,
       live_at_end_bytes
FROM total JOIN top USING (run_id, kind, device);
CREATE VIEW blocks AS
SELECT b.id AS block_id, b.run_id, coalesce(t.text, '') AS name, coalesce(sn.text, '') AS scope,
       s.step, k.name AS kind, d.name AS device, b.stream, b.requested_bytes, b.reserved_bytes,
       b.address, b.thread, a.text AS allocator, b.alloc_ns, b.free_requested_ns, b.free_ns,
       b.free_ns - b.alloc_ns AS lifetime_ns, b.alloc_event, b.free_event
FROM block b JOIN kind k ON k.id = b.kind JOIN device d ON d.id = b.device
LEFT JOIN name t ON t.id = b.tag_id LEFT JOIN name a ON a.id = b.allocator_id
LEFT JOIN scope s ON s.id = b.scope_id LEFT JOIN name sn ON sn.id = s.name_id;
CREATE VIEW events AS
SELECT e.id AS event_id, e.run_id, e.t_ns, o.name AS op, e.block_id, k.name AS kind, d.name AS device,
       e.stream, e.requested_bytes, e.reserved_bytes, e.address, e.thread, a.text AS allocator,
       coalesce(t.text, '') AS name, coalesce(sn.text, '') AS scope, s.step
FROM event e JOIN op o ON o.id = e.op JOIN kind k ON k.id = e.kind JOIN device d ON d.id = e.device
LEFT JOIN name t ON t.id = e.tag_id LEFT JOIN name a ON a.id = e.allocator_id
LEFT JOIN scope s ON s.id = e.scope_id LEFT JOIN name sn ON sn.id = s.name_id;
CREATE VIEW live_at_peak AS
SELECT p.run_id, b.block_id, b.name, b.scope, b.step, b.kind, b.device, b.requested_bytes, b.reserved_bytes,
       b.alloc_ns, b.free_ns
FROM peak p JOIN blocks b ON b.alloc_event <= p.event_id
                         AND (b.free_event IS NULL OR b.free_event > p.event_id);
CREATE VIEW leaks AS
SELECT run_id, block_id, name, scope, step, kind, device, requested_bytes, alloc_ns, thread
FROM blocks WHERE free_event IS NULL;
CREATE VIEW top_scopes AS
SELECT n.run_id, coalesce(sn.text, '') AS scope, s.kind AS scope_kind, s.step, count(*) AS allocations,
       sum(b.requested_bytes) AS requested_bytes, max(b.requested_bytes) AS largest_bytes
FROM span n JOIN block b ON b.alloc_event BETWEEN n.first_event AND n.last_event
LEFT JOIN scope s ON s.id = b.scope_id LEFT JOIN name sn ON sn.id = s.name_id
GROUP BY n.run_id, sn.text, s.kind, s.step
ORDER BY n.run_id, requested_bytes DESC, scope, s.step;
CREATE VIEW scopes AS
SELECT e.id AS scope_event_id, e.run_id, e.t_ns, e.enter, n.text AS scope, s.kind AS scope_kind,
       s.step, e.thread
FROM scope_event e JOIN scope s ON s.id = e.scope_id JOIN name n ON n.id = s.name_id;
CREATE VIEW steps AS
WITH told AS (
  SELECT e.id, e.run_id, e.t_ns, e.enter, e.thread, s.step, n.text AS name,
         lead(e.enter) OVER turn AS next_enter, lead(e.t_ns) OVER turn AS next_ns
  FROM scope_event e JOIN scope s ON s.id = e.scope_id JOIN name n ON n.id = s.name_id
  WHERE e.run_id IS NOT NULL AND s.kind = 'operator' AND s.step IS NOT NULL
  WINDOW turn AS (PARTITION BY e.run_id, e.thread, e.scope_id ORDER BY e.id)),
began AS (
  SELECT *, first_value(thread) OVER (PARTITION BY run_id ORDER BY id) AS first_thread
  FROM told WHERE enter = 1),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY run_id, step ORDER BY thread <> first_thread, id) AS place
  FROM began)
SELECT run_id, step, name, t_ns AS begin_ns, CASE WHEN next_enter = 0 THEN next_ns END AS end_ns
FROM placed WHERE place = 1 ORDER BY run_id, step;
CREATE VIEW plan_tensors AS
SELECT t.run_id, t.idx, t.name, k.name AS kind, t.role, t.persistent, t.size_bytes, t.aligned_bytes,
       t.begin_step, t.end_step, t.pool, t.offset_bytes, s.name AS begin_step_name, t.alias,
       a.name AS alias_of, t.alias_offset_bytes
FROM plan_tensor t JOIN kind k ON k.id = t.kind
LEFT JOIN plan_tensor a ON a.run_id = t.run_id AND a.idx = t.alias_of
LEFT JOIN plan_step s ON s.run_id = t.run_id AND s.step = t.begin_step;
CREATE VIEW predicted_vs_measured AS
WITH buffer AS (
  SELECT run_id, kind, sum(bytes) AS bytes, sum(naive_peak_bytes) AS naive_peak_bytes
  FROM plan_buffer GROUP BY run_id, kind),
predicted AS (
  SELECT r.id AS run_id, r.model, r.mode, r.device, k.name AS kind,
         CASE WHEN r.mode <> 'naive' THEN coalesce(b.bytes, 0) * r.contexts
              WHEN r.contexts = 1 THEN coalesce(b.naive_peak_bytes, 0)
              WHEN b.bytes IS NULL AND k.id <> 2 THEN 0 END +
         coalesce((SELECT sum(t.aligned_bytes * iif(t.role = 'output', r.contexts, 1)) FROM plan_tensor t
                   WHERE t.run_id = r.id AND t.kind = k.id AND t.persistent), 0) AS bytes
  FROM run r JOIN plan p ON p.run_id = r.id JOIN kind k
  LEFT JOIN buffer b ON b.run_id = r.id AND b.kind = k.id)
SELECT p.run_id, p.model, p.mode, p.kind, p.device, p.bytes AS predicted_bytes,
       coalesce(m.peak_bytes, 0) AS measured_bytes, p.bytes - coalesce(m.peak_bytes, 0) AS difference_bytes
FROM predicted p LEFT JOIN bytes_by_kind m ON m.run_id = p.run_id AND m.kind = p.kind AND m.device = p.device
WHERE coalesce(p.bytes, 1) > 0 OR m.peak_bytes > 0;
CREATE VIEW oom_attempts AS
SELECT e.event_id, e.run_id, e.t_ns, e.requested_bytes, e.kind, e.device, e.allocator, e.name,
       e.scope, e.thread
FROM events e WHERE e.op = 'oom';
COMMIT;
