//! What versions since 8 added.

/// With which pages can be asked for conditionally.
pub(super) const VALIDATORS: &str = "
ALTER TABLE pages ADD COLUMN validators TEXT; -- {etag, last_modified, fetched_at_ms, read_as}
";

/// What has changed on pages. The table `changes` is another one, which processes of older
/// versions read: they may be at work beside this one while a fleet is upgraded.
pub(super) const CHANGES: &str = "
ALTER TABLE pages ADD COLUMN look BLOB; -- what it is compared by, compressed; NULL: changes are not looked for
CREATE TABLE versions (
    _id TEXT PRIMARY KEY,        -- the page's, or app id, '/', crawl id, '/site/', site
    looked_at TEXT NOT NULL,     -- the last time
    state BLOB NOT NULL          -- compressed JSON
) STRICT;
CREATE INDEX versions_by_look ON versions (looked_at);
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
-- One row: up to which page looks are judged.
CREATE TABLE judged (
    revision INTEGER NOT NULL,   -- counts the judgements
    writer TEXT NOT NULL,        -- the process that has made the last one
    cursor TEXT NOT NULL,
    last_number INTEGER NOT NULL -- of the last change
) STRICT;
";

/// What version 9 added: the fields of a page that an alternative has served.
pub(super) const ALTERNATIVES: &str = "
ALTER TABLE pages ADD COLUMN alternatives TEXT; -- {field: number of the alternative}; NULL: the first chains have served
";

/// What version 10 added: where the user's input says that a record's values may be found.
pub(super) const URLS: &str = "
ALTER TABLE records ADD COLUMN urls TEXT NOT NULL DEFAULT '[]'; -- [url]
";

/// What version 11 added: what a site accepts between two requests, as its refusals have shown.
pub(super) const ACCEPTED_PACE: &str = "
ALTER TABLE sites ADD COLUMN accepted_ms INTEGER;
";

/// What version 12 added: what the user's input has said, what was written to it, and what of pages was not believed.
pub(super) const USERS_VALUES: &str = "
ALTER TABLE records ADD COLUMN given TEXT; -- {name: {value, corrects, users}}; NULL: not known
ALTER TABLE records ADD COLUMN written TEXT NOT NULL DEFAULT '{}'; -- {name: [value]}
ALTER TABLE records ADD COLUMN doubts TEXT NOT NULL DEFAULT '{}'; -- {pages: {url: {why, mapping, at}}, forks: [mapping]}
";

/// What version 13 added: records that are rows of pages.
pub(super) const ROWS: &str = "
ALTER TABLE records ADD COLUMN row TEXT; -- where it was seen last, {url, position, mapping, mapping_version, parent, at}
ALTER TABLE pages ADD COLUMN rows INTEGER; -- how many it lists; NULL: its mapping has none
";
