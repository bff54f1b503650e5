-- The tables of the frontier, `dispatcher.db`. A query uses a partial index only if it names the index's
-- condition literally.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE epochs (                         -- one for each start of a dispatcher on this file
    id    INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL UNIQUE             -- later ones are greater, on copies of this file as well
) STRICT;

CREATE TABLE supervisors (                    -- those that may hold leases
    name               TEXT PRIMARY KEY,
    home               INTEGER NOT NULL,
    longest_request_ms INTEGER NOT NULL,
    silent_ms          INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE crawls (
    id         INTEGER PRIMARY KEY,
    app_id     TEXT NOT NULL,
    crawl_id   TEXT NOT NULL,
    spec       TEXT NOT NULL,                 -- JSON
    dataset    TEXT,                          -- of its records, once it is known
    ended      TEXT,                          -- the outcome of what is still queued
    fed_lines  INTEGER NOT NULL DEFAULT 0,
    seeds_ended INTEGER NOT NULL DEFAULT 0,   -- 1: no further seeds will come
    paused     INTEGER NOT NULL DEFAULT 0,    -- 1: what is queued stays queued
    expires_at_ms INTEGER,
    changed_at_ms INTEGER NOT NULL DEFAULT 0,
    waiting    TEXT NOT NULL DEFAULT '{}',    -- JSON: how many are queued, by priority
    discovered INTEGER NOT NULL DEFAULT 0,    -- = queued + leased + done + sum(skipped.n)
    queued     INTEGER NOT NULL DEFAULT 0,
    leased     INTEGER NOT NULL DEFAULT 0,
    done       INTEGER NOT NULL DEFAULT 0,
    pages      INTEGER NOT NULL DEFAULT 0,
    fields     INTEGER NOT NULL DEFAULT 0,
    links      INTEGER NOT NULL DEFAULT 0,
    bytes      INTEGER NOT NULL DEFAULT 0,
    sites      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (app_id, crawl_id)
) STRICT;
CREATE INDEX crawls_expiring ON crawls (expires_at_ms)
    WHERE expires_at_ms IS NOT NULL AND ended IS NULL;
CREATE INDEX crawls_unfinished ON crawls (id) WHERE queued + leased > 0;
CREATE INDEX crawls_pending ON crawls (app_id, crawl_id) WHERE queued + leased > 0;

CREATE TABLE outcomes (
    crawl   INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (crawl, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE skipped (
    crawl  INTEGER NOT NULL,
    reason TEXT NOT NULL,
    n      INTEGER NOT NULL,
    PRIMARY KEY (crawl, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE unmatched_pages (                -- a further counter of crawls
    crawl INTEGER PRIMARY KEY,
    n     INTEGER NOT NULL
) STRICT;

CREATE TABLE listed_rows (                    -- further counters of crawls: rows of pages
    crawl  INTEGER PRIMARY KEY,
    n      INTEGER NOT NULL,
    stored INTEGER NOT NULL                   -- those whose values are in the store
) STRICT;

CREATE TABLE sites (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL UNIQUE,
    queued        INTEGER NOT NULL DEFAULT 0,
    top_priority  INTEGER NOT NULL DEFAULT 0, -- of what can be handed out; 0: nothing can
    in_window     INTEGER NOT NULL DEFAULT 0, -- 1: the running dispatcher has it in memory
                                              -- 2: parked, until something can be handed out
    due_at_ms     INTEGER NOT NULL DEFAULT 0,
    delay_ms      INTEGER,
    last_start_ms INTEGER,
    owner         TEXT,
    rule_delay_ms INTEGER,                    -- set by hand, as are the next two
    block_until_ms INTEGER NOT NULL DEFAULT 0,
    pages_left    INTEGER,                    -- so many may still be handed out
    backoff_until_ms INTEGER NOT NULL DEFAULT 0, -- it backs off until then, and is probed after; 0: it is open
    address       TEXT                        -- that its requests are counted for
) STRICT;
CREATE INDEX sites_in_window ON sites (id) WHERE in_window = 1;
CREATE INDEX sites_waiting ON sites (top_priority, max(due_at_ms, block_until_ms, backoff_until_ms))
    WHERE top_priority > 0 AND in_window = 0;
CREATE INDEX sites_backing_off ON sites (backoff_until_ms) WHERE backoff_until_ms > 0;
CREATE INDEX sites_due ON sites (due_at_ms) WHERE due_at_ms > 0;
CREATE INDEX sites_of_unknown_delay ON sites (last_start_ms)
    WHERE delay_ms IS NULL AND last_start_ms NOT NULL;
CREATE INDEX sites_limited ON sites (id) WHERE pages_left NOT NULL;

CREATE TABLE site_rules (                     -- what else was set by hand
    site       INTEGER PRIMARY KEY,
    most_pages INTEGER,                       -- of the limit that sites.pages_left counts down
    lane       TEXT
) STRICT;

CREATE TABLE site_states (                    -- of sites that are or were lately in trouble
    site        INTEGER PRIMARY KEY,
    unreachable_to INTEGER,                      -- the last task that is given up; NULL: none is
    reason      TEXT NOT NULL,                -- of the last failure
    failures    INTEGER NOT NULL,             -- in a row, while it is open
    backoff_index  INTEGER NOT NULL,             -- of the current or next backoff in its reason's list
    since_ms    INTEGER NOT NULL,             -- when the current backoff began
    url         TEXT NOT NULL,                -- the evidence: what was requested,
    status_code INTEGER,                      -- what was answered,
    sign        TEXT NOT NULL,                -- and what was seen
    suspects    TEXT NOT NULL DEFAULT '[]'    -- JSON: tasks that failed before the rest began
) STRICT;

CREATE TABLE unsaved_crawls (                 -- on demand, and over; the store has not got it, or its lists are not judged
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of the changes
    crawl  INTEGER NOT NULL UNIQUE
) STRICT;

CREATE TABLE unsaved_site_states (            -- changed since the store got them
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- in the order of the changes
    site   INTEGER NOT NULL UNIQUE
) STRICT;

CREATE TABLE doubtful_pages (                 -- since the last good page of their site
    site   INTEGER NOT NULL,
    task   INTEGER NOT NULL,
    place  INTEGER NOT NULL,                  -- in the order in which they came
    answer INTEGER,                           -- one that resembles a challenge; NULL: one without content
    fields INTEGER NOT NULL DEFAULT 0,        -- values that were stored with the page
    PRIMARY KEY (site, task)
) STRICT, WITHOUT ROWID;

CREATE TABLE taken_back (                     -- pages whose values the store still has to take back
    task INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE crawl_sites (
    crawl    INTEGER NOT NULL,
    site     INTEGER NOT NULL,
    accepted INTEGER NOT NULL,                -- URLs that became tasks
    queued   INTEGER NOT NULL DEFAULT 0,
    top_priority INTEGER NOT NULL DEFAULT 0,  -- of what can be handed out; 0: nothing can
    turn     INTEGER NOT NULL DEFAULT 0,      -- who was served last has the highest
    taken    INTEGER NOT NULL DEFAULT 0,      -- tasks that were handed out and did not come back; in this run, if it is one
    PRIMARY KEY (crawl, site)
) STRICT, WITHOUT ROWID;
CREATE INDEX crawl_sites_turns ON crawl_sites (site, top_priority DESC, turn)
    WHERE top_priority > 0;
CREATE INDEX crawl_sites_queued ON crawl_sites (crawl) WHERE queued > 0;
CREATE INDEX crawl_sites_held ON crawl_sites (crawl) WHERE queued > 0 AND top_priority = 0;

-- Columns that change stand before the URL.
CREATE TABLE task_rows (
    id          INTEGER PRIMARY KEY,
    state       INTEGER NOT NULL DEFAULT 0,   -- 0 queued, 1 leased, 2 done
    crawl       INTEGER NOT NULL,
    site        INTEGER NOT NULL,
    priority    INTEGER NOT NULL,
    depth       INTEGER NOT NULL,
    redirects   INTEGER NOT NULL DEFAULT 0,   -- in a row before this URL
    attempt     INTEGER NOT NULL DEFAULT 0,   -- times handed out
    deaths      INTEGER NOT NULL DEFAULT 0,   -- workers killed
    outcome     TEXT,
    status_code INTEGER,
    parent      INTEGER,                      -- the task whose page holds the link
    rank        INTEGER NOT NULL,             -- in a run of a watch the lowest goes first; 0: none
    done_at_ms  INTEGER,
    url         TEXT NOT NULL,                -- short: the view `tasks` has it whole
    attrs       INTEGER,                      -- what its application handed over with it
    not_before_ms INTEGER NOT NULL DEFAULT 0, -- when it is to be tried again; 0: it does not wait
    epoch       INTEGER NOT NULL DEFAULT 0    -- epochs.id: when it was last handed out
) STRICT;
CREATE INDEX tasks_leased ON task_rows (site) WHERE state = 1;
CREATE INDEX tasks_queued ON task_rows (site, crawl, priority DESC)
    WHERE state = 0 AND not_before_ms = 0;
CREATE INDEX tasks_to_retry ON task_rows (not_before_ms) WHERE state = 0 AND not_before_ms > 0;
CREATE INDEX tasks_to_retry_at ON task_rows (site, crawl) WHERE state = 0 AND not_before_ms > 0;
CREATE INDEX tasks_ranked ON task_rows (site, crawl, rank)
    WHERE state = 0 AND not_before_ms = 0 AND rank <> 0;
CREATE INDEX tasks_crashed ON task_rows (done_at_ms) WHERE outcome = 'crashed';

-- The form of a stored URL: `stored_urls.rs`.
CREATE VIEW tasks AS SELECT id, state, crawl, site, priority, depth, redirects, attempt, deaths, outcome,
    status_code, parent, rank, done_at_ms,
    iif(url < '5',
        iif(url < '3', 'https://', 'http://')
            || iif(substr(url, 1, 1) IN ('1', '3'), 'www.', '')
            || substr(url, 2, instr(url, '/') - 2)
            || (SELECT name FROM sites WHERE sites.id = task_rows.site)
            || substr(url, instr(url, '/')),
        url) AS url,
    attrs, not_before_ms, epoch FROM task_rows;

CREATE TABLE tries (                          -- those that were followed by another
    task        INTEGER NOT NULL,
    ended_at_ms INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    status_code INTEGER,
    counts      INTEGER NOT NULL DEFAULT 1,   -- 0: not against the task's retries any more
    PRIMARY KEY (task, ended_at_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE attrs (                          -- objects of applications
    id   INTEGER PRIMARY KEY,
    json TEXT NOT NULL
) STRICT;

CREATE TABLE records (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL UNIQUE,            -- its key in the store
    resolved INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE task_records (
    task   INTEGER NOT NULL,
    record INTEGER NOT NULL,
    late   INTEGER NOT NULL DEFAULT 0,        -- 1: came after the task was handed out
    PRIMARY KEY (task, record)
) STRICT, WITHOUT ROWID;
CREATE INDEX task_records_record ON task_records (record);
CREATE INDEX task_records_late ON task_records (task) WHERE late = 1;

CREATE TABLE seen_runs (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    file      TEXT NOT NULL,                  -- in the folder `seen`, beside this file
    slices    INTEGER NOT NULL,
    keys      INTEGER NOT NULL,
    last_task INTEGER NOT NULL
) STRICT;

CREATE TABLE watches (                        -- crawls that are run again and again
    name     TEXT PRIMARY KEY,
    watch    TEXT NOT NULL,                   -- JSON, as it was given
    paused   INTEGER NOT NULL DEFAULT 0,
    since_ms INTEGER NOT NULL,
    asked    INTEGER NOT NULL DEFAULT 0       -- 1: a run is to begin, whatever the schedule says
) STRICT, WITHOUT ROWID;

CREATE TABLE watch_runs (                     -- they stay when their watch is removed
    watch  TEXT NOT NULL,
    number INTEGER NOT NULL,
    record TEXT NOT NULL,                     -- JSON
    PRIMARY KEY (watch, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE known_pages (                    -- of watches
    task   INTEGER PRIMARY KEY,
    crawl  INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,                  -- when it is checked, should no run find it
    lost   INTEGER NOT NULL,                  -- checks since a run has found it
    missed INTEGER NOT NULL                   -- checks in a row at which it was missing
) STRICT;
CREATE INDEX known_pages_due ON known_pages (crawl, due_ms);

CREATE TABLE page_checks (                    -- what checks of the pages of watches have found
    task           INTEGER PRIMARY KEY,
    slot           INTEGER NOT NULL,          -- its place in check_rates
    class          INTEGER NOT NULL,          -- 0 other, 1 listing, 2 document
    checks         INTEGER NOT NULL DEFAULT 0,
    changes        INTEGER NOT NULL DEFAULT 0,
    last_check_ms  INTEGER,
    last_change_ms INTEGER,
    shape          REAL NOT NULL,             -- what is believed of its changes a day:
    exposure       REAL NOT NULL              -- a gamma distribution
) STRICT;

CREATE TABLE check_rates (                    -- how many pages of a site change how often
    crawl INTEGER NOT NULL,
    site  INTEGER NOT NULL,
    slot  INTEGER NOT NULL,                   -- of a listing, and how often; see revisit::plan
    pages INTEGER NOT NULL,
    PRIMARY KEY (crawl, site, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE notifications (                        -- the outbox: a notification for each of its targets
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    key        TEXT NOT NULL UNIQUE,          -- the same at each try
    watch      TEXT NOT NULL,
    target     TEXT NOT NULL,                 -- JSON
    subject    TEXT NOT NULL,
    bytes      INTEGER NOT NULL,              -- of its body
    made_ms    INTEGER NOT NULL,
    tries      INTEGER NOT NULL DEFAULT 0,
    due_ms     INTEGER,                       -- when it is tried next; NULL: it is settled
    settled_ms INTEGER,
    why        TEXT                           -- why the last try has failed
) STRICT;
CREATE INDEX notifications_due ON notifications (due_ms, bytes) WHERE due_ms IS NOT NULL;
CREATE INDEX notifications_waiting ON notifications (watch, target, made_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX notifications_settled ON notifications (settled_ms) WHERE settled_ms IS NOT NULL;
CREATE INDEX notifications_of_watch ON notifications (watch, id);

CREATE TABLE notification_bodies (                  -- of those that wait
    notification INTEGER PRIMARY KEY,
    body   TEXT NOT NULL                      -- JSON
) STRICT;

CREATE TABLE watch_reported (                 -- what has been reported of watches
    watch TEXT NOT NULL,
    time  TEXT NOT NULL,                      -- digest, at_once
    reported TEXT NOT NULL,                   -- JSON
    PRIMARY KEY (watch, time)
) STRICT, WITHOUT ROWID;

CREATE TABLE undelivered (                    -- targets that notifications do not reach: an alert each
    watch    TEXT NOT NULL,
    target   TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    why      TEXT NOT NULL,
    PRIMARY KEY (watch, target)
) STRICT, WITHOUT ROWID;
