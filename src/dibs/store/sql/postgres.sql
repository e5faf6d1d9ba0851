-- Every statement dibs sends to PostgreSQL, by name.
--
-- :name   a parameter. Instants and spans are whole microseconds, ids are text; each is cast here, so that
--         psycopg, asyncpg and SQLAlchemy all send the same plain text and numbers.
-- :now    the database's clock, statement_timestamp() (tests may bind their own).
-- "plan: fresh" after a name asks for a new plan at every call. A cached generic plan made while the table
--         was empty would go on reading the whole table when it is full.
-- "(select :x)" around an array hides its length from the planner: it then expects ten elements and looks
--         each up by its index, whatever the statistics say.


-- ENQUEUE

-- name: enqueue
-- One new job.
insert into dibs.job (id, queue, task, priority, payload, max_attempts, options, available_at)
values (cast(cast(:id as text) as uuid), :queue, :task, :priority, cast(cast(:payload as text) as jsonb),
        cast(:max_attempts as integer), cast(cast(:options as text) as jsonb),
        greatest(:now, coalesce(dibs.instant(cast(:run_at as bigint)),
                                :now + coalesce(cast(:delay as bigint), 0) * interval '1 microsecond')))

-- name: enqueue_and_ring
-- One new job, and a ring if somebody sleeps: PostgreSQL delivers a notification only after the commit. Answers null
-- if nobody does.
insert into dibs.job (id, queue, task, priority, payload, max_attempts, options, available_at)
values (cast(cast(:id as text) as uuid), :queue, :task, :priority, cast(cast(:payload as text) as jsonb),
        cast(:max_attempts as integer), cast(cast(:options as text) as jsonb),
        greatest(:now, coalesce(dibs.instant(cast(:run_at as bigint)),
                                :now + coalesce(cast(:delay as bigint), 0) * interval '1 microsecond')))
returning (select pg_notify('dibs', '') is null from dibs.worker where sleeping_until > :now limit 1)

-- name: stored
-- Of the jobs whose enqueue got no answer: those that were stored, live or finished by now.
select cast(id as text) from dibs.job where id = any (cast(cast(:ids as text) as uuid[]))
union all
select cast(id as text) from dibs.history where id = any (cast(cast(:ids as text) as uuid[]))

-- name: drop_finished
-- Jobs that were stored again after they had finished are no jobs.
delete from dibs.job
 where id = any (cast(cast(:ids as text) as uuid[]))
   and exists (select from dibs.history h where h.id = job.id)

-- name: enqueue_unique
-- A job with a key: the new one, or the live one that already has the key. The update that changes nothing
-- waits for a concurrent inserter or finisher and locks what it returns, so the answer is true when given.
insert into dibs.job (id, queue, task, priority, payload, max_attempts, options, unique_key, available_at)
values (cast(cast(:id as text) as uuid), :queue, :task, :priority, cast(cast(:payload as text) as jsonb),
        cast(:max_attempts as integer), cast(cast(:options as text) as jsonb), :unique_key,
        greatest(:now, coalesce(dibs.instant(cast(:run_at as bigint)),
                                :now + coalesce(cast(:delay as bigint), 0) * interval '1 microsecond')))
on conflict (queue, unique_key) where unique_key is not null
do update set unique_key = excluded.unique_key
returning cast(id as text),
          (select pg_notify('dibs', '') is null from dibs.worker where sleeping_until > :now limit 1)

-- name: replace_waiting
-- Give a waiting job the payload, options and time of a newer request, with all attempts before it. A job somebody
-- holds stays as it is.
update dibs.job set
       payload = cast(cast(:payload as text) as jsonb), task = :task, priority = :priority, attempts = 0, crashes = 0,
       max_attempts = cast(:max_attempts as integer), options = cast(cast(:options as text) as jsonb),
       available_at = greatest(:now, coalesce(dibs.instant(cast(:run_at as bigint)),
                                :now + coalesce(cast(:delay as bigint), 0) * interval '1 microsecond'))
 where id = cast(cast(:id as text) as uuid) and lease_until is null
returning id

-- name: enqueue_batch
-- Many jobs without a key; an id that is already there is left alone. They come as one array for each column.
insert into dibs.job (id, queue, task, priority, payload, max_attempts, options, available_at)
select n.id, n.queue, n.task, n.priority, cast(n.payload as jsonb), n.max_attempts, cast(n.options as jsonb),
       greatest(:now, coalesce(dibs.instant(n.run_at), :now + coalesce(n.delay, 0) * interval '1 microsecond'))
  from unnest(cast(cast(:ids as text) as uuid[]), cast(cast(:queues as text) as text[]),
              cast(cast(:tasks as text) as text[]), cast(cast(:priorities as text) as integer[]),
              cast(cast(:payloads as text) as text[]), cast(cast(:max_attempts as text) as integer[]),
              cast(cast(:options as text) as text[]), cast(cast(:run_ats as text) as bigint[]),
              cast(cast(:delays as text) as bigint[]))
       as n(id, queue, task, priority, payload, max_attempts, options, run_at, delay)
on conflict (id) do nothing

-- name: copy_jobs
-- The bulk load. available_at and created_at are filled in by the server's clock.
copy dibs.job (id, queue, task, priority, payload, max_attempts, options) from stdin

-- name: ring
-- Wake whoever sleeps. Sent after a bulk load, once.
select pg_notify('dibs', '') is null from dibs.worker where sleeping_until > :now limit 1

-- name: add_lane
-- Remember a (queue, priority) pair.
insert into dibs.lane (queue, priority) values (:queue, :priority) on conflict do nothing


-- CLAIM

-- name: lanes
-- The known lanes, and the time.
select queue, priority, dibs.micros(:now) from dibs.lane

-- name: discover_lanes plan: fresh
-- The lanes that hold jobs, found by hopping along the index: also those of a plain INSERT by other programs.
with recursive hop(queue, priority) as (
    (select queue, priority from dibs.job order by queue, priority limit 1)
    union all
    select n.queue, n.priority
      from hop, lateral (select j.queue, j.priority from dibs.job j
                          where (j.queue, j.priority) > (hop.queue, hop.priority)
                          order by j.queue, j.priority limit 1) n
)
select queue, priority from hop

-- name: claim plan: fresh
-- Lease the next jobs of one lane, beginning at the mark. The rows are locked by the inner select, in index
-- order, skipping what others hold, and then updated by their place on the page. ANY(ARRAY(...)) is one plan
-- for every state of the statistics: a sub-select joined to the update may be run again for each outer row and
-- then claims the whole queue (tests/contract/test_claim_traps.py).
update dibs.job set
       lease_until = :now + cast(:lease as bigint) * interval '1 microsecond',
       worker_id = :worker, claimed_at = :now, started_at = null, token = token + 1, attempts = attempts + 1,
       first_started_at = coalesce(first_started_at, :now)
 where ctid = any (array(
       select ctid from dibs.job
        where queue = :queue and priority = :priority and lease_until is null and available_at <= :now
          and (available_at, id) >= (dibs.instant(cast(:mark_at as bigint)), cast(cast(:mark_id as text) as uuid))
          and (select paused_at from dibs.queue where name = :queue) is null
          and crashes <= cast(:crashes as integer)
        order by available_at, id limit :limit
          for update skip locked))
returning cast(id as text), task, cast(payload as text), token, attempts, max_attempts, crashes,
          dibs.micros(available_at), dibs.micros(lease_until), dibs.micros(created_at), unique_key,
          cast(options as text)

-- name: claim_tasks plan: fresh
-- `claim`, of certain tasks only.
update dibs.job set
       lease_until = :now + cast(:lease as bigint) * interval '1 microsecond',
       worker_id = :worker, claimed_at = :now, started_at = null, token = token + 1, attempts = attempts + 1,
       first_started_at = coalesce(first_started_at, :now)
 where ctid = any (array(
       select ctid from dibs.job
        where queue = :queue and priority = :priority and lease_until is null and available_at <= :now
          and (available_at, id) >= (dibs.instant(cast(:mark_at as bigint)), cast(cast(:mark_id as text) as uuid))
          and (select paused_at from dibs.queue where name = :queue) is null
          and crashes <= cast(:crashes as integer)
          and task = any (cast(cast(:tasks as text) as text[]))
        order by available_at, id limit :limit
          for update skip locked))
returning cast(id as text), task, cast(payload as text), token, attempts, max_attempts, crashes,
          dibs.micros(available_at), dibs.micros(lease_until), dibs.micros(created_at), unique_key,
          cast(options as text)

-- name: peek plan: fresh
-- For each lane from its mark: is there something to claim, and how long until the next job is due?
-- Not EXISTS: PostgreSQL drops an ORDER BY in there, and then reads the whole table when it believes that any
-- row will do.
select lane.queue, lane.priority,
       (select true from dibs.job j
         where j.queue = lane.queue and j.priority = lane.priority and j.lease_until is null
           and j.available_at <= :now and (j.available_at, j.id) >= (dibs.instant(lane.mark_at), lane.mark_id)
           and (select paused_at from dibs.queue where name = lane.queue) is null
         order by j.available_at, j.id limit 1),
       (select dibs.micros(j.available_at) - dibs.micros(:now) from dibs.job j
         where j.queue = lane.queue and j.priority = lane.priority and j.available_at > :now
         order by j.available_at, j.id limit 1)
  from unnest((select cast(cast(:queues as text) as text[])), (select cast(cast(:priorities as text) as integer[])),
              (select cast(cast(:marks_at as text) as bigint[])), (select cast(cast(:mark_ids as text) as uuid[])))
       as lane(queue, priority, mark_at, mark_id)


-- SETTLE: every statement is fenced by (id, token) and by the lease; what it does not return was lost

-- name: archive plan: fresh
-- Jobs that end move to the history, all or nothing.
with ended as materialized (
    select * from unnest((select cast(cast(:ids as text) as uuid[])), (select cast(cast(:tokens as text) as bigint[])),
                         (select cast(cast(:outcomes as text) as text[])),
                         (select cast(cast(:results as text) as text[])),
                         (select cast(cast(:ages as text) as bigint[])))
           as e(id, token, outcome, result, age)
), gone as (
    delete from dibs.job j using ended e
     where j.id = e.id and j.token = e.token and j.lease_until is not null
    returning j.*, e.outcome, e.result, e.age
)
insert into dibs.history (id, finished_at, available_at, claimed_at, started_at, first_started_at, created_at, token,
                          priority, attempts, max_attempts, crashes, queue, task, outcome, worker_id, unique_key,
                          payload, result, options)
select id, :now, available_at, claimed_at,
       coalesce(started_at, :now - age * interval '1 microsecond', claimed_at), first_started_at, created_at, token,
       priority, attempts, max_attempts, crashes, queue, task, outcome, worker_id, unique_key,
       payload, cast(result as jsonb), options
  from gone
returning cast(id as text)

-- name: count_crashes plan: fresh
-- Jobs that end because their last holder was lost: the crash that ends them counts too, and a new token keeps
-- what the lost holder may still have to say from passing as the outcome.
update dibs.job j set crashes = crashes + 1, token = j.token + 1
  from unnest((select cast(cast(:ids as text) as uuid[])), (select cast(cast(:tokens as text) as bigint[])))
       as c(id, token)
 where j.id = c.id and j.token = c.token and j.lease_until is not null

-- name: put_back plan: fresh
-- Jobs that did not end return to their lanes: after a failure, a snooze, a shutdown or the loss of their holder.
update dibs.job j set
       lease_until = null, worker_id = null, claimed_at = null, started_at = null, token = j.token + b.crash,
       attempts = j.attempts - b.refund, crashes = j.crashes + b.crash,
       available_at = coalesce(dibs.instant(b.at), :now + b.delay * interval '1 microsecond')
  from unnest((select cast(cast(:ids as text) as uuid[])), (select cast(cast(:tokens as text) as bigint[])),
              (select cast(cast(:delays as text) as bigint[])), (select cast(cast(:refunds as text) as integer[])),
              (select cast(cast(:crashes as text) as integer[])), (select cast(cast(:ats as text) as bigint[])))
       as b(id, token, delay, refund, crash, at)
 where j.id = b.id and j.token = b.token and j.lease_until is not null
returning cast(j.id as text)

-- name: beat plan: fresh
-- Extend the leases of running jobs, and record that they run. An expired lease is not revived.
update dibs.job j set
       lease_until = :now + cast(:lease as bigint) * interval '1 microsecond',
       started_at = coalesce(j.started_at, :now - b.age * interval '1 microsecond')
  from unnest((select cast(cast(:ids as text) as uuid[])), (select cast(cast(:tokens as text) as bigint[])),
              (select cast(cast(:ages as text) as bigint[]))) as b(id, token, age)
 where j.id = b.id and j.token = b.token and j.lease_until > :now
returning cast(j.id as text)

-- name: settled_by plan: fresh
-- Of the jobs that a settle did not find: those that this very claim has settled before (a repeated answer).
-- LATERAL with a LIMIT is one plan: an index looked up for each, also while the history was never analysed.
select cast(e.id as text)
  from unnest((select cast(cast(:ids as text) as uuid[])), (select cast(cast(:tokens as text) as bigint[])),
              (select cast(cast(:outcomes as text) as text[]))) as e(id, token, outcome),
       lateral (select from dibs.history h
                 where h.id = e.id and h.token = e.token and h.outcome = e.outcome
                 order by h.finished_at limit 1) settled

-- name: returned_by plan: fresh
-- Of the jobs that a settle did not find: those that this very claim has put back before. A failure left its
-- error; what was put back without one is still there, free, and under the same token: whoever takes a job away
-- from its holder raises the token.
select cast(b.id as text)
  from unnest((select cast(cast(:ids as text) as uuid[])), (select cast(cast(:tokens as text) as bigint[])),
              (select cast(cast(:kinds as text) as text[]))) as b(id, token, kind),
       lateral (select (select e.kind from dibs.attempt_error e where e.job_id = b.id and e.token = b.token) as kind,
                       (select true from dibs.job j
                         where j.id = b.id and j.token = b.token and j.lease_until is null) as free) found
 where found.kind = b.kind or (b.kind is null and found.kind is null and found.free)

-- name: add_errors
-- What went wrong in attempts that did not succeed.
insert into dibs.attempt_error (job_id, token, attempt, kind, worker_id, at, error)
select e.job_id, e.token, e.attempt, e.kind, e.worker_id, :now, cast(e.error as jsonb)
  from unnest(cast(cast(:ids as text) as uuid[]), cast(cast(:tokens as text) as bigint[]),
              cast(cast(:attempts as text) as integer[]), cast(cast(:kinds as text) as text[]),
              cast(cast(:workers as text) as text[]), cast(cast(:problems as text) as text[]))
       as e(job_id, token, attempt, kind, worker_id, error)
on conflict (job_id, token) do nothing


-- REAP

-- name: walk plan: fresh
-- Walk a bounded stretch of a lane: where it ended, how much it read, how much of that was ever claimed, and
-- which leases have expired.
with walked as materialized (
    select available_at, id, lease_until, token from dibs.job
     where queue = :queue and priority = :priority and available_at <= :now
       and (available_at, id) > (dibs.instant(cast(:from_at as bigint)), cast(cast(:from_id as text) as uuid))
     order by available_at, id limit :limit
)
select dibs.micros(available_at), cast(id as text), (select count(*) from walked),
       (select count(*) from walked where token > 0),
       (select string_agg(cast(id as text), ',') from walked where lease_until < :now)
  from walked order by available_at desc, id desc limit 1

-- name: lock_expired plan: fresh
-- Lock the expired ones among these; whoever is being settled or reaped by somebody else is skipped.
select cast(id as text) as found, token, attempts, crashes, worker_id, max_attempts,
       cast((select settings from dibs.queue where name = job.queue) as text), cast(options as text)
  from dibs.job
 where id = any (array(select unnest(cast(cast(:ids as text) as uuid[])))) and lease_until < :now
 order by id
   for update skip locked


-- JOBS, as operators act on them

-- name: get_jobs
-- Whole jobs by id, live or finished. What is due is said by :now, which the view cannot know.
select cast(id as text), queue, task, priority,
       case when status not in ('ready', 'retrying', 'scheduled') then status
            when available_at <= :now then 'ready' when attempts > 0 then 'retrying' else 'scheduled' end,
       cast(payload as text), cast(result as text), unique_key, attempts,
       max_attempts, crashes, worker_id, token, cast(options as text), last_error, dibs.micros(created_at),
       dibs.micros(available_at), dibs.micros(lease_until), dibs.micros(claimed_at), dibs.micros(started_at),
       dibs.micros(finished_at)
  from dibs.jobs
 where id = any (cast(cast(:ids as text) as uuid[]))

-- name: get_errors
-- The attempts of a job that did not succeed, oldest first.
select attempt, kind, cast(error as text), worker_id, dibs.micros(at)
  from dibs.attempt_error where job_id = cast(cast(:id as text) as uuid) order by token

-- name: live_outcome
-- How a job stands, for somebody who waits for its end.
select case when status not in ('ready', 'retrying', 'scheduled') then status
            when available_at <= :now then 'ready' when attempts > 0 then 'retrying' else 'scheduled' end,
       cast(result as text), last_error
  from dibs.jobs where id = cast(cast(:id as text) as uuid)

-- name: list_live plan: fresh
-- Ids of live jobs, newest first, after a cursor. The text has a name of its own: ORDER BY id would sort it.
select cast(id as text) as found from dibs.job
 where (cast(:queue as text) is null or queue = :queue) and (cast(:task as text) is null or task = :task)
   and (cast(:statuses as text) is null or (
       case when lease_until is not null and started_at is null then 'claimed'
            when lease_until is not null then 'running'
            when available_at is null then 'blocked'
            when available_at <= :now then 'ready'
            when attempts > 0 then 'retrying'
            else 'scheduled' end)
       = any (cast(cast(:statuses as text) as text[])))
   and (cast(:before as text) is null or id < cast(cast(:before as text) as uuid))
 order by id desc limit :limit

-- name: list_finished plan: fresh
-- Ids of finished jobs, newest first, after a cursor.
select cast(id as text) as found from dibs.history
 where (cast(:queue as text) is null or queue = :queue) and (cast(:task as text) is null or task = :task)
   and (cast(:statuses as text) is null or outcome = any (cast(cast(:statuses as text) as text[])))
   and (cast(:before as text) is null or id < cast(cast(:before as text) as uuid))
 order by id desc limit :limit

-- name: end_waiting plan: fresh
-- Cancel or discard jobs nobody holds.
with gone as (
    delete from dibs.job
     where id = any (array(select id from dibs.job
                            where id = any (cast(cast(:ids as text) as uuid[])) and lease_until is null
                            order by id for update skip locked))
    returning *
)
insert into dibs.history (id, finished_at, available_at, claimed_at, started_at, first_started_at, created_at, token,
                          priority, attempts, max_attempts, crashes, queue, task, outcome, worker_id, unique_key,
                          payload, options)
select id, :now, available_at, claimed_at, started_at, first_started_at, created_at, token,
       priority, attempts, max_attempts, crashes, queue, task, :outcome, worker_id, unique_key, payload, options
  from gone
returning cast(id as text)

-- name: requeue plan: fresh
-- Finished jobs become live again, with all their attempts before them. A key that a live job has, or an older
-- one of this batch, is not taken from it: such a job stays where it is. If a key is taken this very moment
-- the statement fails as a whole and is played again: "on conflict do nothing" would lose the job.
with chosen as materialized (
    select id, finished_at from dibs.history h
     where id = any (cast(cast(:ids as text) as uuid[]))
       and (unique_key is null or not exists (select from dibs.job j
                                               where j.queue = h.queue and j.unique_key = h.unique_key)
           and not exists (select from dibs.history o
                            where o.id = any (cast(cast(:ids as text) as uuid[])) and o.id < h.id
                              and o.queue = h.queue and o.unique_key = h.unique_key))
     order by id for update skip locked
), gone as (
    delete from dibs.history h using chosen c where h.id = c.id and h.finished_at = c.finished_at returning h.*
)
insert into dibs.job (id, queue, task, priority, payload, options, unique_key, max_attempts, token, created_at,
                      first_started_at, available_at)
select id, queue, task, priority, payload, options, unique_key, max_attempts, token, created_at,
       first_started_at, :now
  from gone
returning cast(id as text), queue, priority

-- name: run_now plan: fresh
-- Waiting jobs become due at once.
update dibs.job set available_at = :now
 where id = any (cast(cast(:ids as text) as uuid[])) and lease_until is null and available_at > :now
returning cast(id as text)

-- name: reschedule plan: fresh
-- Waiting jobs become due at another time.
update dibs.job set available_at = greatest(:now, dibs.instant(cast(:run_at as bigint)))
 where id = any (cast(cast(:ids as text) as uuid[])) and lease_until is null
returning cast(id as text)

-- name: count_old
-- How many finished jobs of one queue and certain outcomes ended before a span ago.
select count(*) from dibs.history
 where queue = :queue and finished_at < :now - cast(:keep as bigint) * interval '1 microsecond'
   and outcome = any (cast(cast(:outcomes as text) as text[]))

-- name: prune plan: fresh
-- Delete finished jobs of one queue and outcome that ended before a span ago, a bounded number at a time.
with old as materialized (
    select id, finished_at from dibs.history
     where queue = :queue and finished_at < :now - cast(:keep as bigint) * interval '1 microsecond'
       and outcome = any (cast(cast(:outcomes as text) as text[]))
     limit :limit for update skip locked
), gone as (
    delete from dibs.history h using old where h.id = old.id and h.finished_at = old.finished_at returning h.id
), errors as (
    delete from dibs.attempt_error a using gone where a.job_id = gone.id
)
select cast(id as text) from gone


-- QUEUES

-- name: queues
-- Every queue that is configured or has ever held jobs, with its settings.
select every.name, dibs.micros(q.paused_at), q.pause_reason, cast(q.settings as text)
  from (select queue as name from dibs.lane union select name from dibs.queue) every
  left join dibs.queue q on q.name = every.name
 order by every.name

-- name: pause
-- Stop claims from a queue.
insert into dibs.queue (name, paused_at, pause_reason) values (:queue, :now, cast(:reason as text))
on conflict (name) do update set paused_at = coalesce(dibs.queue.paused_at, excluded.paused_at),
                                 pause_reason = excluded.pause_reason, updated_at = :now

-- name: resume
-- Allow claims from a queue again.
update dibs.queue set paused_at = null, pause_reason = null, updated_at = :now where name = :queue

-- name: configure
-- Merge settings into those of a queue; null removes one.
insert into dibs.queue (name, settings) values (:queue, jsonb_strip_nulls(cast(cast(:settings as text) as jsonb)))
on conflict (name) do update
   set settings = jsonb_strip_nulls(dibs.queue.settings || cast(cast(:settings as text) as jsonb)), updated_at = :now

-- name: settings
-- The settings of every configured queue.
select name, paused_at is not null, cast(settings as text) from dibs.queue

-- name: count_live
-- Live jobs by queue, priority and state, at most :cap rows read of each lane, and the age of the oldest due one.
-- The lanes are found as in discover_lanes, and not written down: who only looks may have no right to write.
with recursive hop(queue, priority) as (
    (select queue, priority from dibs.job order by queue, priority limit 1)
    union all
    select n.queue, n.priority
      from hop, lateral (select j.queue, j.priority from dibs.job j
                          where (j.queue, j.priority) > (hop.queue, hop.priority)
                          order by j.queue, j.priority limit 1) n
)
select lane.queue, lane.priority, counted.status, counted.number, counted.oldest
  from hop lane, lateral (
       select case when lease_until is not null and started_at is null then 'claimed'
                   when lease_until is not null then 'running'
                   when available_at is null then 'blocked'
                   when available_at <= :now then 'ready'
                   when attempts > 0 then 'retrying'
                   else 'scheduled' end as status,
              count(*) as number,
              dibs.micros(:now) - dibs.micros(min(available_at)) as oldest
         from (select lease_until, started_at, available_at, attempts from dibs.job j
                where j.queue = lane.queue and j.priority = lane.priority limit :cap) head
        group by 1) counted
 order by 1, 2 desc, 3

-- name: count_finished
-- Finished jobs by queue and outcome that ended within a span, at most :cap rows read.
select queue, outcome, count(*)
  from (select queue, outcome from dibs.history
         where finished_at >= :now - cast(:span as bigint) * interval '1 microsecond' limit :cap) recent
 group by 1, 2 order by 1, 2

-- name: count_dead plan: fresh
-- Dead jobs by queue, whenever they ended; the row without a queue tells how many failed attempts were read.
-- No index knows the outcome; but whatever is dead has failed, and of all that has ended little has: so at most :cap
-- failures are walked, those of the newest jobs first, and each job is looked up by its id.
with failed as materialized (
    select job_id from dibs.attempt_error order by job_id desc limit :cap
)
select null, count(*) from failed
union all
select dead.queue, count(*)
  from (select distinct job_id from failed) once, lateral (
       select h.queue from dibs.history h
        where h.id = once.job_id and h.outcome = 'dead' order by h.finished_at limit 1) dead
 group by 1


-- WORKERS AND CHORES

-- name: worker_beat
-- A worker is alive: its row is made or refreshed.
insert into dibs.worker (id, host, pid, version, queues, concurrency, running, state, started_at, beat_at)
values (:id, :host, :pid, :version, cast(cast(:queues as text) as jsonb), :concurrency, :running, :state, :now, :now)
on conflict (id) do update set beat_at = :now, running = excluded.running, state = excluded.state

-- name: worker_sleep
-- A worker goes to sleep (or wakes: zero): from now until then producers ring.
update dibs.worker set sleeping_until = :now + cast(:span as bigint) * interval '1 microsecond' where id = :id

-- name: worker_gone
-- A worker has stopped.
delete from dibs.worker where id = :id

-- name: forget_workers
-- Rows of workers that have not been heard of for long.
delete from dibs.worker where beat_at < :now - cast(:span as bigint) * interval '1 microsecond'

-- name: workers
-- The workers, oldest first, with the time since each was last heard of.
select id, host, pid, version, cast(queues as text), concurrency, running, state, dibs.micros(started_at),
       dibs.micros(:now) - dibs.micros(beat_at)
  from dibs.worker order by started_at, id

-- name: add_chore
-- Make the row of a duty.
insert into dibs.chore (name, due_at) values (:name, :now) on conflict (name) do nothing

-- name: take_chore
-- Take a duty if it is due, by moving its next time forward: one of many workers succeeds. It stays with whoever
-- had it, who remembers how far it came, unless that one is late by a whole turn.
update dibs.chore set due_at = :now + cast(:every as bigint) * interval '1 microsecond', taken_by = :worker
 where name = :name and due_at <= :now
   and (taken_by = :worker or taken_by is null or due_at <= :now - cast(:every as bigint) * interval '1 microsecond')
returning name

-- name: clock
-- The database's time.
select dibs.micros(:now)
