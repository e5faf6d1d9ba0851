-- Every statement dibs sends to SQLite, by name, in the order of postgres.sql.
--
-- :name   a parameter. Instants and spans are whole microseconds, ids are text.
-- :now    the clock of this process: SQLite has no server, so all processes share the machine's clock.
-- differs: for the whole file: a batch travels as one JSON array and is read by json_each. There is one writer
--          at a time, so nothing is locked or skipped, and a deleted row leaves no dead index entry.


-- ENQUEUE

-- name: enqueue
-- One new job.
-- differs: only the wording of casts. (Other processes see the commit by the data version of the file.)
insert into dibs_job (id, queue, task, priority, payload, max_attempts, options, available_at, created_at)
values (:id, :queue, :task, :priority, :payload, :max_attempts, :options,
        max(:now, coalesce(:run_at, :now + coalesce(:delay, 0))), :now)

-- name: stored
-- Of the jobs whose enqueue got no answer: those that were stored, live or finished by now.
-- differs: a JSON array of ids.
select id from dibs_job where id in (select value from json_each(:ids))
union all
select id from dibs_history where id in (select value from json_each(:ids))

-- name: drop_finished
-- Jobs that were stored again after they had finished are no jobs.
-- differs: a JSON array of ids.
delete from dibs_job
 where id in (select value from json_each(:ids)) and exists (select 1 from dibs_history h where h.id = dibs_job.id)

-- name: enqueue_unique
-- A job with a key: the new one, or the live one that already has the key.
-- differs: no bell, and no other writer to wait for.
insert into dibs_job (id, queue, task, priority, payload, max_attempts, options, unique_key, available_at, created_at)
values (:id, :queue, :task, :priority, :payload, :max_attempts, :options, :unique_key,
        max(:now, coalesce(:run_at, :now + coalesce(:delay, 0))), :now)
on conflict (queue, unique_key) where unique_key is not null
do update set unique_key = excluded.unique_key
returning id, 0

-- name: replace_waiting
-- Give a waiting job the payload, options and time of a newer request, with all attempts before it. A job somebody
-- holds stays as it is.
-- differs: only the wording of casts.
update dibs_job set payload = :payload, task = :task, priority = :priority, max_attempts = :max_attempts,
       attempts = 0, crashes = 0, options = :options, available_at = max(:now, coalesce(:run_at, :now + coalesce(:delay, 0)))
 where id = :id and lease_until is null
returning id

-- name: enqueue_batch
-- Many jobs without a key; an id that is already there is left alone.
-- differs: json_each instead of a record set; payload and options arrive as text inside the JSON.
insert into dibs_job (id, queue, task, priority, payload, max_attempts, options, available_at, created_at)
select n.value ->> 0, n.value ->> 1, n.value ->> 2, n.value ->> 3, n.value ->> 4, n.value ->> 5, n.value ->> 6,
       max(:now, coalesce(n.value ->> 7, :now + coalesce(n.value ->> 8, 0))), :now
  from json_each(:jobs) n where true
on conflict (id) do nothing

-- name: add_lane
-- Remember a (queue, priority) pair.
-- differs: only the wording.
insert into dibs_lane (queue, priority) values (:queue, :priority) on conflict do nothing


-- CLAIM

-- name: lanes
-- The known lanes, and the time.
-- differs: only the table's name.
select queue, priority, :now from dibs_lane

-- name: discover_lanes
-- The lanes that hold jobs, found by hopping along the index: also those of a plain INSERT by other programs.
-- differs: SQLite has no LATERAL; two scalar sub-selects find the next pair.
with recursive hop(queue, priority) as (
    select * from (select queue, priority from dibs_job order by queue, priority limit 1)
    union all
    select n.queue, n.priority from hop join dibs_job n on n.id = (
        select j.id from dibs_job j where (j.queue, j.priority) > (hop.queue, hop.priority)
         order by j.queue, j.priority limit 1)
)
select queue, priority from hop

-- name: claim
-- Lease the next jobs of one lane, beginning at the mark.
-- differs: no row locks: the statement holds the only write lock of the file.
update dibs_job set
       lease_until = :now + :lease, worker_id = :worker, claimed_at = :now, started_at = null, token = token + 1,
       attempts = attempts + 1, first_started_at = coalesce(first_started_at, :now)
 where id in (
       select id from dibs_job
        where queue = :queue and priority = :priority and lease_until is null and available_at <= :now
          and (available_at, id) >= (:mark_at, :mark_id)
          and (select paused_at from dibs_queue where name = :queue) is null
          and crashes <= :crashes
        order by available_at, id limit :limit)
returning id, task, payload, token, attempts, max_attempts, crashes, available_at, lease_until, created_at, unique_key,
          options

-- name: claim_tasks
-- `claim`, of certain tasks only.
-- differs: as `claim`.
update dibs_job set
       lease_until = :now + :lease, worker_id = :worker, claimed_at = :now, started_at = null, token = token + 1,
       attempts = attempts + 1, first_started_at = coalesce(first_started_at, :now)
 where id in (
       select id from dibs_job
        where queue = :queue and priority = :priority and lease_until is null and available_at <= :now
          and (available_at, id) >= (:mark_at, :mark_id)
          and (select paused_at from dibs_queue where name = :queue) is null
          and crashes <= :crashes
          and task in (select value from json_each(:tasks))
        order by available_at, id limit :limit)
returning id, task, payload, token, attempts, max_attempts, crashes, available_at, lease_until, created_at, unique_key,
          options

-- name: peek
-- For each lane from its mark: is there something to claim, and how long until the next job is due?
-- differs: the lanes arrive as one JSON array.
select lane.value ->> 0, lane.value ->> 1,
       exists (select 1 from dibs_job j
                where j.queue = lane.value ->> 0 and j.priority = lane.value ->> 1 and j.lease_until is null
                  and j.available_at <= :now and (j.available_at, j.id) >= (lane.value ->> 2, lane.value ->> 3)
                  and (select paused_at from dibs_queue where name = lane.value ->> 0) is null),
       (select j.available_at - :now from dibs_job j
         where j.queue = lane.value ->> 0 and j.priority = lane.value ->> 1 and j.available_at > :now
         order by j.available_at, j.id limit 1)
  from json_each(:lanes) lane


-- SETTLE: every statement is fenced by (id, token) and by the lease; what it does not return was lost

-- name: archive
-- Jobs that end move to the history, all or nothing.
-- differs: two parts, because SQLite cannot insert what a DELETE returns.
insert into dibs_history (id, finished_at, available_at, claimed_at, started_at, first_started_at, created_at, token,
                          priority, attempts, max_attempts, crashes, queue, task, outcome, worker_id, unique_key,
                          payload, result, options)
select j.id, :now, j.available_at, j.claimed_at,
       coalesce(j.started_at, :now - (e.value ->> 4), j.claimed_at), j.first_started_at, j.created_at, j.token,
       j.priority, j.attempts, j.max_attempts, j.crashes, j.queue, j.task, e.value ->> 2, j.worker_id, j.unique_key,
       j.payload, e.value ->> 3, j.options
  from json_each(:ended) e
  cross join dibs_job j on j.id = e.value ->> 0 and j.token = e.value ->> 1 and j.lease_until is not null
returning id
-- then:
delete from dibs_job where id in (select value from json_each(:found))

-- name: count_crashes
-- Jobs that end because their last holder was lost: the crash that ends them counts too, and a new token keeps
-- what the lost holder may still have to say from passing as the outcome.
-- differs: the batch is one JSON array.
update dibs_job set crashes = crashes + 1, token = dibs_job.token + 1
  from (select value ->> 0 as id, value ->> 1 as token from json_each(:batch)) c
 where dibs_job.id = c.id and dibs_job.token = c.token and dibs_job.lease_until is not null

-- name: put_back
-- Jobs that did not end return to their lanes: after a failure, a snooze, a shutdown or the loss of their holder.
-- differs: the batch is one JSON array.
update dibs_job set
       lease_until = null, worker_id = null, claimed_at = null, started_at = null, token = dibs_job.token + b.crash,
       attempts = attempts - b.refund, crashes = crashes + b.crash, available_at = coalesce(b.at, :now + b.delay)
  from (select value ->> 0 as id, value ->> 1 as token, value ->> 2 as delay, value ->> 3 as refund,
               value ->> 4 as crash, value ->> 5 as at from json_each(:batch)) b
 where dibs_job.id = b.id and dibs_job.token = b.token and dibs_job.lease_until is not null
returning id

-- name: beat
-- Extend the leases of running jobs, and record that they run. An expired lease is not revived.
-- differs: the batch is one JSON array.
update dibs_job set lease_until = :now + :lease, started_at = coalesce(started_at, :now - b.age)
  from (select value ->> 0 as id, value ->> 1 as token, value ->> 2 as age from json_each(:batch)) b
 where dibs_job.id = b.id and dibs_job.token = b.token and dibs_job.lease_until > :now
returning id

-- name: settled_by
-- Of the jobs that a settle did not find: those that this very claim has settled before (a repeated answer).
-- differs: the batch is one JSON array.
select h.id from json_each(:batch) e
  cross join dibs_history h on h.id = e.value ->> 0 and h.token = e.value ->> 1 and h.outcome = e.value ->> 2

-- name: returned_by
-- Of the jobs that a settle did not find: those that this very claim has put back before.
-- differs: the batch is one JSON array; SQLite has no LATERAL.
select b.value ->> 0 from json_each(:batch) b
  left join dibs_attempt_error e on e.job_id = b.value ->> 0 and e.token = b.value ->> 1
 where e.kind = b.value ->> 2
    or (b.value ->> 2 is null and e.kind is null
        and exists (select 1 from dibs_job j
                     where j.id = b.value ->> 0 and j.token = b.value ->> 1 and j.lease_until is null))

-- name: add_errors
-- What went wrong in attempts that did not succeed.
-- differs: the batch is one JSON array.
insert into dibs_attempt_error (job_id, token, attempt, kind, worker_id, at, error)
select e.value ->> 0, e.value ->> 1, e.value ->> 2, e.value ->> 3, e.value ->> 4, :now, e.value ->> 5
  from json_each(:problems) e where true
on conflict (job_id, token) do nothing


-- REAP

-- name: walk
-- Walk a bounded stretch of a lane: where it ended, how much it read, how much of that was ever claimed, and
-- which leases have expired.
-- differs: only the wording of casts.
with walked as materialized (
    select available_at, id, lease_until, token from dibs_job
     where queue = :queue and priority = :priority and available_at <= :now
       and (available_at, id) > (:from_at, :from_id)
     order by available_at, id limit :limit
)
select available_at, id, (select count(*) from walked), (select count(*) from walked where token > 0),
       (select group_concat(id, ',') from walked where lease_until < :now)
  from walked order by available_at desc, id desc limit 1

-- name: lock_expired
-- Lock the expired ones among these; whoever is being settled or reaped by somebody else is skipped.
-- differs: nothing to lock or skip: the transaction holds the only write lock.
select id, token, attempts, crashes, worker_id, max_attempts,
       (select settings from dibs_queue where name = dibs_job.queue), options
  from dibs_job
 where id in (select value from json_each(:ids)) and lease_until < :now
 order by id


-- JOBS, as operators act on them

-- name: get_jobs
-- Whole jobs by id, live or finished. What is due is said by :now, which the view cannot know.
-- differs: reads the tables, not the view: the view shows instants as text.
select id, queue, task, priority,
       case when lease_until is not null and started_at is null then 'claimed'
            when lease_until is not null then 'running'
            when available_at is null then 'blocked'
            when available_at <= :now then 'ready'
            when attempts > 0 then 'retrying'
            else 'scheduled' end,
       payload, null, unique_key, attempts,
       coalesce(max_attempts, (select json_extract(q.settings, '$.max_attempts') from dibs_queue q
                                where q.name = dibs_job.queue), 5),
       crashes, worker_id, token, options,
       (select json_extract(a.error, '$.message') from dibs_attempt_error a
         where a.job_id = dibs_job.id order by a.token desc limit 1),
       created_at, available_at, lease_until, claimed_at, started_at, null
  from dibs_job where id in (select value from json_each(:ids))
union all
select id, queue, task, priority, outcome, payload, result, unique_key, attempts,
       coalesce(max_attempts, (select json_extract(q.settings, '$.max_attempts') from dibs_queue q
                                where q.name = dibs_history.queue), 5),
       crashes, worker_id, token, options,
       (select json_extract(a.error, '$.message') from dibs_attempt_error a
         where a.job_id = dibs_history.id order by a.token desc limit 1),
       created_at, available_at, null, claimed_at, started_at, finished_at
  from dibs_history where id in (select value from json_each(:ids))

-- name: get_errors
-- The attempts of a job that did not succeed, oldest first.
-- differs: only the wording of casts.
select attempt, kind, error, worker_id, at from dibs_attempt_error where job_id = :id order by token

-- name: live_outcome
-- How a job stands, for somebody who waits for its end.
-- differs: reads the tables: the view's clock has milliseconds only.
select case when lease_until is not null and started_at is null then 'claimed'
            when lease_until is not null then 'running'
            when available_at is null then 'blocked'
            when available_at <= :now then 'ready'
            when attempts > 0 then 'retrying'
            else 'scheduled' end,
       null,
       (select json_extract(a.error, '$.message') from dibs_attempt_error a
         where a.job_id = dibs_job.id order by a.token desc limit 1)
  from dibs_job where id = :id
union all
select outcome, result,
       (select json_extract(a.error, '$.message') from dibs_attempt_error a
         where a.job_id = dibs_history.id order by a.token desc limit 1)
  from dibs_history where id = :id

-- name: list_live
-- Ids of live jobs, newest first, after a cursor.
-- differs: a JSON array for the states.
select id from dibs_job
 where (:queue is null or queue = :queue) and (:task is null or task = :task)
   and (:statuses is null or (
       case when lease_until is not null and started_at is null then 'claimed'
            when lease_until is not null then 'running'
            when available_at is null then 'blocked'
            when available_at <= :now then 'ready'
            when attempts > 0 then 'retrying'
            else 'scheduled' end)
       in (select value from json_each(:statuses)))
   and (:before is null or id < :before)
 order by id desc limit :limit

-- name: list_finished
-- Ids of finished jobs, newest first, after a cursor.
-- differs: a JSON array for the outcomes.
select id from dibs_history
 where (:queue is null or queue = :queue) and (:task is null or task = :task)
   and (:statuses is null or outcome in (select value from json_each(:statuses)))
   and (:before is null or id < :before)
 order by id desc limit :limit

-- name: end_waiting
-- Cancel or discard jobs nobody holds.
-- differs: two parts, because SQLite cannot insert what a DELETE returns.
insert into dibs_history (id, finished_at, available_at, claimed_at, started_at, first_started_at, created_at, token,
                          priority, attempts, max_attempts, crashes, queue, task, outcome, worker_id, unique_key,
                          payload, options)
select id, :now, available_at, claimed_at, started_at, first_started_at, created_at, token, priority, attempts,
       max_attempts, crashes, queue, task, :outcome, worker_id, unique_key, payload, options
  from dibs_job where id in (select value from json_each(:ids)) and lease_until is null
-- then:
delete from dibs_job where id in (select value from json_each(:ids)) and lease_until is null returning id

-- name: requeue
-- Finished jobs become live again, with all their attempts before them.
-- differs: two parts, because SQLite cannot insert what a DELETE returns.
insert into dibs_job (id, queue, task, priority, payload, options, unique_key, max_attempts, token, created_at,
                      first_started_at, available_at)
select id, queue, task, priority, payload, options, unique_key, max_attempts, token, created_at, first_started_at, :now
  from dibs_history h
 where id in (select value from json_each(:ids))
   and (unique_key is null or not exists (select 1 from dibs_job j
                                           where j.queue = h.queue and j.unique_key = h.unique_key)
       and not exists (select 1 from dibs_history o where o.id in (select value from json_each(:ids)) and o.id < h.id
                          and o.queue = h.queue and o.unique_key = h.unique_key))
returning id, queue, priority
-- then:
delete from dibs_history where id in (select value from json_each(:found))

-- name: run_now
-- Waiting jobs become due at once.
-- differs: a JSON array of ids.
update dibs_job set available_at = :now
 where id in (select value from json_each(:ids)) and lease_until is null and available_at > :now
returning id

-- name: reschedule
-- Waiting jobs become due at another time.
-- differs: a JSON array of ids.
update dibs_job set available_at = max(:now, :run_at)
 where id in (select value from json_each(:ids)) and lease_until is null
returning id

-- name: count_old
-- How many finished jobs of one queue and certain outcomes ended before a span ago.
-- differs: a JSON array for the outcomes.
select count(*) from dibs_history
 where queue = :queue and finished_at < :now - :keep and outcome in (select value from json_each(:outcomes))

-- name: prune
-- Delete finished jobs of one queue and outcome that ended before a span ago, a bounded number at a time.
-- differs: three parts: SQLite deletes from one table at a time.
select id from dibs_history
 where queue = :queue and finished_at < :now - :keep and outcome in (select value from json_each(:outcomes))
 order by finished_at limit :limit
-- then:
delete from dibs_attempt_error where job_id in (select value from json_each(:found))
-- then:
delete from dibs_history where id in (select value from json_each(:found))


-- QUEUES

-- name: queues
-- Every queue that is configured or has ever held jobs, with its settings.
-- differs: only the tables' names.
select every.name, q.paused_at, q.pause_reason, q.settings
  from (select queue as name from dibs_lane union select name from dibs_queue) every
  left join dibs_queue q on q.name = every.name
 order by every.name

-- name: pause
-- Stop claims from a queue.
-- differs: only the wording.
insert into dibs_queue (name, paused_at, pause_reason) values (:queue, :now, :reason)
on conflict (name) do update set paused_at = coalesce(dibs_queue.paused_at, excluded.paused_at),
                                 pause_reason = excluded.pause_reason, updated_at = :now

-- name: resume
-- Allow claims from a queue again.
-- differs: only the table's name.
update dibs_queue set paused_at = null, pause_reason = null, updated_at = :now where name = :queue

-- name: configure
-- Merge settings into those of a queue; null removes one.
-- differs: json_patch merges what is nested, too; so what is about to be set is first removed.
insert into dibs_queue (name, settings) values (:queue, json_patch('{}', :settings))
on conflict (name) do update
   set settings = json_patch(json_patch(dibs_queue.settings,
                                        (select json_group_object(key, null) from json_each(:settings))), :settings),
       updated_at = :now

-- name: settings
-- The settings of every configured queue.
-- differs: only the table's name.
select name, paused_at is not null, settings from dibs_queue

-- name: count_live
-- Live jobs by queue, priority and state, at most :cap rows read of each lane, and the age of the oldest due one.
-- differs: no LATERAL: one pass over at most :cap rows in all.
select queue, priority,
       case when lease_until is not null and started_at is null then 'claimed'
            when lease_until is not null then 'running'
            when available_at is null then 'blocked'
            when available_at <= :now then 'ready'
            when attempts > 0 then 'retrying'
            else 'scheduled' end,
       count(*), :now - min(available_at)
  from (select queue, priority, lease_until, started_at, available_at, attempts from dibs_job limit :cap)
 group by 1, 2, 3 order by 1, 2 desc, 3

-- name: count_finished
-- Finished jobs by queue and outcome that ended within a span, at most :cap rows read.
-- differs: only the wording of casts.
select queue, outcome, count(*)
  from (select queue, outcome from dibs_history where finished_at >= :now - :span limit :cap)
 group by 1, 2 order by 1, 2

-- name: count_dead
-- Dead jobs by queue, whenever they ended; the row without a queue tells how many failed attempts were read.
-- differs: SQLite has no LATERAL.
with failed as materialized (
    select job_id from dibs_attempt_error order by job_id desc limit :cap
)
select null, count(*) from failed
union all
select h.queue, count(*)
  from (select distinct job_id from failed) once
  cross join dibs_history h on h.id = once.job_id and h.outcome = 'dead'
 group by 1


-- WORKERS AND CHORES

-- name: worker_beat
-- A worker is alive: its row is made or refreshed.
-- differs: only the wording of casts.
insert into dibs_worker (id, host, pid, version, queues, concurrency, running, state, started_at, beat_at)
values (:id, :host, :pid, :version, :queues, :concurrency, :running, :state, :now, :now)
on conflict (id) do update set beat_at = :now, running = excluded.running, state = excluded.state

-- name: worker_gone
-- A worker has stopped.
-- differs: only the table's name.
delete from dibs_worker where id = :id

-- name: forget_workers
-- Rows of workers that have not been heard of for long.
-- differs: only the wording.
delete from dibs_worker where beat_at < :now - :span

-- name: workers
-- The workers, oldest first, with the time since each was last heard of.
-- differs: only the wording of casts.
select id, host, pid, version, queues, concurrency, running, state, started_at, :now - beat_at
  from dibs_worker order by started_at, id

-- name: add_chore
-- Make the row of a duty.
-- differs: only the table's name.
insert into dibs_chore (name, due_at) values (:name, :now) on conflict (name) do nothing

-- name: take_chore
-- Take a duty if it is due, by moving its next time forward: one of many workers succeeds.
-- differs: only the wording of casts.
update dibs_chore set due_at = :now + :every, taken_by = :worker
 where name = :name and due_at <= :now and (taken_by = :worker or taken_by is null or due_at <= :now - :every)
returning name

-- name: clock
-- The database's time.
-- differs: SQLite has none; it is this process' clock.
select :now
