//! Measures the simplest method to recognise known URLs, for comparison with the frontier.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::failure::Failure;
use crate::laps::{Lap, Watch};
use crate::plan::{MILLION, PAGES_PER_COMMIT, Plan};
use crate::web::{Web, url};

/// Measures the simplest method on the same links: each link is hashed and inserted into a table, and new ones are also
/// added to a queue. Before that, the table is filled with all earlier URLs in sorted order, which is the best case.
pub fn measure_peer(dir: &Path, plan: &Plan) -> Result<f64, Failure> {
    let mut db = Connection::open(dir.join("peer.db"))?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -160000;
         CREATE TABLE seen (key INTEGER PRIMARY KEY);
         CREATE TABLE tasks (id INTEGER PRIMARY KEY, state INTEGER, site TEXT, url TEXT);
         CREATE INDEX queued ON tasks (site) WHERE state = 0;",
    )?;
    let mut web = Web::new(plan.local);
    web.known = plan.seen;
    let mut keys = (0..plan.seen)
        .map(|nth| peer_key(&url(nth)))
        .collect::<Result<Vec<_>, _>>()?;
    keys.sort_unstable();
    let load = db.transaction()?;
    for key in keys {
        load.prepare_cached("INSERT OR IGNORE INTO seen VALUES (?1)")?
            .execute([key])?;
    }
    load.commit()?;
    let mut lap = Lap::default();
    while web.known < plan.seen + MILLION / 5 {
        let links: Vec<_> = (0..PAGES_PER_COMMIT)
            .flat_map(|_| web.page_links())
            .collect();
        let mut watch = Watch::start()?;
        insert_links(&mut db, &links)?;
        lap.add(Lap {
            links: links.len() as u64,
            ..watch.lap()?
        });
    }
    Ok(lap.core_rate())
}

fn insert_links(db: &mut Connection, links: &[String]) -> Result<(), Failure> {
    let transaction = db.transaction()?;
    for link in links {
        let url = webfill_urls::canonical_url(link, None)?;
        let sql = "INSERT OR IGNORE INTO seen VALUES (?1)";
        if transaction
            .prepare_cached(sql)?
            .execute([peer_key(url.as_str())?])?
            > 0
        {
            let sql = "INSERT INTO tasks (state, site, url) VALUES (0, ?1, ?2)";
            let values = params![webfill_urls::site(&url), url.as_str()];
            transaction.prepare_cached(sql)?.execute(values)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// The key of a URL: 63 bits of its page hash.
fn peer_key(url: &str) -> Result<i64, Failure> {
    Ok((u64::from_str_radix(&webfill_urls::page_hash(url)[..16], 16)? >> 1) as i64)
}
