//! The tables of version 7.

/// Since version 7: the runs of the seen index are files of their own.
pub(super) const SINCE_7: &str = "
ALTER TABLE seen_runs RENAME TO older_seen_runs;
CREATE TABLE seen_runs (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    file      TEXT NOT NULL,                  -- in the folder `seen`, beside this file
    slices    INTEGER NOT NULL,
    keys      INTEGER NOT NULL,
    last_task INTEGER NOT NULL
) STRICT;
";

/// When the runs are files.
pub(super) const WITHOUT_OLDER_RUNS: &str = "
DROP TABLE older_seen_runs;
DROP TABLE seen_slices;
";
