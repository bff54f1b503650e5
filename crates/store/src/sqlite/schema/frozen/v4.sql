CREATE INDEX robots_by_expiry ON robots (expires_at);
CREATE INDEX unwritten_origins ON origins (crawl) WHERE changes > 0;
CREATE TABLE changes (
    store TEXT NOT NULL,
    deleted INTEGER NOT NULL
) STRICT;
CREATE TABLE crawl_records (
    record TEXT NOT NULL,
    crawl INTEGER NOT NULL,
    PRIMARY KEY (record, crawl)
) STRICT, WITHOUT ROWID;
CREATE TABLE crawls (
    key INTEGER PRIMARY KEY,     -- stands for the crawl in crawl_records
    _id TEXT NOT NULL UNIQUE,    -- app id, '/', crawl id
    app_id TEXT NOT NULL,
    crawl_id TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    counts TEXT NOT NULL,
    started_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    finished_at TEXT,
    records_total INTEGER NOT NULL DEFAULT 0,
    records_resolved INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE origins (
    record TEXT NOT NULL,
    crawl INTEGER NOT NULL,
    document TEXT NOT NULL,      -- its _id, as extended JSON
    fields TEXT NOT NULL,        -- [name]: what may be written
    changes INTEGER NOT NULL,    -- of the record, since it was last written
    PRIMARY KEY (record, crawl)
) STRICT, WITHOUT ROWID;
CREATE TABLE pages (
    position INTEGER PRIMARY KEY,
    _id TEXT NOT NULL UNIQUE,    -- crawl id, '/', hash of the canonical URL
    app_id TEXT NOT NULL,
    crawl_id TEXT NOT NULL,
    url TEXT NOT NULL,
    final_url TEXT,
    site TEXT NOT NULL,
    depth INTEGER NOT NULL,
    parent TEXT,
    outcome TEXT NOT NULL,
    status_code INTEGER,
    mapping TEXT,
    content_type TEXT,
    bytes INTEGER NOT NULL,
    content_hash TEXT,
    started_at TEXT NOT NULL,
    elapsed_ms INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    worker TEXT NOT NULL,
    tries TEXT NOT NULL,         -- [{ended_at, outcome, status_code}]
    attrs TEXT,                  -- the application's JSON
    fields TEXT NOT NULL,        -- {name: value}
    links TEXT NOT NULL,         -- [url]
    headers TEXT,                -- {name: [value]}
    body TEXT
) STRICT;
CREATE TABLE records (
    _id TEXT PRIMARY KEY,
    fields TEXT NOT NULL,        -- {name: value}
    sources TEXT NOT NULL,       -- {name: {url, mapping, at}}
    missing TEXT NOT NULL,       -- [name]
    resolved_at TEXT,
    candidates TEXT NOT NULL DEFAULT '{}'    -- {name: [{value, url, mapping, at}]}
) STRICT;
CREATE TABLE robots (
    _id TEXT PRIMARY KEY,        -- origin
    status INTEGER,
    fetched_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE site_states (
    _id TEXT PRIMARY KEY,        -- site
    state TEXT NOT NULL,         -- resting, given_up
    reason TEXT NOT NULL,
    since TEXT NOT NULL,
    until TEXT,                  -- NULL: a person wakes it, or it was given up
    url TEXT NOT NULL,           -- the evidence: what was requested,
    status_code INTEGER,         -- what was answered,
    sign TEXT NOT NULL,          -- and what was seen
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sites (
    _id TEXT PRIMARY KEY,        -- site
    last_start TEXT NOT NULL,
    delay_ms INTEGER NOT NULL,
    blocked_until TEXT,
    owner TEXT,
    answered_at TEXT,            -- when the last reservation was released
    slot_holder TEXT,            -- the reservation: holder, start and expiry
    slot_granted_at TEXT,
    slot_lapses_at TEXT
) STRICT, WITHOUT ROWID;
CREATE TRIGGER page_deleted AFTER DELETE ON pages BEGIN
    UPDATE changes SET deleted = max(deleted, OLD.position);
END;
