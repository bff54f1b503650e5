//! Pages that may be blocks although they show no sign of one.
//!
//! - An answer that its worker *suspects* (an outcome `blocked` without evidence) is not taken for the page. Its task
//!   is queued again, and waits until other tasks of its site have had their turn: their answers show the worker
//!   whether it was a block.
//! - *Doubtful* pages are pages that their site has served since its last good page. Either they are short, without
//!   fields and links, or they resemble a challenge according to their worker. If the site blocks then, they may have
//!   been blocks that nobody has recognised. Their tasks are queued again and fetched after the rest, or end as blocked
//!   if there is no time for that. Before that, the values that they have brought into records are taken back
//!   ([`retraction`](super::retraction)). Of the pages that resemble a challenge only the last answer counts, and only
//!   if it came more than once.
//!
//! Both are durable (table `doubtful_pages`). The number of doubtful pages is bounded; further ones are kept as good.

use std::collections::HashMap;

use rusqlite::{Connection, Result};

use super::model::{SiteId, TaskId};

#[derive(Debug, Clone, Copy)]
pub(super) struct DoubtfulPage {
    pub(super) task: TaskId,
    /// If the page resembles a challenge: identifies the answer. `None` if it is a page without content.
    pub(super) answer: Option<u64>,
    pub(super) fields: u32,
}

/// The pages of each site that may have been block pages, as they are stored.
#[derive(Debug, Default)]
pub(super) struct Doubts(pub(super) HashMap<SiteId, Vec<DoubtfulPage>>);

impl Doubts {
    pub(super) fn load(db: &Connection) -> Result<Doubts> {
        let mut doubts = Doubts::default();
        let sql = "SELECT site, task, answer, fields FROM doubtful_pages ORDER BY place";
        let mut select = db.prepare(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let pages = doubts.0.entry(row.get(0)?).or_default();
            pages.push(DoubtfulPage {
                task: row.get::<_, i64>(1)? as TaskId,
                answer: row.get::<_, Option<i64>>(2)?.map(|answer| answer as u64),
                fields: row.get(3)?,
            });
        }
        Ok(doubts)
    }

    /// The site that is forgotten first if there are too many: its latest doubtful page is the oldest.
    pub(super) fn site_of_oldest(&self) -> Option<SiteId> {
        let newest_page = |(_, pages): &(&SiteId, &Vec<DoubtfulPage>)| {
            let newest = pages.last();
            newest.map(|page| page.task)
        };
        let oldest = self.0.iter().min_by_key(newest_page);
        oldest.map(|(site, _)| *site)
    }
}
