//! Orders for checking pages again. Each order knows only the results of a page's earlier checks.

use webfill_scheduler::revisit::{PageClass, Plan, Rate, SLOTS, SlotPages, slot_of};

const DAY_MS: i64 = 86_400_000;

/// The history of a page's checks, and the estimate that each order makes from it.
pub struct PageHistory {
    nth: u64,
    is_listing: bool,
    /// The night of the last check.
    pub checked: Option<u32>,
    rate: Rate,
    nutch: f64,
    storm: f64,
}

impl PageHistory {
    pub fn new(nth: u64, class: PageClass) -> PageHistory {
        PageHistory {
            nth,
            is_listing: class == PageClass::Listing,
            checked: None,
            rate: Rate::prior_rate(class),
            nutch: 1.0,
            storm: 1.0,
        }
    }

    pub fn note_check(&mut self, night: u32, changed: bool) {
        if let Some(last) = self.checked {
            let gap_ms = i64::from(night - last) * DAY_MS;
            self.rate = self.rate.after_check(gap_ms, changed);
            // The next interval in days, as Nutch's `AdaptiveFetchSchedule` computes it by default.
            self.nutch = (self.nutch * if changed { 0.8 } else { 1.4 }).clamp(1.0 / 24.0, 365.0);
            // The next interval in days, as StormCrawler's `AdaptiveScheduler` computes it by default.
            let least = 1.0 / 24.0;
            self.storm = match changed {
                true => 0.5 * self.storm + 0.5 * least,
                false => self.storm * 1.5,
            };
            self.storm = self.storm.clamp(least, 14.0);
        }
        self.checked = Some(night);
    }

    fn slot(&self) -> u8 {
        slot_of(self.rate.per_day(), self.is_listing)
    }

    /// The day when the page is due if it is checked at this interval, in days.
    fn due_day(&self, interval: f64) -> f64 {
        self.checked
            .map_or(f64::MIN, |checked| f64::from(checked) + interval)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    OldestFirst,
    Nutch,
    StormCrawler,
    Webfill,
}

pub const ORDERS: [Order; 4] = [
    Order::OldestFirst,
    Order::Nutch,
    Order::StormCrawler,
    Order::Webfill,
];

impl Order {
    pub fn name(self) -> &'static str {
        match self {
            Order::OldestFirst => "oldest first",
            Order::Nutch => "Nutch",
            Order::StormCrawler => "StormCrawler",
            Order::Webfill => "webfill",
        }
    }

    /// Chooses the pages to check in a night, within the budget.
    pub fn choose(self, pages: &[&PageHistory], night: u32, budget: usize) -> Vec<usize> {
        let now = f64::from(night);
        let mut keys: Vec<(f64, usize)> = match self {
            Order::OldestFirst => keys_with_indices(pages, |page| page.due_day(0.0)),
            Order::Nutch => keys_with_indices(pages, |page| page.due_day(page.nutch)),
            Order::StormCrawler => keys_with_indices(pages, |page| page.due_day(page.storm)),
            Order::Webfill => {
                let plan = make_plan(pages, night, budget);
                keys_with_indices(pages, |page| key(&plan, page) as f64)
            }
        };
        if matches!(self, Order::Nutch | Order::StormCrawler) {
            keys.retain(|(due, _)| *due <= now);
        }
        keys.sort_by(|one, other| one.0.total_cmp(&other.0));
        keys.truncate(budget);
        keys.into_iter().map(|(_, nth)| nth).collect()
    }
}

fn keys_with_indices(
    pages: &[&PageHistory],
    key: impl Fn(&PageHistory) -> f64,
) -> Vec<(f64, usize)> {
    let pages = pages.iter().enumerate();
    pages.map(|(nth, page)| (key(page), nth)).collect()
}

fn make_plan(pages: &[&PageHistory], night: u32, budget: usize) -> Plan {
    let mut counts = [0; SLOTS as usize];
    for page in pages {
        counts[page.slot() as usize] += 1;
    }
    let slots = (0..SLOTS).map(|slot| SlotPages {
        slot,
        pages: counts[slot as usize],
    });
    let slots: Vec<SlotPages> = slots.collect();
    let times = (i64::from(night) * DAY_MS, DAY_MS);
    Plan::new(&slots, Some(budget as u64), times)
}

fn key(plan: &Plan, page: &PageHistory) -> i64 {
    match page.checked {
        None => plan.key_of_new_page(50),
        Some(checked) => {
            let checked_ms = i64::from(checked) * DAY_MS;
            plan.key_of_checked_page(page.nth, page.slot(), page.rate.per_day(), checked_ms)
        }
    }
}
