//! The checks during the run of a world and at its end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rusqlite::Connection;
use webfill_scheduler::frontier::FILE_NAME;
use webfill_wire::{Delivery, Task};

use crate::names::site_and_page_of;
use crate::witness::DatabaseObserver;

use super::Passed;
use super::message::{CrawlNumber, Message};
use super::plan::{Place, Plan};
use super::tables;
use super::world::World;

#[derive(Debug, Default)]
pub(super) struct Judge {
    /// For each page that a crawl has requested: the dispatcher, its task, and the last delivery of the task.
    requested: BTreeMap<(CrawlNumber, Place), (usize, u64, Delivery)>,
    /// The number of requests that repeat a page and are excused.
    pub(super) repeats: u64,
    pages: BTreeMap<CrawlNumber, u64>,
    pub(super) longest_outbox: u64,
    pub(super) link_messages: u64,
    pub(super) faults: Vec<String>,
}

impl Judge {
    /// Checks a request for a page through the supervisor of a dispatcher. A second request for a page is excused only
    /// if the dispatcher has died and counted its supervisor as lost before the outcome arrived. Then both requests
    /// belong to the same task, and the second one to a later delivery.
    pub(super) fn check_request(
        &mut self,
        (crawl, place): (CrawlNumber, Place),
        dispatcher: usize,
        task: &Task,
        has_died: bool,
        is_ended: bool,
        plan: &Plan,
    ) {
        let what = format!("{} of crawl {crawl} at dispatcher {dispatcher}", task.url);
        let lease = (dispatcher, task.task, task.delivery);
        let before = self.requested.insert((crawl, place), lease);
        if let Some((_, first, delivery)) =
            before.filter(|before| before.0 == dispatcher && has_died)
            && first == task.task
            && delivery < task.delivery
        {
            self.repeats += 1;
            return;
        }
        if before.is_some() {
            self.faults.push(format!("requested twice: {what}"));
        }
        if plan.owner_of(place.0) != dispatcher {
            self.faults.push(format!("not its site: {what}"));
        }
        if is_ended {
            self.faults.push(format!("after its stop or end: {what}"));
        }
        let pages = self.pages.entry(crawl).or_default();
        *pages += 1;
        if plan.crawls[crawl]
            .most_pages
            .is_some_and(|most| *pages > most)
        {
            self.faults
                .push(format!("over the limit, as the {pages}th: {what}"));
        }
    }

    /// Checks the length of an outbox. A full outbox may only grow by seeds, and by links of tasks that were leased
    /// before.
    pub(super) fn check_outbox(&mut self, dispatcher: usize, len: u64, plan: &Plan) {
        self.longest_outbox = self.longest_outbox.max(len);
        let pages = plan.sites.iter().flatten();
        let most_links = pages.map(Vec::len).max().unwrap_or(0) as u64;
        let seeds: usize = plan.crawls.iter().map(|crawl| crawl.seeds.len()).sum();
        let most = plan.full_outbox + (plan.queue + 1) * most_links + seeds as u64;
        if len > most {
            self.faults.push(format!(
                "{len} links in the outbox of dispatcher {dispatcher}"
            ));
        }
    }

    pub(super) fn note_letter(&mut self, message: &Message) {
        self.link_messages += u64::from(matches!(message, Message::Links { .. }));
    }
}

/// The totals of a crawl in the dispatchers' files.
#[derive(Debug, Default)]
struct CrawlTotals {
    discovered: u64,
    pages: u64,
    queued: u64,
    sent: u64,
    taken: u64,
    spared: u64,
    /// The dispatchers where the crawl is open and not stopped.
    unstopped: Vec<usize>,
    /// The pages that are done, each with the dispatcher that has its task.
    done: BTreeMap<Place, usize>,
    faults: Vec<String>,
}

impl World {
    /// Checks that the numbers in the file of each dispatcher are consistent, and also those of all files together.
    pub(super) fn check_end(&mut self) -> Passed {
        let mut passed = Passed {
            ms: self.now_ms,
            pages: 0,
            repeats: self.judge.repeats,
            sent: 0,
            messages: self.judge.link_messages,
            spared: 0,
            longest_outbox: self.judge.longest_outbox,
        };
        for dispatcher in &self.dispatchers {
            let found = DatabaseObserver::open(&dispatcher.folder).find_faults(&[]);
            let number = dispatcher.number;
            let reported = found
                .into_iter()
                .map(|fault| format!("dispatcher {number}: {fault}"));
            self.judge.faults.extend(reported);
        }
        for crawl in 0..self.plan.crawls.len() {
            let mut sums = self.crawl_totals(crawl);
            let mut found = std::mem::take(&mut sums.faults);
            if self.clients[crawl].is_over {
                found.extend(self.check_crawl(crawl, &sums));
            }
            let reported = found.iter().map(|fault| format!("crawl {crawl}: {fault}"));
            self.judge.faults.extend(reported);
            passed.pages += sums.pages;
            passed.sent += sums.sent;
            passed.spared += sums.spared;
        }
        passed
    }

    fn crawl_totals(&self, crawl: CrawlNumber) -> CrawlTotals {
        let mut sums = CrawlTotals::default();
        for dispatcher in &self.dispatchers {
            let file = dispatcher.folder.join(FILE_NAME);
            let db = Connection::open(file).expect("it is there");
            let row = tables::crawl(&db, crawl).expect("its types");
            let Some(row) = row else { continue };
            let sql = "SELECT discovered, pages, queued FROM crawls WHERE id = ?1";
            let counts = db.query_row(sql, [row.key], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, i64>(2)?,
                ))
            });
            let (discovered, pages, queued) = counts.expect("it is there");
            sums.discovered += discovered as u64;
            sums.pages += pages as u64;
            sums.queued += queued as u64;
            sums.sent += row.sent;
            sums.taken += row.taken;
            sums.spared += row.spared;
            sums.unstopped
                .extend((!row.stopped).then_some(dispatcher.number));
            sums.note_tasks(&db, row.key, dispatcher.number);
        }
        sums
    }

    fn check_crawl(&self, crawl: CrawlNumber, sums: &CrawlTotals) -> Vec<String> {
        let mut faults = Vec::new();
        let planned = &self.plan.crawls[crawl];
        if sums.sent != sums.taken {
            let (sent, taken) = (sums.sent, sums.taken);
            faults.push(format!("{sent} links were sent, and {taken} taken"));
        }
        if self.clients[crawl].is_stopped {
            let going_on = sums.unstopped.first();
            faults.extend(going_on.map(|number| format!("not stopped at dispatcher {number}")));
            return faults;
        }
        // Every seed, and every link of a page that is done, must have been judged exactly once, at one dispatcher.
        let links = sums.done.keys();
        let links: usize = links
            .map(|(site, page)| self.plan.sites[*site][*page].len())
            .sum();
        let found = (links + planned.seeds.len()) as u64;
        if found != sums.discovered + sums.spared {
            let (judged, spared) = (sums.discovered, sums.spared);
            faults.push(format!(
                "{found} links were found, {judged} judged and {spared} spared"
            ));
        }
        let reachable = self.count_reachable(crawl) as u64;
        let expected = planned
            .most_pages
            .map_or(reachable, |most| most.min(reachable));
        if sums.pages != expected || (planned.most_pages.is_none() && sums.queued > 0) {
            let (pages, queued) = (sums.pages, sums.queued);
            faults.push(format!(
                "{pages} pages instead of {expected} when it was over, {queued} queued"
            ));
        }
        faults
    }

    fn count_reachable(&self, crawl: CrawlNumber) -> usize {
        let seeds = self.plan.crawls[crawl].seeds.iter();
        let mut found: BTreeSet<Place> = seeds.map(|url| site_and_page_of(url)).collect();
        let mut unread: VecDeque<Place> = found.iter().copied().collect();
        while let Some((site, page)) = unread.pop_front() {
            for link in &self.plan.sites[site][page] {
                if found.insert(*link) {
                    unread.push_back(*link);
                }
            }
        }
        found.len()
    }
}

impl CrawlTotals {
    fn note_tasks(&mut self, db: &Connection, key: u32, dispatcher: usize) {
        let sql = "SELECT url, outcome = 'ok' FROM tasks WHERE crawl = ?1";
        let mut select = db.prepare(sql).expect("it is SQL");
        let rows = select.query_map([key], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<bool>>(1)?))
        });
        for row in rows.expect("it runs") {
            let (url, is_ok) = row.expect("its types");
            if is_ok != Some(true) {
                continue;
            }
            if let Some(other) = self.done.insert(site_and_page_of(&url), dispatcher) {
                self.faults
                    .push(format!("{url} is done at {other} and at {dispatcher}"));
            }
        }
    }
}
