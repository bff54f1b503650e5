//! Crawls at all dispatchers. Each crawl has a home, which numbers the versions of the crawl. The first version opens
//! the crawl, and a later one stops it. The home sends a version until every dispatcher has carried it out.

use serde_json::{Value, json};
use webfill_scheduler::control;
use webfill_scheduler::effects::Client;

use super::dispatcher::{Answer, Dispatcher};
use super::message::{CrawlNumber, Link, Message};
use super::sabotage::Sabotage;
use super::slots::DISPATCHERS;

/// The request number for requests to the core that are answered immediately.
const AT_ONCE: u64 = u64::MAX;

impl Dispatcher {
    pub(super) fn open_crawl(&mut self, crawl: CrawlNumber, now_ms: i64) {
        if self.crawl(crawl).is_none() {
            self.apply_version(crawl, 1, false, now_ms);
        }
        self.memory.answers.push(Answer::Opened(crawl));
    }

    /// Accepts up to `most` seeds, beginning with the seed number `fed`. Seeds at sites of other dispatchers are added
    /// to the outbox, which sends them there.
    pub(super) fn feed_seeds(&mut self, crawl: CrawlNumber, fed: usize, most: usize, now_ms: i64) {
        let mut row = self.crawl(crawl).expect("it is open");
        let plan = self.plan.clone();
        let seeds = &plan.crawls[crawl].seeds;
        let until = seeds.len().min(fed + most);
        if until > row.fed {
            let seeds = seeds[row.fed..until].iter().cloned();
            row.fed = until;
            self.put_crawl(crawl, &row);
            let link = |url| Link {
                crawl,
                url,
                depth: 0,
            };
            let (own, others): (Vec<Link>, Vec<Link>) = seeds
                .map(link)
                .partition(|link| self.owner_of(&link.url) == self.number);
            self.feed_core(row.key, &own.iter().collect::<Vec<_>>(), now_ms);
            for link in others {
                self.put_into_outbox(link);
            }
        }
        self.memory.answers.push(Answer::Fed(crawl, until));
    }

    pub(super) fn end_seeds(&mut self, crawl: CrawlNumber) {
        let mut row = self.crawl(crawl).expect("it is open");
        row.seeds_ended = true;
        self.put_crawl(crawl, &row);
        self.memory.answers.push(Answer::SeedsEnded(crawl));
    }

    pub(super) fn stop_crawl(&mut self, crawl: CrawlNumber, now_ms: i64) {
        let row = self.crawl(crawl).expect("it is open");
        if !row.stopped {
            self.memory.confirmed.remove(&crawl);
            self.apply_version(crawl, row.version + 1, true, now_ms);
        }
        self.memory.stops_asked.insert(crawl);
        self.answer_stop(crawl);
    }

    /// Carries out a version of a crawl. It takes effect at this dispatcher with the next commit.
    fn apply_version(&mut self, crawl: CrawlNumber, version: u64, stopped: bool, now_ms: i64) {
        let known = self.crawl(crawl);
        let is_open = known.as_ref().is_some_and(|row| !row.stopped);
        let mut row = known.unwrap_or_default();
        if !is_open {
            row.key = self.open_in_core(crawl, now_ms);
        }
        (row.version, row.stopped) = (version, stopped);
        self.put_crawl(crawl, &row);
        if stopped {
            self.stop_in_core(crawl, now_ms);
        }
    }

    /// Opens a crawl in the core. A crawl with a page limit begins with a limit of 0, until its home gives this
    /// dispatcher a share.
    fn open_in_core(&mut self, crawl: CrawlNumber, now_ms: i64) -> u32 {
        let planned = &self.plan.crawls[crawl];
        let (id, most_pages) = (planned.id, planned.most_pages);
        let mut spec = json!({"app_id": "app", "crawl_id": id, "max_depth": 1_000, "follow": "all",
                              "retry": true});
        if most_pages.is_some() {
            spec["max_pages"] = json!(0);
        }
        self.send_to_core(
            AT_ONCE,
            &json!({"action": "open_crawl", "spec": spec}),
            now_ms,
        );
        let key = self.core().frontier().crawls().find("app", id);
        key.expect("the database is healthy").expect("it is open")
    }

    fn stop_in_core(&mut self, crawl: CrawlNumber, now_ms: i64) {
        self.memory.stops.insert(crawl, false);
        let id = self.plan.crawls[crawl].id;
        let stop = json!({"action": "stop", "appid": "app", "crawlid": id});
        self.send_to_core(crawl as u64, &stop, now_ms);
    }

    fn send_to_core(&mut self, number: u64, request: &Value, now_ms: i64) {
        let asked = control::parse_request(request.to_string().as_bytes(), now_ms);
        let client = Client::Http(number.into());
        let done = self.core().handle_request(client, asked, now_ms);
        done.expect("the database is healthy");
    }

    /// Handles the core's answer to a stop. From now on, no task of the crawl starts at this dispatcher.
    pub(super) fn handle_core_answer(&mut self, number: u64) {
        if number == AT_ONCE {
            return;
        }
        let crawl = number as CrawlNumber;
        self.memory.stops.insert(crawl, true);
        let version = self.crawl(crawl).map_or(0, |row| row.version);
        let home = self.plan.home(crawl);
        if home == self.number {
            self.handle_version_confirmation(home, crawl, version);
        } else {
            self.send(home, Message::CrawlTaken { crawl, version });
        }
    }

    pub(super) fn handle_version(
        &mut self,
        crawl: CrawlNumber,
        version: u64,
        stopped: bool,
        now_ms: i64,
    ) {
        let known = self.crawl(crawl).unwrap_or_default();
        let is_other = version != known.version;
        if version > known.version
            || (is_other && self.is_sabotaged_by(Sabotage::OlderVersionsCount))
        {
            self.apply_version(crawl, version, stopped, now_ms);
        }
        let Some(row) = self.crawl(crawl) else { return };
        self.repeat_stop(crawl, row.stopped, now_ms);
        if !row.stopped || self.memory.stops.get(&crawl) == Some(&true) {
            let version = row.version;
            self.send(
                self.plan.home(crawl),
                Message::CrawlTaken { crawl, version },
            );
        }
    }

    /// Repeats a committed stop, because the core may have died before it stopped the crawl.
    fn repeat_stop(&mut self, crawl: CrawlNumber, stopped: bool, now_ms: i64) {
        if stopped && !self.memory.stops.contains_key(&crawl) {
            self.stop_in_core(crawl, now_ms);
        }
    }

    /// Sends the current version of a crawl to the other dispatchers, until they have carried it out.
    pub(super) fn send_version_to_others(&mut self, crawl: CrawlNumber, now_ms: i64) {
        let Some(row) = self.crawl(crawl) else { return };
        self.repeat_stop(crawl, row.stopped, now_ms);
        let confirmed = self.memory.confirmed.entry(crawl).or_default().clone();
        for other in self
            .other_dispatchers()
            .filter(|other| !confirmed.contains(other))
        {
            self.send_version(other, crawl);
        }
    }

    pub(super) fn send_version(&mut self, other: usize, crawl: CrawlNumber) {
        if let Some(row) = self.crawl(crawl) {
            let (version, stopped) = (row.version, row.stopped);
            let message = Message::Crawl {
                crawl,
                version,
                stopped,
            };
            self.send(other, message);
        }
    }

    pub(super) fn handle_version_confirmation(
        &mut self,
        from: usize,
        crawl: CrawlNumber,
        version: u64,
    ) {
        if self.crawl(crawl).is_some_and(|row| row.version == version) {
            let confirmed = self.memory.confirmed.entry(crawl).or_default();
            confirmed.insert(from);
            self.answer_stop(crawl);
        }
    }

    /// Whether all other dispatchers have carried out the current version.
    pub(super) fn is_in_force(&self, crawl: CrawlNumber) -> bool {
        let others = self.memory.confirmed.get(&crawl);
        let others = others.map_or(0, |all| {
            all.iter().filter(|one| **one != self.number).count()
        });
        others == DISPATCHERS - 1
    }

    /// Answers a stop as soon as no task of the crawl can start at any dispatcher.
    fn answer_stop(&mut self, crawl: CrawlNumber) {
        let is_asked = self.memory.stops_asked.contains(&crawl);
        let is_own_done = self.memory.stops.get(&crawl) == Some(&true);
        let is_done = is_own_done
            && (self.is_in_force(crawl) || self.is_sabotaged_by(Sabotage::StopIsAnsweredEarly));
        if is_asked && is_done {
            self.memory.answers.push(Answer::Stopped(crawl));
        }
    }
}
