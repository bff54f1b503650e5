//! The page limit of a crawl over all dispatchers. The crawl's home assigns shares, and the real core treats its
//! share like a page limit of its own. At any time the sum of the shares is at most the limit, and no dispatcher uses
//! more than its share:
//!
//! - a dispatcher gives pages up in a commit before it reports that;
//! - it has one request in progress at a time, numbered, and accepts only the answer to that one;
//! - the home carries out each number once, in order, and repeats the last answer if its request is repeated.

use super::dispatcher::Dispatcher;
use super::message::{CrawlNumber, Message};
use super::sabotage::Sabotage;
use super::tables;

impl Dispatcher {
    /// Requests more pages if the share is used up. Gives back the pages that are not needed.
    pub(super) fn adjust_share(&mut self, crawl: CrawlNumber) {
        if self.plan.crawls[crawl].most_pages.is_none() {
            return;
        }
        let Some(mut row) = self.crawl(crawl).filter(|row| !row.stopped) else {
            return;
        };
        let share = self.share(row.key);
        if let Some(more) = row.asked {
            let kept = self.memory.kept.get(&crawl).copied().unwrap_or(share);
            return self.ask_for_share(crawl, row.request, (kept, more));
        }
        let status = self.core().frontier().crawls().status(row.key);
        let status = status.expect("the database is healthy");
        let used = status.pages + status.leased;
        let more = match status.queued {
            0 if status.leased == 0 && share > used => 0,
            1.. if share <= used => self.plan.share,
            _ => return,
        };
        row.request += 1;
        row.asked = Some(more);
        self.put_crawl(crawl, &row);
        if self.is_sabotaged_by(Sabotage::ReturnedSharesAreUsed) {
            self.memory.kept.insert(crawl, used);
        } else if share > used {
            self.set_share(row.key, used);
        }
        self.ask_for_share(crawl, row.request, (used, more));
    }

    fn ask_for_share(&mut self, crawl: CrawlNumber, request: u64, (kept, more): (u64, u64)) {
        let message = Message::ShareWanted {
            crawl,
            request,
            kept,
            more,
        };
        self.send(self.plan.home(crawl), message);
    }

    pub(super) fn give_share(
        &mut self,
        other: usize,
        crawl: CrawlNumber,
        request: u64,
        (kept, more): (u64, u64),
    ) {
        let Some(most) = self.plan.crawls[crawl].most_pages else {
            return;
        };
        let (last, mut pages) = self.with_db(|db| tables::share(db, crawl, other));
        let is_old = request < last && !self.is_sabotaged_by(Sabotage::OldShareRequestsCount);
        if is_old {
            return;
        }
        if request != last {
            let of_all = self.with_db(|db| tables::share_sum(db, crawl));
            let free = most.saturating_sub(of_all - pages + kept);
            pages = kept + more.min(free);
            self.with_db(|db| tables::put_share(db, crawl, other, (request, pages)));
        }
        let share = Message::Share {
            crawl,
            request,
            pages,
        };
        self.send(other, share);
    }

    pub(super) fn handle_share(&mut self, crawl: CrawlNumber, request: u64, pages: u64) {
        let Some(mut row) = self.crawl(crawl) else {
            return;
        };
        if row.asked.is_some() && row.request == request {
            row.asked = None;
            self.put_crawl(crawl, &row);
            self.memory.kept.remove(&crawl);
            self.set_share(row.key, pages);
        }
    }

    fn share(&mut self, key: u32) -> u64 {
        let spec = self.core().frontier().crawls().spec(key);
        let spec = spec.expect("the database is healthy");
        spec.max_pages.expect("it has a limit")
    }

    fn set_share(&mut self, key: u32, pages: u64) {
        let frontier = self.core().frontier();
        let mut spec = frontier.crawls().spec(key).expect("it is known").clone();
        if spec.max_pages != Some(pages) {
            spec.max_pages = Some(pages);
            let changed = frontier.crawls().upsert(Some(key), spec);
            changed.expect("the database is healthy");
        }
    }
}
