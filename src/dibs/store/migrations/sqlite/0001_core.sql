-- The core: live jobs, their history, the errors of their attempts, queues, lanes, workers, chores.
-- Instants are whole microseconds since 1970 in UTC; the views show them as text too.

create table dibs_job (
    id               text    not null primary key default (
        lower(printf('%08x-%04x-7%s-a%s-%s', cast((julianday('now') - 2440587.5) * 86400000 as integer) >> 16,
                     cast((julianday('now') - 2440587.5) * 86400000 as integer) & 65535,
                     substr(hex(randomblob(2)), 2), substr(hex(randomblob(2)), 2), hex(randomblob(6))))),
    queue            text    not null default 'default',
    task             text    not null,
    priority         integer not null default 100,
    available_at     integer          default (cast((julianday('now') - 2440587.5) * 86400000000 as integer)),
    lease_until      integer,
    claimed_at       integer,
    started_at       integer,
    first_started_at integer,
    created_at       integer not null default (cast((julianday('now') - 2440587.5) * 86400000000 as integer)),
    token            integer not null default 0,
    attempts         integer not null default 0,
    max_attempts     integer check (max_attempts between 1 and 1000),
    crashes          integer not null default 0,
    worker_id        text,
    unique_key       text check (length(unique_key) between 1 and 191),
    payload          text    not null default '{}' check (json_valid(payload)),
    options          text check (options is null or json_valid(options)),
    check (available_at between 0 and 253370764800000000),  -- from 1970 to 9999
    check (length(queue) between 1 and 63 and queue not glob '*[^A-Za-z0-9_.-]*'),
    check (length(task) between 1 and 63 and task not glob '*[^A-Za-z0-9_.-]*')
) without rowid;

create index dibs_job_lane on dibs_job (queue, priority, available_at, id);
create unique index dibs_job_unique on dibs_job (queue, unique_key) where unique_key is not null;

create table dibs_history (
    id               text    not null primary key,
    queue            text    not null,
    task             text    not null,
    priority         integer not null,
    outcome          text    not null check (outcome in ('completed', 'dead', 'cancelled', 'discarded')),
    available_at     integer,
    claimed_at       integer,
    started_at       integer,
    first_started_at integer,
    created_at       integer not null,
    finished_at      integer not null,
    token            integer not null,
    attempts         integer not null,
    max_attempts     integer,
    crashes          integer not null,
    worker_id        text,
    unique_key       text,
    payload          text    not null,
    result           text,
    options          text
) without rowid;

create index dibs_history_finished on dibs_history (queue, finished_at);

create table dibs_attempt_error (
    job_id    text    not null,
    token     integer not null,
    attempt   integer not null,
    kind      text    not null,
    worker_id text,
    at        integer not null,
    error     text    not null,
    primary key (job_id, token)
) without rowid;

create table dibs_queue (
    name         text    not null primary key check (length(name) between 1 and 63 and name not glob '*[^A-Za-z0-9_.-]*'),
    paused_at    integer,
    pause_reason text,
    settings     text    not null default '{}',
    updated_at   integer not null default (cast((julianday('now') - 2440587.5) * 86400000000 as integer))
) without rowid;

create table dibs_lane (
    queue    text    not null,
    priority integer not null,
    primary key (queue, priority)
) without rowid;

create table dibs_worker (
    id             text    not null primary key,
    host           text    not null,
    pid            integer not null,
    version        text    not null,
    queues         text,
    concurrency    integer not null,
    running        integer not null default 0,
    state          text    not null default 'running',
    started_at     integer not null,
    beat_at        integer not null,
    sleeping_until integer
) without rowid;

create table dibs_chore (
    name     text    not null primary key,
    due_at   integer not null,
    taken_by text
) without rowid;

create view dibs_jobs as
with every_job as (
    select id, queue, task, priority,
           case when lease_until is not null and started_at is null then 'claimed'
                when lease_until is not null then 'running'
                when available_at is null then 'blocked'
                when available_at / 1000 <= cast(round((julianday('now') - 2440587.5) * 86400000) as integer) then 'ready'
                when attempts > 0 then 'retrying'
                else 'scheduled' end as status,
           payload, null as result, unique_key, attempts, max_attempts, crashes, worker_id, token, options, created_at,
           available_at, lease_until, claimed_at, started_at, first_started_at, null as finished_at
      from dibs_job
    union all
    select id, queue, task, priority, outcome, payload, result, unique_key, attempts, max_attempts, crashes, worker_id,
           token, options, created_at, available_at, null, claimed_at, started_at, first_started_at, finished_at
      from dibs_history
)
select e.id, e.queue, e.task, e.task as job_type, e.task as topic, e.priority, e.status,
       e.payload, e.payload as data, e.result, e.unique_key,
       case when e.status = 'completed' then 100 else 0 end as progress,
       null as current_stage, 0 as events_count,
       e.attempts,
       coalesce(e.max_attempts, (select json_extract(q.settings, '$.max_attempts') from dibs_queue q
                                  where q.name = e.queue), 5) as max_attempts,
       (select count(*) from dibs_attempt_error a where a.job_id = e.id) as retries,
       e.crashes,
       (select json_extract(a.error, '$.message') from dibs_attempt_error a
         where a.job_id = e.id order by a.token desc limit 1) as last_error,
       e.worker_id, e.token, e.options,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.created_at / 1e6, 'unixepoch') as created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.available_at / 1e6, 'unixepoch') as available_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.available_at / 1e6, 'unixepoch') as run_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.lease_until / 1e6, 'unixepoch') as lease_until,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.claimed_at / 1e6, 'unixepoch') as claimed_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.started_at / 1e6, 'unixepoch') as started_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.first_started_at / 1e6, 'unixepoch') as first_started_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.finished_at / 1e6, 'unixepoch') as finished_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', e.finished_at / 1e6, 'unixepoch') as completed_at
  from every_job e;
