//! Simulates pages that change, and measures how soon the changes are noticed.

use fastrand::Rng;
use webfill_scheduler::revisit::PageClass;

use crate::orders::{Order, PageHistory};

pub const PAGES: usize = 1_500;
const LEARNT: u32 = 60;
const JUDGED: u32 = 60;
/// The number of all nights: nights for learning, judged nights, and 120 more for noticing the last changes.
const NIGHTS: u32 = LEARNT + JUDGED + 120;
const WRONG_CLASS: f64 = 0.1;

/// A simulated page, and the history of its checks.
pub struct Page {
    /// The mean number of changes a day.
    rate: f64,
    pub known: PageHistory,
    /// The times of unnoticed changes, in days.
    unnoticed: Vec<f64>,
}

pub struct World {
    pages: Vec<Page>,
    random: Rng,
}

/// The delays from changes until they were noticed, in days.
#[derive(Default)]
pub struct ChangeDelays {
    pub delays: Vec<f64>,
    /// The longest time between two checks of a page, in nights.
    pub longest_gap: u32,
}

impl ChangeDelays {
    /// The share of changes that the next run notices.
    pub fn next_run_share(&self) -> f64 {
        let soon = self.delays.iter().filter(|delay| **delay <= 1.0).count();
        soon as f64 / self.delays.len() as f64
    }

    pub fn mean(&self) -> f64 {
        self.delays.iter().sum::<f64>() / self.delays.len() as f64
    }

    /// A percentile of sorted delays.
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.delays.len() - 1;
        self.delays[(last as f64 * share) as usize]
    }
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut random = Rng::with_seed(seed);
        let pages = (0..PAGES).map(|nth| {
            let (rate, class) = match nth * 100 / PAGES {
                0..5 => (1.0, PageClass::Listing),
                5..30 => (1.0 / 14.0, PageClass::Other),
                _ => (1.0 / 365.0, PageClass::Document),
            };
            let any = [PageClass::Listing, PageClass::Other, PageClass::Document];
            let class = match random.f64() < WRONG_CLASS {
                true => any[random.usize(0..any.len())],
                false => class,
            };
            Page {
                rate,
                known: PageHistory::new(nth as u64, class),
                unnoticed: Vec::new(),
            }
        });
        let pages = pages.collect();
        World { pages, random }
    }

    /// Simulates one run of checks in each night, and adds the delays of noticed changes to `judged`.
    pub fn run(mut self, order: Order, budget: usize, judged: &mut ChangeDelays) {
        for night in 0..NIGHTS {
            self.apply_changes(f64::from(night));
            let known: Vec<&PageHistory> = self.pages.iter().map(|page| &page.known).collect();
            for nth in order.choose(&known, night, budget) {
                self.check_page(nth, night, judged);
            }
        }
        // Changes that are still unnoticed at the end count with their delay so far.
        for page in &self.pages {
            let left = page.unnoticed.iter().filter(|at| is_judged(**at));
            judged.delays.extend(left.map(|at| f64::from(NIGHTS) - at));
        }
    }

    /// Applies the changes of the day before this night to the pages.
    fn apply_changes(&mut self, night: f64) {
        for page in &mut self.pages {
            let mut at = night - 1.0;
            loop {
                at += -self.random.f64().max(f64::MIN_POSITIVE).ln() / page.rate;
                if at >= night {
                    break;
                }
                page.unnoticed.push(at);
            }
        }
    }

    fn check_page(&mut self, nth: usize, night: u32, judged: &mut ChangeDelays) {
        let page = &mut self.pages[nth];
        let changes = std::mem::take(&mut page.unnoticed);
        let delays = changes.iter().filter(|at| is_judged(**at));
        judged.delays.extend(delays.map(|at| f64::from(night) - at));
        if let Some(last) = page.known.checked {
            judged.longest_gap = judged.longest_gap.max(night - last);
        }
        page.known.note_check(night, !changes.is_empty());
    }
}

fn is_judged(at: f64) -> bool {
    (f64::from(LEARNT)..f64::from(LEARNT + JUDGED)).contains(&at)
}
