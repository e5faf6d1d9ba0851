-- The core: live jobs, their history, the errors of their attempts, queues, lanes, workers, chores.

create schema if not exists dibs;

-- Instants cross the border between SQL and Python as microseconds since 1970, so that every driver agrees on
-- them. Both functions are inlined by the planner. They are STABLE because the operators inside are.
create or replace function dibs.instant(micros bigint) returns timestamptz
language sql stable parallel safe
as $$ select timestamptz 'epoch' + micros * interval '1 microsecond' $$;

create or replace function dibs.micros(moment timestamptz) returns bigint
language sql stable parallel safe
as $$ select (date_part('epoch', moment) * 1000000)::bigint $$;

-- The id of a job that was inserted by plain SQL. dibs itself makes ids in the client.
create or replace function dibs.new_id() returns uuid
language sql volatile parallel safe
as $$
    select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
               placing substring(int8send((date_part('epoch', clock_timestamp()) * 1000)::bigint) from 3)
               from 1 for 6), 52, 1), 53, 1), 'hex')::uuid
$$;

-- A domain, because a table's CHECK would be evaluated again by every claim. Length and letters are two checks,
-- because the one expression {1,63} takes fifteen times as long.
create domain dibs.name as text check (octet_length(value) <= 63 and value ~ '^[A-Za-z0-9_.-]+$');

-- Also domains, because a CHECK of the table would be read anew, from its stored text, by every single insert.
create domain dibs.tries as integer check (value between 1 and 1000);
create domain dibs.key as text check (length(value) between 1 and 191);

-- When a job is due: an instant that every driver and every language can hold.
create domain dibs.moment as timestamptz
    check (value >= '1970-01-01 00:00:00+00' and value < '9999-01-01 00:00:00+00');

-- Live work only. A claim and a beat change no indexed column and find room on the same page (fillfactor),
-- so they are HOT updates: no index entry is written for them. See docs/decisions/0002-claim-by-lane.md.
create table dibs.job (
    id               uuid        not null default dibs.new_id() primary key,
    available_at     dibs.moment          default clock_timestamp(),
    lease_until      timestamptz,
    claimed_at       timestamptz,
    started_at       timestamptz,
    first_started_at timestamptz,
    created_at       timestamptz not null default clock_timestamp(),
    token            bigint      not null default 0,
    priority         integer     not null default 100,
    attempts         integer     not null default 0,
    max_attempts     dibs.tries,
    crashes          integer     not null default 0,
    queue            dibs.name   not null default 'default',
    task             dibs.name   not null,
    worker_id        text,
    unique_key       dibs.key,
    payload          jsonb       not null default '{}',
    options          jsonb
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0
);

-- The claim's ORDER BY is exactly this index after equality on its first two columns.
create index job_lane on dibs.job (queue, priority, available_at, id);
create unique index job_unique on dibs.job (queue, unique_key) where unique_key is not null;

-- Finished work, moved here by the transaction that finishes it.
create table dibs.history (
    id               uuid        not null,
    finished_at      timestamptz not null,
    available_at     timestamptz,
    claimed_at       timestamptz,
    started_at       timestamptz,
    first_started_at timestamptz,
    created_at       timestamptz not null,
    token            bigint      not null,
    priority         integer     not null,
    attempts         integer     not null,
    max_attempts     integer,
    crashes          integer     not null,
    queue            text        not null,
    task             text        not null,
    outcome          text        not null check (outcome in ('completed', 'dead', 'cancelled', 'discarded')),
    worker_id        text,
    unique_key       text,
    payload          jsonb       not null,
    result           jsonb,
    options          jsonb,
    primary key (id, finished_at)
) partition by range (finished_at);

create table dibs.history_rest partition of dibs.history default;
-- Rows come in the order they finish, so a block range index finds old and recent ones at a hundredth of the cost.
create index history_finished on dibs.history using brin (queue, finished_at)
    with (pages_per_range = 32, autosummarize = on);

-- One row for each attempt that did not succeed. The token tells two runs of one attempt number apart.
create table dibs.attempt_error (
    job_id    uuid        not null,
    token     bigint      not null,
    attempt   integer     not null,
    kind      text        not null,
    worker_id text,
    at        timestamptz not null,
    error     jsonb       not null,
    primary key (job_id, token)
);

-- Live configuration of a queue. A queue without a row has the defaults.
create table dibs.queue (
    name         dibs.name   not null primary key,
    paused_at    timestamptz,
    pause_reason text,
    settings     jsonb       not null default '{}',
    updated_at   timestamptz not null default clock_timestamp()
);

-- The (queue, priority) pairs that have been seen, so that a claim need not search for them.
create table dibs.lane (
    queue    text    not null,
    priority integer not null,
    primary key (queue, priority)
);

-- Worker processes. sleeping_until is the bell: producers send a wake-up only while somebody sleeps.
create table dibs.worker (
    id             text        not null primary key,
    host           text        not null,
    pid            integer     not null,
    version        text        not null,
    queues         jsonb,
    concurrency    integer     not null,
    running        integer     not null default 0,
    state          text        not null default 'running',
    started_at     timestamptz not null,
    beat_at        timestamptz not null,
    sleeping_until timestamptz
) with (fillfactor = 50);

-- One row for each duty that some worker must do now and then; taken by moving due_at forward.
create table dibs.chore (
    name     text        not null primary key,
    due_at   timestamptz not null,
    taken_by text
);

create view dibs.jobs as
with every_job as (
    select j.id, j.queue, j.task, j.priority,
           case when j.lease_until is not null and j.started_at is null then 'claimed'
                when j.lease_until is not null then 'running'
                when j.available_at is null then 'blocked'
                when j.available_at <= statement_timestamp() then 'ready'
                when j.attempts > 0 then 'retrying'
                else 'scheduled' end as status,
           j.payload, null::jsonb as result, j.unique_key, j.attempts, j.max_attempts, j.crashes,
           j.worker_id, j.token, j.options, j.created_at, j.available_at, j.lease_until, j.claimed_at,
           j.started_at, j.first_started_at, null::timestamptz as finished_at
      from dibs.job j
    union all
    select h.id, h.queue, h.task, h.priority, h.outcome,
           h.payload, h.result, h.unique_key, h.attempts, h.max_attempts, h.crashes,
           h.worker_id, h.token, h.options, h.created_at, h.available_at, null, h.claimed_at,
           h.started_at, h.first_started_at, h.finished_at
      from dibs.history h
)
select e.id, e.queue, e.task, e.task as job_type, e.task as topic, e.priority, e.status,
       e.payload, e.payload as data, e.result, e.unique_key,
       case when e.status = 'completed' then 100 else 0 end as progress,
       null::text as current_stage, 0 as events_count,
       e.attempts, coalesce(e.max_attempts, (q.settings ->> 'max_attempts')::integer, 5) as max_attempts,
       (select count(*) from dibs.attempt_error a where a.job_id = e.id) as retries,
       e.crashes,
       (select a.error ->> 'message' from dibs.attempt_error a
         where a.job_id = e.id order by a.token desc limit 1) as last_error,
       e.worker_id, e.token, e.options, e.created_at, e.available_at, e.available_at as run_at, e.lease_until,
       e.claimed_at, e.started_at, e.first_started_at, e.finished_at, e.finished_at as completed_at
  from every_job e left join dibs.queue q on q.name = e.queue;
