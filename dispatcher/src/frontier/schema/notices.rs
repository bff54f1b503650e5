//! The tables of notices, which version 6 added.

pub(super) const SINCE_6_NOTICES: &str = "
CREATE TABLE notices (                        -- the outbox: a notice for each of its targets
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
CREATE INDEX notices_due ON notices (due_ms, bytes) WHERE due_ms IS NOT NULL;
CREATE INDEX notices_waiting ON notices (watch, target, made_ms) WHERE due_ms IS NOT NULL;
CREATE INDEX notices_settled ON notices (settled_ms) WHERE settled_ms IS NOT NULL;
CREATE INDEX notices_of_watch ON notices (watch, id);

CREATE TABLE notice_bodies (                  -- of those that wait
    notice INTEGER PRIMARY KEY,
    body   TEXT NOT NULL                      -- JSON
) STRICT;

CREATE TABLE watch_told (                     -- what has been told of watches
    watch TEXT NOT NULL,
    time  TEXT NOT NULL,                      -- digest, at_once
    told  TEXT NOT NULL,                      -- JSON
    PRIMARY KEY (watch, time)
) STRICT, WITHOUT ROWID;

CREATE TABLE undelivered (                    -- targets that notices do not reach: an alarm each
    watch    TEXT NOT NULL,
    target   TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    why      TEXT NOT NULL,
    PRIMARY KEY (watch, target)
) STRICT, WITHOUT ROWID;
";
