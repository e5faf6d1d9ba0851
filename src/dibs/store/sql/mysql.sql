-- Every statement dibs sends to MySQL and to MariaDB, by name, in the order of postgres.sql.
--
-- :name   a parameter. Instants and spans are whole microseconds, ids are text.
-- :now    the database's clock in UTC, utc_timestamp(6) (tests may bind their own).
-- micros(x), instant(x)   to and from whole microseconds since 1970; written out below, as `let` says.
-- differs: for the whole file: nothing answers what it has changed, so what changes rows has a part that locks and
--          reads them before, and all parts are one transaction. Row comparisons, (a, b) > (x, y), use no index and
--          are written out. A batch travels as one JSON array and is read by json_table, in the order of its ids,
--          so that two batches never wait for each other crosswise. It stands first in a straight_join, and the
--          primary key is forced on the other side: rows are then looked up one by one, whatever the statistics
--          say, and no row is looked at, or waited for, that is not in the batch. In a locking read json_table
--          stands in a table of its own, for else MySQL takes it for one that is locked twice.

-- let micros(x): timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', x)
-- let instant(x): (timestamp'1970-01-01 00:00:00' + interval x microsecond)


-- ENQUEUE

-- name: enqueue
-- One new job.
-- differs: only the wording of instants.
insert into dibs_job (id, queue, task, priority, payload, max_attempts, options, available_at, created_at)
values (:id, :queue, :task, :priority, :payload, :max_attempts, :options,
        greatest(:now, coalesce(instant(:run_at), :now + interval coalesce(:delay, 0) microsecond)), :now)

-- name: stored
-- Of the jobs whose enqueue got no answer: those that were stored, live or finished by now.
-- differs: a JSON array of ids.
select j.id
  from json_table(:ids, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id
union all
select h.id
  from json_table(:ids, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_history h force index (primary) on h.id = f.id

-- name: drop_finished
-- Jobs that were stored again after they had finished are no jobs.
-- differs: a JSON array of ids.
delete j
  from json_table(:ids, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id
 where exists (select 1 from dibs_history h where h.id = j.id)

-- name: enqueue_unique
-- A job with a key: the new one, or the live one that already has the key.
-- differs: tried three ways. A live job that can be seen is locked by its id: an insert that meets a duplicate would
--          lock what stands beside it as well, at REPEATABLE READ the whole end of the table, and so keep every other
--          producer waiting until the caller's transaction ends. Else it is inserted, and is ours if it can be seen.
--          Else somebody has been faster, or the caller's snapshot is older than that job: a read that locks sees the
--          newest state whatever the snapshot.
select j.id, 0
  from (select id from dibs_job force index (dibs_job_unique)
         where queue = :queue and unique_key = :unique_key limit 1) k
  straight_join dibs_job j force index (primary) on j.id = k.id
   for update
-- else:
insert into dibs_job (id, queue, task, priority, payload, max_attempts, options, unique_key, available_at, created_at)
values (:id, :queue, :task, :priority, :payload, :max_attempts, :options, :unique_key,
        greatest(:now, coalesce(instant(:run_at), :now + interval coalesce(:delay, 0) microsecond)), :now)
on duplicate key update unique_key = dibs_job.unique_key
-- then:
select id, 0 from dibs_job where id = :id
-- else:
select id, 0 from dibs_job force index (dibs_job_unique)
 where queue = :queue and unique_key = :unique_key for update

-- name: replace_waiting
-- Give a waiting job the payload, options and time of a newer request, with all attempts before it. A job somebody
-- holds stays as it is.
-- differs: two parts.
select id from dibs_job where id = :id and lease_until is null for update
-- then:
update dibs_job
   set payload = :payload, task = :task, priority = :priority, attempts = 0, crashes = 0,
       max_attempts = :max_attempts, options = :options,
       available_at = greatest(:now, coalesce(instant(:run_at), :now + interval coalesce(:delay, 0) microsecond))
 where id = :id

-- name: enqueue_batch
-- Many jobs without a key; an id that is already there is left alone.
-- differs: json_table instead of a record set; payload and options arrive as text inside the JSON.
insert into dibs_job (id, queue, task, priority, payload, max_attempts, options, available_at, created_at)
select n.id, n.queue, n.task, n.priority, n.payload, n.max_attempts, n.options,
       greatest(:now, coalesce(instant(n.run_at), :now + interval coalesce(n.delay, 0) microsecond)), :now
  from json_table(:jobs, '$[*]' columns (
           id char(36) character set ascii collate ascii_bin path '$[0]',
           queue varchar(64) character set ascii collate ascii_bin path '$[1]',
           task varchar(64) character set ascii collate ascii_bin path '$[2]',
           priority integer path '$[3]',
           payload longtext character set utf8mb4 collate utf8mb4_bin path '$[4]',
           max_attempts integer path '$[5]',
           options longtext character set utf8mb4 collate utf8mb4_bin path '$[6]',
           run_at bigint path '$[7]',
           delay bigint path '$[8]')) n
on duplicate key update id = dibs_job.id

-- name: copy_jobs
-- The bulk load. available_at and created_at are filled in by the server's clock.
-- differs: the rows follow as text, by dibs' own connections only, whose modes are known; the clock stands in each,
--          for before MySQL 8.0.13 no column has it as its default.
insert into dibs_job (id, queue, task, priority, payload, max_attempts, options, available_at, created_at) values

-- name: add_lane
-- Remember a (queue, priority) pair.
-- differs: an update that changes nothing; IGNORE would hide every other error as well.
insert into dibs_lane (queue, priority) values (:queue, :priority)
on duplicate key update priority = dibs_lane.priority


-- CLAIM

-- name: lanes
-- The known lanes, and the time.
-- differs: only the table's name.
select queue, priority, micros(:now) from dibs_lane

-- name: discover_lanes
-- The lanes that hold jobs, found by hopping along the index: also those of a plain INSERT by other programs.
-- differs: each hop is sent by itself, for a join would read the whole index from the lane found last.
-- hop: {"queue": "", "priority": 0}
select queue, priority from dibs_job force index (dibs_job_lane)
 where queue > :queue or (queue = :queue and priority > :priority)
 order by queue, priority limit 1

-- name: claim
-- Lease the next jobs of one lane, beginning at the mark.
-- differs: two parts. The mark is written as two ranges, (at, id..) and (at..), which the index is searched for;
--          exactly the jobs taken are locked.
select id, task, payload, token + 1, attempts + 1, max_attempts, crashes, micros(available_at), micros(:now) + :lease,
       micros(created_at), convert(unique_key using utf8mb4), options
  from dibs_job force index (dibs_job_lane)
 where queue = :queue and priority = :priority and lease_until is null and available_at <= :now
   and ((available_at = instant(:mark_at) and id >= :mark_id) or available_at > instant(:mark_at))
   and (select paused_at from dibs_queue where name = :queue) is null
   and crashes <= :crashes
 order by available_at, id limit :limit
   for update skip locked
-- then:
update json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id
   set j.lease_until = :now + interval :lease microsecond, j.worker_id = :worker, j.claimed_at = :now,
       j.started_at = null, j.token = j.token + 1, j.attempts = j.attempts + 1,
       j.first_started_at = coalesce(j.first_started_at, :now)
 where j.lease_until is null

-- name: claim_tasks
-- `claim`, of certain tasks only.
-- differs: as `claim`; a join with the tasks could become the outer side and bring a sort.
select id, task, payload, token + 1, attempts + 1, max_attempts, crashes, micros(available_at), micros(:now) + :lease,
       micros(created_at), convert(unique_key using utf8mb4), options
  from dibs_job force index (dibs_job_lane)
 where queue = :queue and priority = :priority and lease_until is null and available_at <= :now
   and ((available_at = instant(:mark_at) and id >= :mark_id) or available_at > instant(:mark_at))
   and (select paused_at from dibs_queue where name = :queue) is null
   and crashes <= :crashes
   and json_contains(:tasks, json_quote(task))
 order by available_at, id limit :limit
   for update skip locked
-- then:
update json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id
   set j.lease_until = :now + interval :lease microsecond, j.worker_id = :worker, j.claimed_at = :now,
       j.started_at = null, j.token = j.token + 1, j.attempts = j.attempts + 1,
       j.first_started_at = coalesce(j.first_started_at, :now)
 where j.lease_until is null

-- name: peek
-- For each lane from its mark: is there something to claim, and how long until the next job is due?
-- differs: repeated for each lane, for a join would search the index for queue and priority only, and then read all
--          that waits there.
-- each: lanes (queue, priority, mark_at, mark_id)
select :queue, :priority,
       (select 1 from dibs_job force index (dibs_job_lane)
         where queue = :queue and priority = :priority and lease_until is null and available_at <= :now
           and ((available_at = instant(:mark_at) and id >= :mark_id) or available_at > instant(:mark_at))
           and (select paused_at from dibs_queue where name = :queue) is null
         order by available_at, id limit 1),
       (select timestampdiff(microsecond, :now, available_at) from dibs_job force index (dibs_job_lane)
         where queue = :queue and priority = :priority and available_at > :now
         order by available_at, id limit 1)


-- SETTLE: every statement is fenced by (id, token) and by the lease; what it does not return was lost

-- name: archive
-- Jobs that end move to the history, all or nothing.
-- differs: three parts.
select j.id
  from (select * from json_table(:ended, '$[*]' columns (
            id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]')) t) e
  straight_join dibs_job j force index (primary) on j.id = e.id
 where j.token = e.token and j.lease_until is not null
   for update
-- then:
insert into dibs_history (id, finished_at, available_at, claimed_at, started_at, first_started_at, created_at, token,
                          priority, attempts, max_attempts, crashes, queue, task, outcome, worker_id, unique_key,
                          payload, result, options)
select j.id, :now, j.available_at, j.claimed_at,
       coalesce(j.started_at, :now - interval e.age microsecond, j.claimed_at), j.first_started_at, j.created_at,
       j.token, j.priority, j.attempts, j.max_attempts, j.crashes, j.queue, j.task, e.outcome, j.worker_id,
       j.unique_key, j.payload, e.result, j.options
  from json_table(:ended, '$[*]' columns (
           id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]',
           outcome varchar(16) character set ascii collate ascii_bin path '$[2]',
           result longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', age bigint path '$[4]')) e
  straight_join dibs_job j force index (primary) on j.id = e.id
 where j.token = e.token and j.lease_until is not null
-- then:
delete j
  from json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id

-- name: count_crashes
-- Jobs that end because their last holder was lost: the crash that ends them counts too, and a new token keeps
-- what the lost holder may still have to say from passing as the outcome.
-- differs: the batch is one JSON array.
update json_table(:batch, '$[*]' columns (
           id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]')) c
  straight_join dibs_job j force index (primary) on j.id = c.id
   set j.crashes = j.crashes + 1, j.token = j.token + 1
 where j.token = c.token and j.lease_until is not null

-- name: put_back
-- Jobs that did not end return to their lanes: after a failure, a snooze, a shutdown or the loss of their holder.
-- differs: two parts.
select j.id
  from (select * from json_table(:batch, '$[*]' columns (
            id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]')) t) b
  straight_join dibs_job j force index (primary) on j.id = b.id
 where j.token = b.token and j.lease_until is not null
   for update
-- then:
update json_table(:batch, '$[*]' columns (
           id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]',
           delay bigint path '$[2]', refund integer path '$[3]', crash integer path '$[4]', at bigint path '$[5]')) b
  straight_join dibs_job j force index (primary) on j.id = b.id
   set j.lease_until = null, j.worker_id = null, j.claimed_at = null, j.started_at = null,
       j.token = j.token + b.crash, j.attempts = j.attempts - b.refund, j.crashes = j.crashes + b.crash,
       j.available_at = coalesce(instant(b.at), :now + interval b.delay microsecond)
 where j.token = b.token and j.lease_until is not null

-- name: beat
-- Extend the leases of running jobs, and record that they run. An expired lease is not revived.
-- differs: two parts, of which the second looks which leases have time left by now: only those that were extended.
update json_table(:batch, '$[*]' columns (
           id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]',
           age bigint path '$[2]')) b
  straight_join dibs_job j force index (primary) on j.id = b.id
   set j.lease_until = :now + interval :lease microsecond,
       j.started_at = coalesce(j.started_at, :now - interval b.age microsecond)
 where j.token = b.token and j.lease_until > :now
-- then:
select j.id
  from json_table(:batch, '$[*]' columns (
           id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]')) b
  straight_join dibs_job j force index (primary) on j.id = b.id
 where j.token = b.token and j.lease_until > :now

-- name: settled_by
-- Of the jobs that a settle did not find: those that this very claim has settled before (a repeated answer).
-- differs: the batch is one JSON array.
select h.id
  from json_table(:batch, '$[*]' columns (
           id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]',
           outcome varchar(16) character set ascii collate ascii_bin path '$[2]')) e
  straight_join dibs_history h force index (primary) on h.id = e.id
 where h.token = e.token and h.outcome = e.outcome

-- name: returned_by
-- Of the jobs that a settle did not find: those that this very claim has put back before.
-- differs: the batch is one JSON array.
select b.id
  from json_table(:batch, '$[*]' columns (
           id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]',
           kind varchar(32) character set ascii collate ascii_bin path '$[2]')) b
  left join dibs_attempt_error e force index (primary) on e.job_id = b.id and e.token = b.token
 where e.kind = b.kind
    or (b.kind is null and e.kind is null
        and (select 1 from dibs_job j
              where j.id = b.id and j.token = b.token and j.lease_until is null) is not null)

-- name: add_errors
-- What went wrong in attempts that did not succeed.
-- differs: the batch is one JSON array.
insert into dibs_attempt_error (job_id, token, attempt, kind, worker_id, at, error)
select e.job_id, e.token, e.attempt, e.kind, e.worker_id, :now, e.error
  from json_table(:problems, '$[*]' columns (
           job_id char(36) character set ascii collate ascii_bin path '$[0]', token bigint path '$[1]',
           attempt integer path '$[2]', kind varchar(32) character set ascii collate ascii_bin path '$[3]',
           worker_id varchar(191) character set utf8mb4 collate utf8mb4_bin path '$[4]',
           error longtext character set utf8mb4 collate utf8mb4_bin path '$[5]')) e
on duplicate key update job_id = dibs_attempt_error.job_id


-- REAP

-- name: walk
-- Walk a bounded stretch of a lane: where it ended, how much it read, how much of that was ever claimed, and
-- which leases have expired.
-- differs: one pass, for MariaDB would walk again for each time a WITH is mentioned. The last place is the largest
--          text of time and id.
select timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', cast(left(max(walked.place), 26) as datetime(6))),
       right(max(walked.place), 36), count(*), count(case when walked.token > 0 then 1 end),
       group_concat(case when walked.lease_until < :now then walked.id end)
  from (select concat(available_at, id) as place, id, lease_until, token from dibs_job force index (dibs_job_lane)
         where queue = :queue and priority = :priority and available_at <= :now
           and ((available_at = instant(:from_at) and id > :from_id) or available_at > instant(:from_at))
         order by available_at, id limit :limit) walked
having count(*) > 0

-- name: lock_expired
-- Lock the expired ones among these; whoever is being settled or reaped by somebody else is skipped.
-- differs: a JSON array of ids, in whose order they are locked.
select j.id, j.token, j.attempts, j.crashes, j.worker_id, j.max_attempts,
       (select q.settings from dibs_queue q where q.name = j.queue), j.options
  from (select * from json_table(:ids, '$[*]' columns (
            id char(36) character set ascii collate ascii_bin path '$')) t) f
  straight_join dibs_job j force index (primary) on j.id = f.id
 where j.lease_until < :now
   for update skip locked


-- JOBS, as operators act on them

-- name: get_jobs
-- Whole jobs by id, live or finished. What is due is said by :now, which the view cannot know.
-- differs: reads the tables: older servers would fill the whole view before they look for a row in it.
select j.id, j.queue, j.task, j.priority,
       case when j.lease_until is not null and j.started_at is null then 'claimed'
            when j.lease_until is not null then 'running'
            when j.available_at is null then 'blocked'
            when j.available_at <= :now then 'ready'
            when j.attempts > 0 then 'retrying'
            else 'scheduled' end,
       j.payload, null, convert(j.unique_key using utf8mb4), j.attempts,
       coalesce(j.max_attempts, (select cast(json_unquote(json_extract(q.settings, '$.max_attempts')) as signed)
                                   from dibs_queue q where q.name = j.queue), 5),
       j.crashes, j.worker_id, j.token, j.options,
       (select json_unquote(json_extract(a.error, '$.message')) from dibs_attempt_error a
         where a.job_id = j.id order by a.token desc limit 1),
       micros(j.created_at), micros(j.available_at), micros(j.lease_until), micros(j.claimed_at),
       micros(j.started_at), null
  from json_table(:ids, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id
union all
select h.id, h.queue, h.task, h.priority, h.outcome, h.payload, h.result, convert(h.unique_key using utf8mb4),
       h.attempts,
       coalesce(h.max_attempts, (select cast(json_unquote(json_extract(q.settings, '$.max_attempts')) as signed)
                                   from dibs_queue q where q.name = h.queue), 5),
       h.crashes, h.worker_id, h.token, h.options,
       (select json_unquote(json_extract(a.error, '$.message')) from dibs_attempt_error a
         where a.job_id = h.id order by a.token desc limit 1),
       micros(h.created_at), micros(h.available_at), null, micros(h.claimed_at), micros(h.started_at),
       micros(h.finished_at)
  from json_table(:ids, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_history h force index (primary) on h.id = f.id

-- name: get_errors
-- The attempts of a job that did not succeed, oldest first.
-- differs: only the wording of instants.
select attempt, kind, error, worker_id, micros(at) from dibs_attempt_error where job_id = :id order by token

-- name: live_outcome
-- How a job stands, for somebody who waits for its end.
-- differs: reads the tables, as `get_jobs`.
select case when lease_until is not null and started_at is null then 'claimed'
            when lease_until is not null then 'running'
            when available_at is null then 'blocked'
            when available_at <= :now then 'ready'
            when attempts > 0 then 'retrying'
            else 'scheduled' end,
       null,
       (select json_unquote(json_extract(a.error, '$.message')) from dibs_attempt_error a
         where a.job_id = dibs_job.id order by a.token desc limit 1)
  from dibs_job where id = :id
union all
select outcome, result,
       (select json_unquote(json_extract(a.error, '$.message')) from dibs_attempt_error a
         where a.job_id = dibs_history.id order by a.token desc limit 1)
  from dibs_history where id = :id

-- name: list_live
-- Ids of live jobs, newest first, after a cursor.
-- differs: a JSON array for the states.
select id from dibs_job
 where (:queue is null or queue = :queue) and (:task is null or task = :task)
   and (:statuses is null or json_contains(:statuses, json_quote(
       case when lease_until is not null and started_at is null then 'claimed'
            when lease_until is not null then 'running'
            when available_at is null then 'blocked'
            when available_at <= :now then 'ready'
            when attempts > 0 then 'retrying'
            else 'scheduled' end)))
   and (:before is null or id < :before)
 order by id desc limit :limit

-- name: list_finished
-- Ids of finished jobs, newest first, after a cursor.
-- differs: a JSON array for the outcomes.
select id from dibs_history
 where (:queue is null or queue = :queue) and (:task is null or task = :task)
   and (:statuses is null or json_contains(:statuses, json_quote(outcome)))
   and (:before is null or id < :before)
 order by id desc limit :limit

-- name: end_waiting
-- Cancel or discard jobs nobody holds.
-- differs: three parts.
select j.id
  from (select * from json_table(:ids, '$[*]' columns (
            id char(36) character set ascii collate ascii_bin path '$')) t) f
  straight_join dibs_job j force index (primary) on j.id = f.id
 where j.lease_until is null
   for update skip locked
-- then:
insert into dibs_history (id, finished_at, available_at, claimed_at, started_at, first_started_at, created_at, token,
                          priority, attempts, max_attempts, crashes, queue, task, outcome, worker_id, unique_key,
                          payload, options)
select j.id, :now, j.available_at, j.claimed_at, j.started_at, j.first_started_at, j.created_at, j.token, j.priority,
       j.attempts, j.max_attempts, j.crashes, j.queue, j.task, :outcome, j.worker_id, j.unique_key, j.payload,
       j.options
  from json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id
-- then:
delete j
  from json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id

-- name: requeue
-- Finished jobs become live again, with all their attempts before them.
-- differs: three parts.
select h.id, h.queue, h.priority
  from (select * from json_table(:ids, '$[*]' columns (
            id char(36) character set ascii collate ascii_bin path '$')) t) f
  straight_join dibs_history h force index (primary) on h.id = f.id
 where h.unique_key is null
    or (not exists (select 1 from dibs_job j where j.queue = h.queue and j.unique_key = h.unique_key)
        and not exists (select 1
                          from json_table(:ids, '$[*]' columns (
                                   id char(36) character set ascii collate ascii_bin path '$')) g
                          straight_join dibs_history o force index (primary) on o.id = g.id
                         where o.id < h.id and o.queue = h.queue and o.unique_key = h.unique_key))
   for update skip locked
-- then:
insert into dibs_job (id, queue, task, priority, payload, options, unique_key, max_attempts, token, created_at,
                      first_started_at, available_at)
select h.id, h.queue, h.task, h.priority, h.payload, h.options, h.unique_key, h.max_attempts, h.token, h.created_at,
       h.first_started_at, :now
  from json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_history h force index (primary) on h.id = f.id
-- then:
delete h
  from json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_history h force index (primary) on h.id = f.id

-- name: run_now
-- Waiting jobs become due at once.
-- differs: two parts.
select j.id
  from (select * from json_table(:ids, '$[*]' columns (
            id char(36) character set ascii collate ascii_bin path '$')) t) f
  straight_join dibs_job j force index (primary) on j.id = f.id
 where j.lease_until is null and j.available_at > :now
   for update
-- then:
update json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id
   set j.available_at = :now

-- name: reschedule
-- Waiting jobs become due at another time.
-- differs: two parts.
select j.id
  from (select * from json_table(:ids, '$[*]' columns (
            id char(36) character set ascii collate ascii_bin path '$')) t) f
  straight_join dibs_job j force index (primary) on j.id = f.id
 where j.lease_until is null
   for update
-- then:
update json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_job j force index (primary) on j.id = f.id
   set j.available_at = greatest(:now, instant(:run_at))

-- name: count_old
-- How many finished jobs of one queue and certain outcomes ended before a span ago.
-- differs: a JSON array for the outcomes.
select count(*) from dibs_history
 where queue = :queue and finished_at < :now - interval :keep microsecond
   and json_contains(:outcomes, json_quote(outcome))

-- name: prune
-- Delete finished jobs of one queue and outcome that ended before a span ago, a bounded number at a time.
-- differs: three parts.
select id from dibs_history force index (dibs_history_finished)
 where queue = :queue and finished_at < :now - interval :keep microsecond
   and json_contains(:outcomes, json_quote(outcome))
 order by finished_at limit :limit
   for update skip locked
-- then:
delete a
  from json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_attempt_error a force index (primary) on a.job_id = f.id
-- then:
delete h
  from json_table(:found, '$[*]' columns (id char(36) character set ascii collate ascii_bin path '$')) f
  straight_join dibs_history h force index (primary) on h.id = f.id
 where h.finished_at < :now - interval :keep microsecond


-- QUEUES

-- name: queues
-- Every queue that is configured or has ever held jobs, with its settings.
-- differs: only the wording of instants.
select known.name, micros(q.paused_at), q.pause_reason, q.settings
  from (select queue as name from dibs_lane union select name from dibs_queue) known
  left join dibs_queue q on q.name = known.name
 order by known.name

-- name: pause
-- Stop claims from a queue.
-- differs: the row that is there is called by the table's name, and the settings are said for servers without
--          defaults for long texts.
insert into dibs_queue (name, paused_at, pause_reason, settings, updated_at)
values (:queue, :now, :reason, '{}', :now)
on duplicate key update paused_at = coalesce(dibs_queue.paused_at, :now), pause_reason = :reason, updated_at = :now

-- name: resume
-- Allow claims from a queue again.
-- differs: only the table's name.
update dibs_queue set paused_at = null, pause_reason = null, updated_at = :now where name = :queue

-- name: configure
-- Merge settings into those of a queue; null removes one.
-- differs: json_merge_patch merges what is nested, too; so what is about to be set is first removed.
insert into dibs_queue (name, settings, updated_at) values (:queue, json_merge_patch('{}', :settings), :now)
on duplicate key update
   settings = json_merge_patch(
       json_merge_patch(dibs_queue.settings, coalesce(
           (select json_objectagg(k.name, null)
              from json_table(json_keys(:settings), '$[*]' columns (name varchar(64) path '$')) k), '{}')),
       :settings),
   updated_at = :now

-- name: settings
-- The settings of every configured queue.
-- differs: only the table's name.
select name, paused_at is not null, settings from dibs_queue

-- name: count_live
-- Live jobs by queue, priority and state, at most :cap rows read of each lane, and the age of the oldest due one.
-- differs: no LATERAL (MySQL has it from 8.0.14, MariaDB not): one pass over at most :cap rows in all.
select queue, priority,
       case when lease_until is not null and started_at is null then 'claimed'
            when lease_until is not null then 'running'
            when available_at is null then 'blocked'
            when available_at <= :now then 'ready'
            when attempts > 0 then 'retrying'
            else 'scheduled' end,
       count(*), timestampdiff(microsecond, min(available_at), :now)
  from (select queue, priority, lease_until, started_at, available_at, attempts from dibs_job limit :cap) head
 group by 1, 2, 3 order by 1, 2 desc, 3

-- name: count_finished
-- Finished jobs by queue and outcome that ended within a span, at most :cap rows read.
-- differs: only the wording of instants.
select queue, outcome, count(*)
  from (select queue, outcome from dibs_history force index (dibs_history_recent)
         where finished_at >= :now - interval :span microsecond limit :cap) recent
 group by 1, 2 order by 1, 2

-- name: count_dead
-- Dead jobs by queue, whenever they ended; the row without a queue tells how many failed attempts were read.
-- differs: no LATERAL.
select null, count(*)
  from (select job_id from dibs_attempt_error order by job_id desc limit :cap) failed
union all
select h.queue, count(*)
  from (select distinct job_id
          from (select job_id from dibs_attempt_error order by job_id desc limit :cap) failed) once
  straight_join dibs_history h force index (primary) on h.id = once.job_id
 where h.outcome = 'dead'
 group by h.queue


-- WORKERS AND CHORES

-- name: worker_beat
-- A worker is alive: its row is made or refreshed.
-- differs: only the wording.
insert into dibs_worker (id, host, pid, version, queues, concurrency, running, state, started_at, beat_at)
values (:id, :host, :pid, :version, :queues, :concurrency, :running, :state, :now, :now)
on duplicate key update beat_at = :now, running = :running, state = :state

-- name: worker_gone
-- A worker has stopped.
-- differs: only the table's name.
delete from dibs_worker where id = :id

-- name: forget_workers
-- Rows of workers that have not been heard of for long.
-- differs: only the wording of spans.
delete from dibs_worker where beat_at < :now - interval :span microsecond

-- name: workers
-- The workers, oldest first, with the time since each was last heard of.
-- differs: only the wording of instants.
select id, host, pid, version, queues, concurrency, running, state, micros(started_at),
       timestampdiff(microsecond, beat_at, :now)
  from dibs_worker order by started_at, id

-- name: add_chore
-- Make the row of a duty.
-- differs: an update that changes nothing.
insert into dibs_chore (name, due_at) values (:name, :now) on duplicate key update name = dibs_chore.name

-- name: take_chore
-- Take a duty if it is due, by moving its next time forward: one of many workers succeeds.
-- differs: two parts.
select name from dibs_chore
 where name = :name and due_at <= :now
   and (taken_by = :worker or taken_by is null or due_at <= :now - interval :every microsecond)
   for update
-- then:
update dibs_chore set due_at = :now + interval :every microsecond, taken_by = :worker where name = :name

-- name: clock
-- The database's time.
-- differs: only the wording of instants.
select micros(:now)
