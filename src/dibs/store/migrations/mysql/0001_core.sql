-- The core: live jobs, their history, the errors of their attempts, queues, lanes, workers, chores.
--
-- A statement ends with a semicolon at the end of a line; each is written down when it is done, for here no
-- transaction holds them together. What stands in a comment that begins with !80013 is for MySQL 8.0.13 and later:
-- older ones pass over it, and a plain INSERT must then say the id and the times itself. MariaDB is given it without
-- the comment around it.
-- Names are compared byte by byte (ascii_bin); unique keys are bytes, since utf8mb4_bin takes 'a' and 'a ' for one.
-- Where a server is not strict it cuts what is too long: each column is a little longer than its CHECK allows.
-- Instants are in UTC, to the microsecond, whatever the time zone of a session.

-- Live work only.
create table dibs_job (
    id               char(36) character set ascii collate ascii_bin not null /*!80013 default (lower(concat(
        insert(lpad(hex(timestampdiff(microsecond, timestamp'1970-01-01 00:00:00', utc_timestamp(6)) div 1000), 12, '0'),
               9, 0, '-'),
        '-7', lpad(hex(floor(rand() * 4096)), 3, '0'), '-a', lpad(hex(floor(rand() * 4096)), 3, '0'),
        '-', lpad(hex(floor(rand() * 65536)), 4, '0'), substr(uuid(), 1, 8)))) */ primary key,
    available_at     datetime(6) /*!80013 default (utc_timestamp(6)) */,
    lease_until      datetime(6),
    claimed_at       datetime(6),
    started_at       datetime(6),
    first_started_at datetime(6),
    created_at       datetime(6) not null /*!80013 default (utc_timestamp(6)) */,
    token            bigint      not null default 0,
    priority         integer     not null default 100,
    attempts         integer     not null default 0,
    max_attempts     integer,
    crashes          integer     not null default 0,
    queue            varchar(64) character set ascii collate ascii_bin not null default 'default',
    task             varchar(64) character set ascii collate ascii_bin not null,
    worker_id        varchar(191),
    unique_key       varbinary(768),
    payload          longtext    not null /*!80013 default ('{}') */,
    options          longtext,
    -- The claim's ORDER BY is exactly this index after equality on its first two columns.
    index dibs_job_lane (queue, priority, available_at, id),
    unique index dibs_job_unique (queue, unique_key),
    constraint dibs_job_moment check (available_at >= timestamp'1970-01-01 00:00:00'
                                      and available_at < timestamp'9999-01-01 00:00:00'),
    constraint dibs_job_queue check (length(queue) between 1 and 63 and queue not regexp '[^A-Za-z0-9_.-]'),
    constraint dibs_job_task check (length(task) between 1 and 63 and task not regexp '[^A-Za-z0-9_.-]'),
    constraint dibs_job_max_attempts check (max_attempts between 1 and 1000),
    constraint dibs_job_unique_key check (char_length(convert(unique_key using utf8mb4)) between 1 and 191),
    -- MariaDB's json_valid says no to all that is nested 32 levels deep or more, which takes as many brackets.
    constraint dibs_job_payload check (json_valid(payload) or (left(payload, 1) in ('[', '{')
        and length(payload) - length(replace(replace(payload, '[', ''), '{', '')) > 31)),
    constraint dibs_job_options check (json_valid(options))
) engine = innodb, character set utf8mb4, collate utf8mb4_bin;

-- Finished work, moved here by the transaction that finishes it. Partitioned by the time of the end from the start,
-- with one partition that takes everything: see docs/decisions/0008-history-partitioned-from-the-start.md.
create table dibs_history (
    id               char(36) character set ascii collate ascii_bin not null,
    finished_at      datetime(6) not null,
    available_at     datetime(6),
    claimed_at       datetime(6),
    started_at       datetime(6),
    first_started_at datetime(6),
    created_at       datetime(6) not null,
    token            bigint      not null,
    priority         integer     not null,
    attempts         integer     not null,
    max_attempts     integer,
    crashes          integer     not null,
    queue            varchar(64) character set ascii collate ascii_bin not null,
    task             varchar(64) character set ascii collate ascii_bin not null,
    outcome          varchar(16) character set ascii collate ascii_bin not null,
    worker_id        varchar(191),
    unique_key       varbinary(768),
    payload          longtext    not null,
    result           longtext,
    options          longtext,
    primary key (id, finished_at),
    -- For retention, which goes by queue, and for counts of what has ended lately.
    index dibs_history_finished (queue, finished_at),
    index dibs_history_recent (finished_at, queue, outcome),
    constraint dibs_history_outcome check (outcome in ('completed', 'dead', 'cancelled', 'discarded'))
) engine = innodb, character set utf8mb4, collate utf8mb4_bin
partition by range columns (finished_at) (partition dibs_history_rest values less than (maxvalue));

-- One row for each attempt that did not succeed. The token tells two runs of one attempt number apart.
create table dibs_attempt_error (
    job_id    char(36) character set ascii collate ascii_bin not null,
    token     bigint      not null,
    attempt   integer     not null,
    kind      varchar(32) character set ascii collate ascii_bin not null,
    worker_id varchar(191),
    at        datetime(6) not null,
    error     longtext    not null,
    primary key (job_id, token)
) engine = innodb, character set utf8mb4, collate utf8mb4_bin;

-- Live configuration of a queue. A queue without a row has the defaults.
create table dibs_queue (
    name         varchar(64) character set ascii collate ascii_bin not null primary key,
    paused_at    datetime(6),
    pause_reason longtext,
    settings     longtext    not null /*!80013 default ('{}') */,
    updated_at   datetime(6) not null /*!80013 default (utc_timestamp(6)) */,
    constraint dibs_queue_name check (length(name) between 1 and 63 and name not regexp '[^A-Za-z0-9_.-]')
) engine = innodb, character set utf8mb4, collate utf8mb4_bin;

-- The (queue, priority) pairs that have been seen, so that a claim need not search for them.
create table dibs_lane (
    queue    varchar(64) character set ascii collate ascii_bin not null,
    priority integer     not null,
    primary key (queue, priority)
) engine = innodb, character set utf8mb4, collate utf8mb4_bin;

-- Worker processes.
create table dibs_worker (
    id             varchar(191) not null primary key,
    host           varchar(255) not null,
    pid            integer      not null,
    version        varchar(64)  not null,
    queues         longtext,
    concurrency    integer      not null,
    running        integer      not null default 0,
    state          varchar(32)  not null default 'running',
    started_at     datetime(6)  not null,
    beat_at        datetime(6)  not null,
    sleeping_until datetime(6)
) engine = innodb, character set utf8mb4, collate utf8mb4_bin;

-- One row for each duty that some worker must do now and then; taken by moving due_at forward.
create table dibs_chore (
    name     varchar(64) character set ascii collate ascii_bin not null primary key,
    due_at   datetime(6) not null,
    taken_by varchar(191)
) engine = innodb, character set utf8mb4, collate utf8mb4_bin;

create sql security invoker view dibs_jobs as
with every_job as (
    select j.id, j.queue, j.task, j.priority,
           case when j.lease_until is not null and j.started_at is null then 'claimed'
                when j.lease_until is not null then 'running'
                when j.available_at is null then 'blocked'
                when j.available_at <= utc_timestamp(6) then 'ready'
                when j.attempts > 0 then 'retrying'
                else 'scheduled' end as status,
           j.payload, null as result, j.unique_key, j.attempts, j.max_attempts, j.crashes, j.worker_id, j.token,
           j.options, j.created_at, j.available_at, j.lease_until, j.claimed_at, j.started_at, j.first_started_at,
           null as finished_at
      from dibs_job j
    union all
    select h.id, h.queue, h.task, h.priority, h.outcome, h.payload, h.result, h.unique_key, h.attempts,
           h.max_attempts, h.crashes, h.worker_id, h.token, h.options, h.created_at, h.available_at, null,
           h.claimed_at, h.started_at, h.first_started_at, h.finished_at
      from dibs_history h
)
select e.id, e.queue, e.task, e.task as job_type, e.task as topic, e.priority, e.status,
       e.payload, e.payload as data, e.result, convert(e.unique_key using utf8mb4) as unique_key,
       case when e.status = 'completed' then 100 else 0 end as progress,
       null as current_stage, 0 as events_count,
       e.attempts,
       coalesce(e.max_attempts, (select cast(json_unquote(json_extract(q.settings, '$.max_attempts')) as signed)
                                   from dibs_queue q where q.name = e.queue), 5) as max_attempts,
       (select count(*) from dibs_attempt_error a where a.job_id = e.id) as retries,
       e.crashes,
       (select json_unquote(json_extract(a.error, '$.message')) from dibs_attempt_error a
         where a.job_id = e.id order by a.token desc limit 1) as last_error,
       e.worker_id, e.token, e.options, e.created_at, e.available_at, e.available_at as run_at, e.lease_until,
       e.claimed_at, e.started_at, e.first_started_at, e.finished_at, e.finished_at as completed_at
  from every_job e;
