//! Judges the lists of a finished crawl: which of their earlier rows are gone. It judges one list at a time, so that
//! nothing else waits for long. The frontier (the file of tasks) has a note of each crawl whose lists are not judged
//! yet; if the process dies, the next one judges them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};
use webfill_store::{
    CheckedRows, Crawl, CrawlId, CrawlState, GoneMarking, ListPass, Lists, Store, StoreError,
    check_and_mark_missing_rows,
};

/// The most crawls whose judged state is remembered.
const MOST_KEPT: usize = 10_000;

/// The state of a crawl when it was judged: the run of the watch that it belongs to, if any, and its counts.
type CheckedState = (Value, Map<String, Value>);

/// Queues the crawls whose lists are to be judged, and judges them.
#[derive(Default)]
pub struct ListChecker {
    waiting: VecDeque<CrawlId>,
    present: Option<(CrawlId, Lists)>,
    /// The states of crawls when they were judged. A crawl in the same state need not be judged again.
    judged: HashMap<CrawlId, CheckedState>,
    /// The numbers of the frontier's notes of crawls that wait to be judged or are being judged.
    notes: HashMap<CrawlId, i64>,
}

impl ListChecker {
    /// Queues the lists of a crawl if it is finished and has changed since they were last judged. Returns the note of
    /// the crawl if nothing is left to judge.
    pub fn queue_unless_checked(&mut self, crawl: &Crawl, note: Option<i64>) -> Option<i64> {
        if crawl.state != CrawlState::Finished {
            self.judged.remove(&crawl.id);
            return note;
        }
        let present = (crawl.request["run_began_ms"].clone(), crawl.counts.clone());
        if self.judged.get(&crawl.id) == Some(&present) && !self.is_queued_or_checking(&crawl.id) {
            return note;
        }
        if let Some(note) = note {
            self.notes.insert(crawl.id.clone(), note);
        }
        if self.judged.get(&crawl.id) == Some(&present) {
            return None;
        }
        if self.judged.len() >= MOST_KEPT {
            self.judged.clear();
        }
        self.judged.insert(crawl.id.clone(), present);
        if !self.waiting.contains(&crawl.id) {
            self.waiting.push_back(crawl.id.clone());
        }
        None
    }

    fn is_queued_or_checking(&self, crawl: &CrawlId) -> bool {
        let present = self.present.as_ref();
        present.is_some_and(|(present, _)| present == crawl) || self.waiting.contains(crawl)
    }

    pub fn has_work(&self) -> bool {
        self.present.is_some() || !self.waiting.is_empty()
    }

    /// Judges the next list. After an error, the crawl is judged from its beginning. Returns the note of a crawl
    /// whose last list was judged.
    pub async fn judge_next_list(
        &mut self,
        store: &Arc<dyn Store>,
    ) -> Result<Option<i64>, StoreError> {
        let Some((crawl, mut lists)) = self.present.take().or_else(|| {
            let crawl = self.waiting.pop_front()?;
            let lists = Lists::new(store, &crawl);
            Some((crawl, lists))
        }) else {
            return Ok(None);
        };
        match check_next_list(&**store, &mut lists).await {
            Ok(true) => self.present = Some((crawl, lists)),
            Ok(false) if self.waiting.contains(&crawl) => {}
            Ok(false) => return Ok(self.notes.remove(&crawl)),
            Err(error) => {
                match error.is_retry() {
                    true => self.waiting.push_back(crawl),
                    // The note stays in the frontier, so the next process judges the crawl again.
                    false => drop(self.notes.remove(&crawl)),
                }
                return Err(error);
            }
        }
        Ok(None)
    }
}

/// Judges the next of these lists. Returns false if there is none.
async fn check_next_list(store: &dyn Store, lists: &mut Lists) -> Result<bool, StoreError> {
    let Some(list) = lists.next().await? else {
        return Ok(false);
    };
    let rows = check_and_mark_missing_rows(store, &list, GoneMarking::Believed).await?;
    log_rows(&list, &rows);
    Ok(true)
}

/// Logs which rows of a list were marked as gone, or why none were.
pub fn log_rows(list: &ListPass, rows: &[CheckedRows]) {
    for judged in rows {
        if !judged.marked.is_empty() {
            tracing::info!(
                event = "rows_gone",
                list = list.first,
                dataset = judged.dataset,
                rows = judged.marked.len(),
                "a list was read to its end and lacks rows: they are marked as gone"
            );
        }
        if let Some(doubt) = judged.doubt {
            tracing::warn!(
                event = "list_doubted",
                list = list.first,
                dataset = judged.dataset,
                rows = judged.rows.unseen,
                held = judged.rows.held,
                reason = doubt.text(),
                "a list was read to its end, but its missing rows are not believed: none is marked as gone"
            );
        }
    }
}
