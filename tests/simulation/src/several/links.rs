//! Links to sites of other dispatchers. A link is added to the outbox in the same commit as the outcome that contains
//! it. It is sent until the other dispatcher confirms it, and accepted only once.

use std::collections::BTreeMap;

use webfill_scheduler::frontier::Candidate;
use webfill_wire::{CrawlKey, SupervisorOutcomes};

use crate::names::site_and_page_of;

use super::dispatcher::Dispatcher;
use super::message::{CrawlNumber, Link, Message};
use super::sabotage::Sabotage;
use super::tables;

/// Links that are not confirmed after this time, in milliseconds, are sent again.
const AGAIN_MS: i64 = 500;

impl Dispatcher {
    /// Passes outcomes to the core, but only with the links to this dispatcher's own sites. All other links are added
    /// to the outbox in the same commit.
    pub(super) fn handle_outcomes(&mut self, mut outcomes: SupervisorOutcomes, now_ms: i64) {
        for done in &mut outcomes.done {
            let (task, delivery) = (done.task, done.delivery);
            // An outcome under an expired lease is ignored here, because the core ignores it, too.
            let leased = self.with_db(|db| tables::find_leased_task(db, task, delivery));
            let Some((key, depth)) = leased else { continue };
            let is_own = |url: &mut String| self.owner_of(url) == self.number;
            let own: Vec<String> = done.links.extract_if(.., is_own).collect();
            let others = std::mem::replace(&mut done.links, own);
            self.fill_outbox(key, depth + 1, others);
        }
        let taken = self.core().handle_outcomes(outcomes, now_ms);
        taken.expect("the database is healthy");
        for other in self.other_dispatchers() {
            self.send_links(other, now_ms);
        }
    }

    pub(super) fn owner_of(&self, url: &str) -> usize {
        self.plan.owner_of(site_and_page_of(url).0)
    }

    fn fill_outbox(&mut self, key: CrawlKey, depth: u16, urls: Vec<String>) {
        let is_asked = |row: &tables::CrawlRow| row.key == key;
        let known = (0..self.plan.crawls.len())
            .find(|crawl| self.crawl(*crawl).as_ref().is_some_and(is_asked));
        let crawl = known.expect("it has tasks");
        for url in urls {
            self.put_into_outbox(Link { crawl, url, depth });
        }
    }

    pub(super) fn put_into_outbox(&mut self, link: Link) {
        let mut row = self.crawl(link.crawl).expect("it is known");
        if row.stopped {
            return;
        }
        let is_new = self
            .memory
            .sent_lately
            .insert((link.crawl, link.url.clone()));
        let (crawl, receiver) = (link.crawl, self.owner_of(&link.url));
        if !is_new {
            row.spared += 1;
        } else if self.is_sabotaged_by(Sabotage::OutboxIsCommittedLater) {
            return self.memory.uncommitted.push((receiver, link));
        } else {
            row.sent += 1;
            self.memory.outbox_len += 1;
            self.with_db(|db| tables::add_link(db, receiver, &link));
        }
        self.put_crawl(crawl, &row);
    }

    /// Adds links to the outbox only after the outcomes were committed. Only a sabotage calls this.
    pub(super) fn fill_outbox_later(&mut self, now_ms: i64) {
        for (receiver, link) in std::mem::take(&mut self.memory.uncommitted) {
            let mut row = self.crawl(link.crawl).expect("it is known");
            row.sent += 1;
            self.put_crawl(link.crawl, &row);
            self.memory.outbox_len += 1;
            self.with_db(|db| tables::add_link(db, receiver, &link));
        }
        drop(self.commit(now_ms));
    }

    /// Sends the oldest links in the outbox to a dispatcher. Does nothing if links to it are already in transit.
    pub(super) fn send_links(&mut self, receiver: usize, now_ms: i64) {
        let again_ms = self.memory.again_ms.get(&receiver);
        if self.memory.outbox_len == 0 || again_ms.is_some_and(|at_ms| now_ms < *at_ms) {
            return;
        }
        let most = self.plan.batch;
        let first = self.with_db(|db| tables::first_links(db, receiver, most));
        if let Some((first, links)) = first {
            self.memory.again_ms.insert(receiver, now_ms + AGAIN_MS);
            self.send(receiver, Message::Links { first, links });
        }
    }

    pub(super) fn handle_links_confirmation(&mut self, from: usize, up_to: u64, now_ms: i64) {
        let confirmed = self.with_db(|db| tables::remove_confirmed_links(db, from, up_to));
        if confirmed > 0 {
            self.memory.outbox_len -= confirmed as u64;
            self.memory.again_ms.remove(&from);
            self.send_links(from, now_ms);
        }
    }

    /// Accepts the links that were not accepted before. The sender begins with its first unconfirmed link, so none is
    /// missing. Links are accepted even if this dispatcher's own outbox is full, because otherwise dispatchers could
    /// wait for each other.
    pub(super) fn handle_links(&mut self, from: usize, first: u64, links: &[Link], now_ms: i64) {
        let mut taken = self.with_db(|db| tables::taken_count(db, from));
        let mut of_crawls: BTreeMap<CrawlNumber, Vec<&Link>> = BTreeMap::new();
        for (number, link) in (first..).zip(links) {
            if number <= taken && !self.is_sabotaged_by(Sabotage::ReceiverDoesNotDedupe) {
                continue;
            }
            if self.crawl(link.crawl).is_some() {
                of_crawls.entry(link.crawl).or_default().push(link);
            } else if !self.is_sabotaged_by(Sabotage::LinksOfUnknownCrawlsAreDropped) {
                let crawl = link.crawl;
                self.send(self.plan.home(crawl), Message::CrawlWanted { crawl });
                break;
            }
            taken = taken.max(number);
        }
        for (crawl, links) in of_crawls {
            self.feed_links(crawl, &links, now_ms);
        }
        self.with_db(|db| tables::set_taken_count(db, from, taken));
        self.send(from, Message::Taken { up_to: taken });
    }

    fn feed_links(&mut self, crawl: CrawlNumber, links: &[&Link], now_ms: i64) {
        let mut row = self.crawl(crawl).expect("it is known");
        row.taken += links.len() as u64;
        self.put_crawl(crawl, &row);
        self.feed_core(row.key, links, now_ms);
    }

    pub(super) fn feed_core(&mut self, key: CrawlKey, links: &[&Link], now_ms: i64) {
        let candidates = links.iter().map(|link| Candidate {
            url: &link.url,
            depth: link.depth,
            priority: None,
            parent: None,
            records: &[],
            attrs: None,
        });
        let candidates: Vec<Candidate<'_>> = candidates.collect();
        let fed = self.core().feed(key, &candidates, now_ms);
        fed.expect("the database is healthy");
    }
}
