//! A generated store: one large crawl with half as many records as pages, a thousand small crawls, and changes.

use std::path::Path;

use rusqlite::Connection;
use webfill_store::CrawlId;

/// The number of pages written in one transaction.
const AT_ONCE: u64 = 200_000;

/// The number of crawls besides the large one.
pub const SMALL_CRAWLS: u64 = 1_000;

/// The number of pages on each site.
pub const PAGES_OF_SITE: u64 = 2;

/// One page in this many has the rarest outcome, `blocked`.
const BLOCKED: u64 = 100_000;

pub struct Made {
    pub pages: u64,
}

const CRAWLS: &str = "
WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
INSERT INTO crawls (_id, app_id, crawl_id, request, state, counts, started_at, updated_at, records_total)
SELECT 'app/c' || n, 'app', 'c' || n, '{\"url\":\"https://example.com/\"}', 'running',
    '{\"pages\":1,\"outcomes\":{\"ok\":1}}', strftime('%Y-%m-%dT%H:%M:%fZ', 1767268800 - n, 'unixepoch'),
    '2026-01-02T12:00:00.000Z', iif(n = 0, ?2, 0) FROM n";

/// SQL that inserts the pages from `?1` to `?2`. Nine of ten belong to the crawl `c0`.
const PAGES: &str = "
WITH RECURSIVE n (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM n WHERE n + 1 < ?2)
INSERT INTO pages (position, _id, app_id, crawl_id, url, site, depth, outcome, status_code, mapping,
    content_type, bytes, content_hash, started_at, elapsed_ms, attempts, worker, tries, fields, links)
SELECT n + 1,
    'app/' || crawl || '/' || printf('%010d', n * 2654435761 % 4294967296) || 'x-9PqLc2Rn3k',
    'app', crawl, url, 's' || (n / ?3) || '.example', n % 3,
    CASE WHEN n % ?4 = 7 THEN 'blocked' WHEN n % 20 = 3 THEN 'http_error' WHEN n % 50 = 9 THEN 'timeout'
        ELSE 'ok' END,
    200, iif(n % 3 = 0, NULL, 'mapping-' || (n % 8)), 'text/html; charset=utf-8', 24000 + n % 9000,
    '9f86d081884c7d659a2feaa0c55ad015', strftime('%Y-%m-%dT%H:%M:%fZ', 1767268800 + n / 200.0, 'unixepoch'),
    300 + n % 400, 1, 'machine-' || (n % 120) || '/0', '[]',
    '{\"name\":\"Somebody with the number ' || n || '\",\"location\":\"Somewhere\",\"born\":\"1815\"}',
    '[\"' || url || '/1\",\"' || url || '/2\",\"' || url || '/3\"]'
FROM (SELECT n, iif(n % 10 = 0, 'c' || (1 + n / 10 % ?5), 'c0') AS crawl,
    'https://www.s' || (n / ?3) || '.example/people/' || n AS url FROM n)";

/// SQL that inserts records. One of three is open (has missing values).
const RECORDS: &str = "
WITH RECURSIVE n (n) AS (SELECT ?1 UNION ALL SELECT n + 1 FROM n WHERE n + 1 < ?2)
INSERT INTO records (_id, dataset, record_id, fields, sources, missing, resolved_at)
SELECT 'people/' || printf('%09d', n * 7919 % 999999937), 'people', printf('%09d', n * 7919 % 999999937),
    '{\"name\":\"Somebody with the number ' || n || '\",\"location\":null}',
    '{\"name\":{\"url\":\"https://www.example.com/people/' || n || '\",\"mapping\":\"mapping-1\"}}',
    iif(n % 3 = 0, '[\"location\"]', '[]'),
    iif(n % 3 = 0, NULL, strftime('%Y-%m-%dT%H:%M:%fZ', 1767268800 + n / 200.0, 'unixepoch')) FROM n";

const CHANGES: &str = "
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
INSERT INTO page_changes (number, app_id, crawl_id, url, page, site, kind, at, difference)
SELECT n, 'app', iif(n % 10 = 0, 'c' || (1 + n % ?2), 'c0'), 'https://www.example.com/' || n, 'app/c0/' || n,
    's' || n || '.example', 'changed', '2026-01-01T12:00:00.000Z', '~ price: [-10-]{+12+}' FROM n";

impl Made {
    pub fn large_crawl(&self) -> CrawlId {
        CrawlId::new("app", "c0")
    }

    pub fn records(&self) -> u64 {
        self.pages / 2
    }

    /// Fills an empty store file. Nothing is synced to the disk, because a file that is incomplete after a crash would
    /// not be used.
    pub fn fill(&self, file: &Path) -> rusqlite::Result<()> {
        let conn = Connection::open(file)?;
        conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")?;
        conn.execute(CRAWLS, to_sql_integers([SMALL_CRAWLS, self.records()]))?;
        for begin in (0..self.pages).step_by(AT_ONCE as usize) {
            let end = self.pages.min(begin + AT_ONCE);
            conn.execute(
                PAGES,
                to_sql_integers([begin, end, PAGES_OF_SITE, BLOCKED, SMALL_CRAWLS]),
            )?;
        }
        for begin in (0..self.records()).step_by(AT_ONCE as usize) {
            let end = self.records().min(begin + AT_ONCE);
            conn.execute(RECORDS, to_sql_integers([begin, end]))?;
        }
        conn.execute(CHANGES, to_sql_integers([self.pages / 100, SMALL_CRAWLS]))?;
        conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
    }
}

/// Converts numbers to SQLite's integer type.
fn to_sql_integers<const N: usize>(numbers: [u64; N]) -> [i64; N] {
    numbers.map(|number| i64::try_from(number).expect("the numbers of a bench fit"))
}
