//! The order of a run's checks of the pages of one site.
//!
//! A page's *key* says how early its turn is: the lowest goes first. Half of the site's budget is for listings and
//! for the pages that change most often; these are checked in each run. The other half is for all other pages, each
//! due after a gap in proportion to `1 / sqrt(rate)`. Of all ways to spend that half, this one has the shortest mean
//! delay until a change is noticed, and the pages' gaps end where `rate x age^2` is the same for all.
//!
//! A key is a time, which passes. So a page that a run has left unchecked needs no new key: it moves forward among
//! the others. Once it is as old as the longest gap, it precedes all pages but listings, so that no page starves. The
//! longest gap is 90 days, or as long as half of the budget needs for all pages.

/// Every page is checked at least this often, if the site's budget allows it.
pub const LONGEST_GAP_MS: i64 = 90 * DAY_MS;

const DAY_MS: i64 = 86_400_000;

/// Rates are divided into this many buckets, by powers of two of changes per day, from 2^-9 on.
const BUCKETS: u8 = 16;
const LOWEST_POWER: i32 = -9;

/// The number of slots: one per bucket for ordinary pages, followed by one per bucket for listings.
pub const SLOTS: u8 = 2 * BUCKETS;

/// How far new pages are ahead of the pages that change most often.
const NEW_AHEAD_MS: i64 = 3_600_000;

/// The number of a site's pages in a slot. The pages of a slot change about equally often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPages {
    pub slot: u8,
    pub pages: u64,
}

/// The slot (group of pages that change about equally often) of a page that changes this often per day.
pub fn slot_of(per_day: f64, is_listing: bool) -> u8 {
    let power = per_day.max(f64::MIN_POSITIVE).log2().floor() as i32;
    let bucket = (power - LOWEST_POWER).clamp(0, i32::from(BUCKETS) - 1) as u8;
    if is_listing { bucket + BUCKETS } else { bucket }
}

fn bucket_of(slot: u8) -> u8 {
    slot % BUCKETS
}

fn is_listing(slot: u8) -> bool {
    slot >= BUCKETS
}

/// The typical rate of the pages in a bucket, in changes per day.
fn per_day_of(bucket: u8) -> f64 {
    2_f64.powf(f64::from(LOWEST_POWER + i32::from(bucket)) + 0.5)
}

/// The plan of a run for one site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    began_ms: i64,
    period_ms: i64,
    /// Whether all listings are checked in each run.
    has_listings: bool,
    /// The pages of this bucket and of those above it are checked in each run, too.
    from_bucket: u8,
    /// The share of the pages in the next lower bucket that are also checked in each run.
    share: f64,
    /// The gap between checks of a page that changes once per day.
    gap_ms: f64,
    /// How far the pages that are checked in each run are ahead of the others.
    lead_ms: i64,
}

impl Plan {
    /// The plan of a run that begins at a time and repeats after a period. `budget`: the number of the site's pages
    /// that it may check; `None`: enough for all.
    pub fn new(
        pages: &[SlotPages],
        budget: Option<u64>,
        (began_ms, period_ms): (i64, i64),
    ) -> Plan {
        let all = pages
            .iter()
            .fold(0_u64, |all, slot| all.saturating_add(slot.pages));
        let budget = budget.unwrap_or(u64::MAX).clamp(1, all.max(1)) as f64;
        let listings = pages.iter().filter(|slot| is_listing(slot.slot));
        let listings = listings.map(|slot| slot.pages).sum::<u64>() as f64;
        let mut plan = Plan {
            began_ms,
            period_ms: period_ms.max(1),
            has_listings: listings <= budget / 2.0,
            from_bucket: BUCKETS,
            share: 0.0,
            gap_ms: 0.0,
            lead_ms: 0,
        };
        let left = budget / 2.0 - if plan.has_listings { listings } else { 0.0 };
        let used = budget / 2.0 - plan.choose_pages_of_each_run(pages, left);
        plan.set_interval_of_others(pages, (budget - used).max(1.0));
        plan
    }

    /// Chooses the pages that change most often, as many as fit. Returns the budget that is left.
    fn choose_pages_of_each_run(&mut self, pages: &[SlotPages], mut left: f64) -> f64 {
        for bucket in (0..BUCKETS).rev() {
            let of_bucket = |slot: &&SlotPages| {
                bucket_of(slot.slot) == bucket && !(self.has_listings && is_listing(slot.slot))
            };
            let of_bucket = pages.iter().filter(of_bucket);
            let pages = of_bucket.map(|slot| slot.pages).sum::<u64>() as f64;
            if pages > left {
                self.share = left / pages;
                return 0.0;
            }
            left -= pages;
            self.from_bucket = bucket;
        }
        left
    }

    /// Spreads the other pages over several runs, each with room for `room` of them.
    fn set_interval_of_others(&mut self, pages: &[SlotPages], room: f64) {
        let (mut others, mut roots) = (0.0, 0.0);
        for slot in pages {
            let share = 1.0 - self.share_checked_each_run(slot.slot);
            others += share * slot.pages as f64;
            roots += share * slot.pages as f64 * per_day_of(bucket_of(slot.slot)).sqrt();
        }
        let period = self.period_ms as f64;
        self.gap_ms = roots / room * period;
        let round_ms = (2.0 * others / room * period).min(1e15) as i64;
        // The longest gap between checks is shortened by three periods: otherwise it could end just after a run, and
        // the page would wait for the next one.
        let longest_ms = LONGEST_GAP_MS.saturating_sub(self.period_ms.saturating_mul(3));
        self.lead_ms = round_ms.max(longest_ms).max(DAY_MS) / 3 * 2;
    }

    /// The share of a slot's pages that are checked in each run.
    fn share_checked_each_run(&self, slot: u8) -> f64 {
        let bucket = bucket_of(slot);
        match self.has_listings && is_listing(slot) {
            true => 1.0,
            false if bucket >= self.from_bucket => 1.0,
            false if bucket + 1 == self.from_bucket => self.share,
            false => 0.0,
        }
    }

    /// The key (position in the order of checks) of a page that was never checked.
    pub fn key_of_new_page(&self, priority: u8) -> i64 {
        let ahead_ms = NEW_AHEAD_MS.min(self.period_ms / 2);
        // New pages are ordered by their priorities.
        let behind_ms = i64::from(u8::MAX - priority);
        self.began_ms - self.lead_ms - ahead_ms + behind_ms
    }

    /// The key (position in the order of checks) of a page that was last checked at this time, whatever the check's
    /// result.
    pub fn key_of_checked_page(&self, task: u64, slot: u8, per_day: f64, checked_ms: i64) -> i64 {
        if pseudo_random(task) < self.share_checked_each_run(slot) {
            let ahead_ms = match (is_listing(slot), self.has_listings) {
                (true, true) => self.period_ms.saturating_add(LONGEST_GAP_MS),
                (true, false) => self.period_ms,
                (false, _) => 0,
            };
            let next_ms = checked_ms.saturating_add(self.period_ms);
            return next_ms
                .saturating_sub(ahead_ms)
                .saturating_sub(self.lead_ms);
        }
        let gap_ms = self.gap_ms / per_day.max(1e-6).sqrt();
        let most_ms = self.lead_ms / 2;
        let gap_ms = (gap_ms.min(1e15) as i64).clamp(self.period_ms.min(most_ms), most_ms);
        checked_ms.saturating_add(gap_ms)
    }
}

/// A fixed pseudo-random number from 0 to 1 for each page, with neighbouring pages far apart.
fn pseudo_random(task: u64) -> f64 {
    let mixed = (task ^ (task >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pages: &[(f64, bool, u64)], budget: u64) -> Plan {
        let slot_pages = |(per_day, is_listing, pages): &(f64, bool, u64)| SlotPages {
            slot: slot_of(*per_day, *is_listing),
            pages: *pages,
        };
        let pages: Vec<SlotPages> = pages.iter().map(slot_pages).collect();
        Plan::new(&pages, Some(budget), (1_000 * DAY_MS, DAY_MS))
    }

    fn key(plan: &Plan, per_day: f64, is_listing: bool, days_ago: i64) -> i64 {
        let checked_ms = (1_000 - days_ago) * DAY_MS;
        plan.key_of_checked_page(7, slot_of(per_day, is_listing), per_day, checked_ms)
    }

    #[test]
    fn listings_come_first_then_new_pages_then_pages_that_change_often() {
        let plan = plan(
            &[(0.5, true, 20), (1.0, false, 20), (0.01, false, 5_000)],
            200,
        );
        let order = [
            key(&plan, 0.5, true, 1),
            plan.key_of_new_page(50),
            plan.key_of_new_page(40),
            key(&plan, 1.0, false, 1),
            key(&plan, 0.01, false, 60),
            key(&plan, 0.01, false, 10),
            key(&plan, 0.005, false, 10),
        ];
        assert!(order.is_sorted(), "{order:?}");
    }

    #[test]
    fn a_page_that_was_left_for_nearly_ninety_days_comes_before_all_but_listings() {
        let plan = plan(
            &[(0.5, true, 20), (1.0, false, 20), (0.01, false, 2_000)],
            200,
        );
        let left = key(&plan, 0.001, false, 89);
        assert!(left < key(&plan, 1.0, false, 1));
        assert!(
            left > key(&plan, 0.5, true, 1),
            "half of the budget is left"
        );
        assert!(key(&plan, 0.001, false, 80) > key(&plan, 1.0, false, 1));
    }

    #[test]
    fn where_ninety_days_are_too_few_pages_that_change_often_keep_half_of_the_budget() {
        let plan = plan(&[(1.0, false, 20), (0.01, false, 1_000_000)], 100);
        assert!(key(&plan, 0.01, false, 200) > key(&plan, 1.0, false, 1));
    }

    #[test]
    fn listings_that_do_not_fit_compete_by_their_rate() {
        let plan = plan(
            &[(0.01, true, 5_000), (2.0, true, 10), (1.0, false, 20)],
            100,
        );
        let order = [
            key(&plan, 2.0, true, 1),
            key(&plan, 1.0, false, 1),
            key(&plan, 0.01, true, 20),
        ];
        assert!(order.is_sorted(), "{order:?}");
    }

    #[test]
    fn extreme_numbers_cause_no_overflow() {
        let pages = [SlotPages {
            slot: 0,
            pages: u64::MAX,
        }];
        for budget in [None, Some(0), Some(1), Some(u64::MAX)] {
            let plan = Plan::new(&pages, budget, (i64::MAX, i64::MAX));
            for checked_ms in [i64::MIN, 0, i64::MAX] {
                plan.key_of_checked_page(u64::MAX, SLOTS - 1, f64::INFINITY, checked_ms);
                plan.key_of_checked_page(0, 0, 0.0, checked_ms);
            }
        }
    }
}
