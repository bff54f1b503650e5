-- The tables of a store. The column `_id` is the key, as in MongoDB. Large columns come last, so that
-- reading the others does not have to skip them.

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

-- Which process runs a crawl.
CREATE TABLE claims (
    _id TEXT PRIMARY KEY,        -- app id, '/', crawl id
    owner TEXT NOT NULL,         -- the process
    folder TEXT NOT NULL,        -- its state folder
    holder TEXT NOT NULL,        -- both in words
    since TEXT NOT NULL,
    beat INTEGER NOT NULL        -- counts the renewals
) STRICT, WITHOUT ROWID;

-- Whenever a page changes, it gets the highest position so far plus one. So the table is in the order of
-- changes, and its index only grows at its end. Positions of deleted pages are not used again.
CREATE TABLE pages (
    position INTEGER PRIMARY KEY,
    _id TEXT NOT NULL UNIQUE,    -- app id, '/', crawl id, '/', hash of the URL
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
    mapping_version TEXT,        -- of the mapping that read the page
    content_type TEXT,
    bytes INTEGER NOT NULL,
    content_hash TEXT,
    template TEXT,               -- digits that pages of one layout share
    started_at TEXT NOT NULL,
    elapsed_ms INTEGER NOT NULL,
    -- By these, a page's later save is distinguished from an earlier one.
    epoch INTEGER NOT NULL DEFAULT 0, -- of the delivery
    attempts INTEGER NOT NULL,   -- its number
    task INTEGER NOT NULL DEFAULT 0, -- at its dispatcher
    worker TEXT NOT NULL,
    rows INTEGER,                -- how many it lists; NULL: its mapping has none
    list TEXT,                   -- what it says of its list, {first, next, complete, ...}; NULL: its mapping has no rows
    tries TEXT NOT NULL,         -- [{ended_at, outcome, status_code}]
    records TEXT NOT NULL DEFAULT '[]', -- [key]: the first that it was for
    attrs TEXT,                  -- the application's JSON
    validators TEXT,             -- {etag, last_modified, fetched_at_ms, read_as}
    document TEXT,               -- {status, type, sha256, bytes, title, ...}
    alternatives TEXT,           -- {field: number of the alternative}; NULL: the first chains have served
    row_counts TEXT,             -- of each rule of its mapping {dataset, rows, without_key, same_key, cut, filled, undecided}
    fields TEXT NOT NULL,        -- {name: value}
    links TEXT NOT NULL,         -- [url]
    headers TEXT,                -- {name: [value]}
    snapshot BLOB,                   -- what it is compared by, compressed; NULL: changes are not looked for
    body TEXT
) STRICT;
-- One row.
CREATE TABLE changes (
    store TEXT NOT NULL,         -- the id of the store, used in cursors
    deleted INTEGER NOT NULL,    -- the highest position that was deleted
    cut INTEGER NOT NULL         -- up to which position pages may have been dropped as too old: readers before it are refused
) STRICT;
INSERT INTO changes VALUES (lower(hex(randomblob(4))), 0, 0);
CREATE TRIGGER page_deleted AFTER DELETE ON pages BEGIN
    UPDATE changes SET deleted = max(deleted, OLD.position);
END;

-- Changes of pages.
CREATE TABLE page_changes (
    number INTEGER PRIMARY KEY,
    app_id TEXT NOT NULL,
    crawl_id TEXT NOT NULL,
    url TEXT NOT NULL,
    page TEXT NOT NULL,          -- its _id
    site TEXT NOT NULL,
    kind TEXT NOT NULL,          -- new, changed, gone, back
    at TEXT NOT NULL,            -- when the fetch began that has shown it
    mapping TEXT,                -- whose fields were compared; NULL: the text was
    old TEXT,                    -- JSON
    new TEXT,                    -- JSON
    difference TEXT NOT NULL     -- for people
) STRICT;
CREATE INDEX changes_by_crawl ON page_changes (app_id, crawl_id);
CREATE INDEX changes_by_time ON page_changes (at);
CREATE TABLE versions (
    _id TEXT PRIMARY KEY,        -- the page's, or app id, '/', crawl id, '/site/', site
    checked_at TEXT NOT NULL,     -- the last time
    state BLOB NOT NULL          -- compressed JSON
) STRICT;
CREATE INDEX versions_by_check ON versions (checked_at);
-- One row: up to which page checks are judged.
CREATE TABLE judged (
    revision INTEGER NOT NULL,   -- counts the judgements
    writer TEXT NOT NULL,        -- the process that has made the last one
    cursor TEXT NOT NULL,
    last_number INTEGER NOT NULL -- of the last change
) STRICT;

CREATE TABLE records (
    _id TEXT PRIMARY KEY,        -- dataset, '/', record id
    dataset TEXT NOT NULL,
    record_id TEXT NOT NULL,
    resolved_at TEXT,
    missing TEXT NOT NULL,       -- [name]
    fields TEXT NOT NULL,        -- {name: value}
    sources TEXT NOT NULL,       -- {name: {url, mapping, at}}
    candidates TEXT NOT NULL DEFAULT '{}', -- {name: [{value, url, mapping, at}]}
    history TEXT NOT NULL DEFAULT '{}', -- {name: [{value, url, mapping, at, until}]}: what values were before they changed
    urls TEXT NOT NULL DEFAULT '[]', -- [url]: where the user's input says that its values may be found
    given TEXT,                  -- {name: {value, corrects, users}}: what the user's input has said; NULL: no input has named it
    written TEXT NOT NULL DEFAULT '{}', -- {name: [value]}: what was written to it
    doubts TEXT NOT NULL DEFAULT '{}', -- {pages: {url: {why, mapping, at}}, forks: [mapping]}: what of pages was not believed
    row TEXT                     -- where it was seen last, {url, position, mapping, mapping_version, parent, at, links, lists, gone}
) STRICT;
-- The rows that lists hold, of lists that say which of their rows are gone: an index of `lists` and `gone` in
-- records.row.
CREATE TABLE listed_rows (
    list TEXT NOT NULL,          -- the URL of its first page
    record TEXT NOT NULL,
    since TEXT NOT NULL,         -- when it was seen there first
    at TEXT NOT NULL,            -- when it was seen there last; if it is gone, when it was missed
    gone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (list, record)
) STRICT, WITHOUT ROWID;
-- Which crawls a record is in: those whose records_resolved it counts towards.
CREATE TABLE crawl_records (
    record TEXT NOT NULL,
    crawl INTEGER NOT NULL,
    position INTEGER,            -- where in its input the crawl has read it first
    PRIMARY KEY (record, crawl)
) STRICT, WITHOUT ROWID;
-- The documents that records came from, for the crawls that write back.
CREATE TABLE origins (
    record TEXT NOT NULL,
    crawl INTEGER NOT NULL,
    collection TEXT NOT NULL,    -- database, '.', collection
    document TEXT NOT NULL,      -- its _id, as extended JSON
    fields TEXT NOT NULL,        -- [name]: what may be written
    changes INTEGER NOT NULL,    -- of the record, since it was last written
    PRIMARY KEY (record, crawl)
) STRICT, WITHOUT ROWID;
CREATE INDEX unwritten_origins ON origins (crawl) WHERE changes > 0;

-- How extractions are doing, and what that is judged by.
CREATE TABLE health (
    _id TEXT PRIMARY KEY,        -- 'mapping/', mapping; or 'cursor'
    revision INTEGER NOT NULL,   -- counts the changes
    writer TEXT NOT NULL,        -- the process that has changed it last
    cursor TEXT NOT NULL,        -- up to which page it is
    state TEXT NOT NULL          -- JSON
) STRICT, WITHOUT ROWID;
CREATE TABLE samples (
    _id TEXT PRIMARY KEY,        -- mapping, '/', place
    mapping TEXT NOT NULL,
    alert TEXT,                  -- when it was raised; NULL: another page may replace this one
    page TEXT NOT NULL,          -- its _id
    url TEXT NOT NULL,
    at TEXT NOT NULL,
    fields TEXT NOT NULL,        -- [name]: found on it
    text BLOB NOT NULL           -- compressed
) STRICT;

-- Knowledge of sites that processes share.
CREATE TABLE sites (
    _id TEXT PRIMARY KEY,        -- site
    last_start TEXT NOT NULL,
    delay_ms INTEGER NOT NULL,
    accepted_ms INTEGER,         -- between two requests, as its refusals have shown
    blocked_until TEXT,
    owner TEXT,
    answered_at TEXT,            -- when the last reservation was released
    slot_holder TEXT,            -- the reservation: holder, start and expiry
    slot_granted_at TEXT,
    slot_lapses_at TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE robots (
    _id TEXT PRIMARY KEY,        -- origin
    status INTEGER,
    fetched_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX robots_by_expiry ON robots (expires_at);
-- A copy of what the dispatcher knows of sites in trouble.
CREATE TABLE site_states (
    _id TEXT PRIMARY KEY,        -- site
    state TEXT NOT NULL,         -- backing_off, unreachable
    reason TEXT NOT NULL,
    since TEXT NOT NULL,
    until TEXT,                  -- NULL: a person wakes it, or it was given up
    url TEXT NOT NULL,           -- the evidence: what was requested,
    status_code INTEGER,         -- what was answered,
    sign TEXT NOT NULL,          -- and what was seen
    updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
