//! The rules by which a site's next request is granted, the same for every backend.

use crate::cache::{SITE_KEPT_MS, SiteEntry, Slot, SlotClaim};

/// While somebody else's request is under way, its end cannot be foretold: it is asked for again
/// after a quarter of the delay, within these bounds.
const LEAST_POLL_MS: u64 = 20;
const MOST_POLL_MS: u64 = 1_000;

/// What a cache knows of a site, by the cache's own clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SiteClock {
    /// Of a request; the epoch if there was none.
    pub(crate) last_start_ms: i64,
    /// Of a request that had a slot.
    pub(crate) answered_at_ms: Option<i64>,
    pub(crate) blocked_until_ms: Option<i64>,
    pub(crate) slot: Option<HeldSlot>,
}

/// A slot that was granted and not given back; lapsed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldSlot {
    pub(crate) holder: String,
    pub(crate) granted_at_ms: i64,
    pub(crate) lapses_at_ms: i64,
}

impl SiteClock {
    /// Of a site that nothing is known of.
    pub(crate) const NEVER: SiteClock = SiteClock {
        last_start_ms: 0,
        answered_at_ms: None,
        blocked_until_ms: None,
        slot: None,
    };

    /// Whether a claim is granted now. A slot that lapsed counts as answered when it lapsed.
    pub(crate) fn decide(&self, claim: &SlotClaim, now_ms: i64) -> Slot {
        let slot = self.slot.as_ref();
        if slot.is_some_and(|slot| slot.holder == claim.holder) {
            return Slot::Granted;
        }
        let delay_ms = clamped(claim.delay_ms);
        let paced = |at_ms: i64| at_ms.saturating_add(delay_ms);
        let known_ms = [
            Some(paced(self.last_start_ms)),
            self.answered_at_ms.map(paced),
            self.blocked_until_ms,
            slot.map(|slot| paced(slot.granted_at_ms)),
        ];
        let known_ms = known_ms.into_iter().flatten().max().unwrap_or(i64::MIN);
        let lapsed_ms = slot.map(|slot| paced(slot.lapses_at_ms));
        let start_ms = match slot {
            // It may be given back before it lapses.
            Some(slot) if slot.lapses_at_ms > now_ms => {
                let poll_ms = (claim.delay_ms / 4).clamp(LEAST_POLL_MS, MOST_POLL_MS);
                let ask_again_ms = now_ms.saturating_add(clamped(poll_ms));
                known_ms.max(ask_again_ms).min(paced(slot.lapses_at_ms))
            }
            _ => known_ms.max(lapsed_ms.unwrap_or(i64::MIN)),
        };
        match u64::try_from(start_ms.saturating_sub(now_ms)) {
            Ok(0) | Err(_) => Slot::Granted,
            Ok(wait_ms) => Slot::Wait { wait_ms },
        }
    }

    /// The clock as those see it who claim no slots: a granted slot blocks the site until nobody
    /// can use it any more. `None` if it is too old to be kept.
    pub(crate) fn entry(
        self,
        site: &str,
        delay_ms: u64,
        owner: Option<String>,
        now_ms: i64,
    ) -> Option<SiteEntry> {
        let slot = self.slot.as_ref();
        let granted_at_ms = slot.map(|slot| slot.granted_at_ms);
        let free_at_ms = slot.map(|slot| slot.lapses_at_ms.saturating_add(clamped(delay_ms)));
        let last_start_ms = granted_at_ms.map_or(self.last_start_ms, |granted_at_ms| {
            granted_at_ms.max(self.last_start_ms)
        });
        let blocked_until_ms = self.blocked_until_ms.max(free_at_ms);
        let touched_at_ms = blocked_until_ms.unwrap_or(last_start_ms).max(last_start_ms);
        let is_kept = touched_at_ms >= now_ms.saturating_sub(SITE_KEPT_MS);
        is_kept.then(|| SiteEntry {
            site: site.to_owned(),
            last_start_ms,
            delay_ms,
            blocked_until_ms,
            owner,
        })
    }
}

/// Stored times and durations end at `i64::MAX`.
pub(crate) fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(holder: &str) -> SlotClaim {
        SlotClaim {
            site: String::from("example.com"),
            holder: holder.to_owned(),
            delay_ms: 1_000,
            longest_request_ms: 5_000,
        }
    }

    fn held() -> SiteClock {
        let slot = HeldSlot {
            holder: String::from("one"),
            granted_at_ms: 10_000,
            lapses_at_ms: 15_000,
        };
        SiteClock {
            slot: Some(slot),
            ..SiteClock::default()
        }
    }

    fn wait(wait_ms: u64) -> Slot {
        Slot::Wait { wait_ms }
    }

    #[test]
    fn an_unknown_site_is_granted_at_once() {
        let clock = SiteClock::default();
        assert_eq!(clock.decide(&claim("one"), 10_000), Slot::Granted);
    }

    #[test]
    fn a_held_slot_is_granted_again_to_its_holder_only() {
        assert_eq!(held().decide(&claim("one"), 10_500), Slot::Granted);
        assert_eq!(held().decide(&claim("two"), 10_000), wait(1_000));
        assert_eq!(held().decide(&claim("two"), 12_000), wait(250));
    }

    #[test]
    fn a_lapsed_slot_counts_as_answered_when_it_lapsed() {
        assert_eq!(held().decide(&claim("two"), 14_999), wait(250));
        assert_eq!(held().decide(&claim("two"), 15_000), wait(1_000));
        assert_eq!(held().decide(&claim("two"), 16_000), Slot::Granted);
    }

    #[test]
    fn the_delay_counts_from_the_answer_and_a_block_may_be_longer() {
        let mut clock = SiteClock {
            last_start_ms: 10_000,
            answered_at_ms: Some(12_000),
            ..SiteClock::default()
        };
        assert_eq!(clock.decide(&claim("one"), 12_500), wait(500));
        assert_eq!(clock.decide(&claim("one"), 13_000), Slot::Granted);
        clock.blocked_until_ms = Some(20_000);
        assert_eq!(clock.decide(&claim("one"), 13_000), wait(7_000));
    }
}
