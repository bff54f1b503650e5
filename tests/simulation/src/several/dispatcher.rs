//! One of the dispatchers: the real core with its real frontier, and the additional parts that several dispatchers
//! need. Its durable state is in the frontier's own file and commits ([`tables`](super::tables)). Its state in memory
//! is lost when it dies, which does no harm.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use rusqlite::Connection;
use webfill_scheduler::effects::Committed;
use webfill_scheduler::frontier::{Frontier, FrontierConfig};
use webfill_scheduler::{Core, CoreSettings, Mappings};

use super::ending::CountWave;
use super::message::{CrawlNumber, Link, Message};
use super::plan::Plan;
use super::sabotage::Sabotage;
use super::slots::DISPATCHERS;
use super::tables::{self, CrawlRow};

pub(super) struct Dispatcher {
    pub(super) number: usize,
    pub(super) plan: Rc<Plan>,
    pub(super) folder: PathBuf,
    pub(super) sabotage: Option<Sabotage>,
    core: Option<Core>,
    /// The number of times that the dispatcher has been started.
    pub(super) life: u32,
    pub(super) memory: VolatileState,
}

#[derive(Default)]
pub(super) struct VolatileState {
    /// What to send after the next commit: `letters` to other dispatchers, and `answers` to the client.
    pub(super) letters: Vec<(usize, Message)>,
    pub(super) answers: Vec<Answer>,
    /// Links that are or were in the outbox, so that they are not added to it twice.
    pub(super) sent_lately: HashSet<(CrawlNumber, String)>,
    /// For each dispatcher that has not confirmed its links, the time when they are sent again.
    pub(super) again_ms: BTreeMap<usize, i64>,
    pub(super) outbox_len: u64,
    /// For each crawl that this dispatcher is responsible for, the dispatchers that have carried out its latest version:
    /// that it is open, or that it is stopped.
    pub(super) confirmed: BTreeMap<CrawlNumber, BTreeSet<usize>>,
    /// The crawls that the core was asked to stop, each with whether it has stopped.
    pub(super) stops: BTreeMap<CrawlNumber, bool>,
    /// The crawls whose stop the client waits for.
    pub(super) stops_asked: BTreeSet<CrawlNumber>,
    pub(super) waves: BTreeMap<CrawlNumber, CountWave>,
    pub(super) waves_begun: u64,
    /// Links that a sabotage adds to the outbox in a later commit.
    pub(super) uncommitted: Vec<(usize, Link)>,
    /// For each crawl, the number of pages that were reported as kept. Only a sabotage uses them.
    pub(super) kept: BTreeMap<CrawlNumber, u64>,
}

/// An answer to the client.
#[derive(Debug)]
pub(super) enum Answer {
    Opened(CrawlNumber),
    /// The crawl, and the number of its accepted seeds.
    Fed(CrawlNumber, usize),
    SeedsEnded(CrawlNumber),
    Stopped(CrawlNumber),
    Over(CrawlNumber),
}

impl Dispatcher {
    pub(super) fn new(
        number: usize,
        plan: &Rc<Plan>,
        folder: PathBuf,
        sabotage: Option<Sabotage>,
    ) -> Dispatcher {
        Dispatcher {
            number,
            plan: Rc::clone(plan),
            folder,
            sabotage,
            core: None,
            life: 0,
            memory: VolatileState::default(),
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.core.is_some()
    }

    pub(super) fn start(&mut self, now_ms: i64) {
        self.life += 1;
        self.memory = VolatileState::default();
        let config = FrontierConfig {
            seen_memory_bytes: 1 << 20,
            page_cache_bytes: 2 << 20,
            ..FrontierConfig::default()
        };
        let mut frontier = Frontier::open(&self.folder, config, now_ms).expect("it opens");
        let loses_outbox = self.is_sabotaged_by(Sabotage::OutboxIsNotDurable);
        let created = frontier.run_in_transaction(|db| {
            tables::create(db)?;
            if loses_outbox {
                tables::empty_outbox(db)?;
            }
            tables::outbox_len(db)
        });
        self.memory.outbox_len = created.expect("the database is healthy");
        let settings = CoreSettings {
            default_delay_ms: self.plan.delay_ms as u32,
            group_bounds: None,
            lease_ms: self.plan.lease_ms,
            window_sites: self.plan.window_sites,
        };
        let core = Core::open(frontier, settings, Mappings::default(), now_ms);
        self.core = Some(core.expect("it continues"));
        let committed = self.commit(now_ms);
        assert!(committed.outgoing.is_empty(), "nobody is connected yet");
    }

    /// Kills the dispatcher. Everything that was not committed is lost.
    pub(super) fn die(&mut self) {
        self.core = None;
    }

    pub(super) fn core(&mut self) -> &mut Core {
        self.core.as_mut().expect("it is up")
    }

    pub(super) fn with_db<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> T {
        let done = self.core().frontier().run_in_transaction(work);
        done.expect("the database is healthy")
    }

    pub(super) fn is_sabotaged_by(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage)
    }

    pub(super) fn crawl(&mut self, crawl: CrawlNumber) -> Option<CrawlRow> {
        self.with_db(|db| tables::crawl(db, crawl))
    }

    pub(super) fn put_crawl(&mut self, crawl: CrawlNumber, row: &CrawlRow) {
        self.with_db(|db| tables::put_crawl(db, crawl, row));
    }

    pub(super) fn send(&mut self, other: usize, message: Message) {
        self.memory.letters.push((other, message));
    }

    pub(super) fn other_dispatchers(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.number;
        (0..DISPATCHERS).filter(move |other| *other != own)
    }

    pub(super) fn handle(&mut self, from: usize, message: Message, now_ms: i64) {
        match message {
            Message::Links { first, links } => self.handle_links(from, first, &links, now_ms),
            Message::Taken { up_to } => self.handle_links_confirmation(from, up_to, now_ms),
            Message::Crawl {
                crawl,
                version,
                stopped,
            } => self.handle_version(crawl, version, stopped, now_ms),
            Message::CrawlTaken { crawl, version } => {
                self.handle_version_confirmation(from, crawl, version);
            }
            Message::CrawlWanted { crawl } => self.send_version(from, crawl),
            Message::ShareWanted {
                crawl,
                request,
                kept,
                more,
            } => self.give_share(from, crawl, request, (kept, more)),
            Message::Share {
                crawl,
                request,
                pages,
            } => self.handle_share(crawl, request, pages),
            Message::CountsWanted { crawl, wave } => self.send_counts(from, crawl, wave),
            Message::Counts {
                crawl,
                wave,
                counts,
            } => self.handle_counts(from, crawl, wave, counts),
        }
    }

    /// Repeats unanswered messages, and takes the next step of each crawl.
    pub(super) fn tick(&mut self, now_ms: i64) {
        for other in self.other_dispatchers() {
            self.send_links(other, now_ms);
        }
        for crawl in 0..self.plan.crawls.len() {
            if self.plan.home(crawl) == self.number {
                self.send_version_to_others(crawl, now_ms);
                self.begin_wave_if_due(crawl, now_ms);
            }
            self.adjust_share(crawl);
        }
    }

    /// Runs the end of each turn of the real dispatcher's loop, without the commit. While the outbox is full, no tasks
    /// are handed out, so it only grows by the links of tasks that are already leased.
    pub(super) fn run_turn_end(&mut self, now_ms: i64) {
        let is_held = self.is_held();
        let core = self.core();
        let mut done = core.on_tick(now_ms);
        if !is_held {
            done = done.and_then(|()| core.hand_out(now_ms));
        }
        done.expect("the database is healthy");
    }

    pub(super) fn is_held(&self) -> bool {
        self.memory.outbox_len > self.plan.full_outbox
            && !self.is_sabotaged_by(Sabotage::FullOutboxesDoNotHold)
    }

    pub(super) fn commit(&mut self, now_ms: i64) -> Committed {
        let committed = self.core().commit(now_ms);
        committed.expect("the database is healthy")
    }

    /// When the core next has something to do, if no message arrives earlier.
    pub(super) fn next_wake_ms(&mut self) -> i64 {
        let is_held = self.is_held();
        let core = self.core();
        let tick_ms = core.next_tick_ms();
        match core.next_ready_ms().filter(|_| !is_held) {
            Some(ready_ms) => ready_ms.min(tick_ms),
            None => tick_ms,
        }
    }
}
