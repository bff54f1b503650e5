//! What version 6 added.

/// What version 6 added for watches. The release that wrote version 5 has made the first two tables in some
/// files already. A task's `rank` takes the place of a column that version 5 has left unused, so that rows
/// of ordinary crawls do not grow; tasks of much older files have a time in it.
pub(super) const SINCE_6_WATCHES: &str = "
CREATE TABLE IF NOT EXISTS watches (          -- crawls that are run again and again
    name     TEXT PRIMARY KEY,
    watch    TEXT NOT NULL,                   -- JSON, as it was given
    paused   INTEGER NOT NULL DEFAULT 0,
    since_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS watch_runs (       -- they stay when their watch is removed
    watch  TEXT NOT NULL,
    number INTEGER NOT NULL,
    record TEXT NOT NULL,                     -- JSON
    PRIMARY KEY (watch, number)
) STRICT, WITHOUT ROWID;
ALTER TABLE watches ADD COLUMN
    asked INTEGER NOT NULL DEFAULT 0;         -- 1: a run is to begin, whatever the schedule says
ALTER TABLE task_rows RENAME COLUMN seen_at_ms TO rank; -- in a run of a watch the lowest goes first; 0: none
UPDATE task_rows SET rank = 0 WHERE rank <> 0;
UPDATE task_rows SET rank = 1                 -- what a run has left has waited longest
    WHERE state = 0 AND not_before_ms = 0
        AND crawl IN (SELECT id FROM crawls WHERE json_extract(spec, '$.run_began_ms') NOT NULL)
        AND site IN (SELECT site FROM crawl_sites WHERE queued > 0 AND crawl IN (
            SELECT id FROM crawls WHERE json_extract(spec, '$.run_began_ms') NOT NULL));
CREATE INDEX tasks_ranked ON task_rows (site, crawl, rank)
    WHERE state = 0 AND not_before_ms = 0 AND rank <> 0;
ALTER TABLE crawl_sites ADD COLUMN
    taken INTEGER NOT NULL DEFAULT 0;         -- tasks that were handed out and did not come back; in this run, if it is one

CREATE TABLE looks (                          -- what looks at the pages of watches have found
    task           INTEGER PRIMARY KEY,
    slot           INTEGER NOT NULL,          -- its place in look_rates
    class          INTEGER NOT NULL,          -- 0 other, 1 listing, 2 document
    looks          INTEGER NOT NULL DEFAULT 0,
    changes        INTEGER NOT NULL DEFAULT 0,
    last_look_ms   INTEGER,
    last_change_ms INTEGER,
    shape          REAL NOT NULL,             -- what is believed of its changes a day:
    exposure       REAL NOT NULL              -- a gamma distribution
) STRICT;

CREATE TABLE look_rates (                     -- how many pages of a site change how often
    crawl INTEGER NOT NULL,
    site  INTEGER NOT NULL,
    slot  INTEGER NOT NULL,                   -- of a listing, and how often; see revisit::plan
    pages INTEGER NOT NULL,
    PRIMARY KEY (crawl, site, slot)
) STRICT, WITHOUT ROWID;
";
