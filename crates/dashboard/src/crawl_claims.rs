//! Whether the processes that run crawls are alive, by the claims that they renew in the store.
//!
//! If a claim is not renewed for [`LAPSES_AFTER`], its process has died or hangs. The dashboard measures this time by its
//! own clock, so one reading is not enough to judge a claim.

use std::collections::BTreeMap;
use std::time::Instant;

use webfill_store::{CrawlClaim, LAPSES_AFTER};

/// The claims to crawls as they were last read, by crawl. A process renews its claim as long as it runs the crawl.
#[derive(Debug, Default)]
pub(crate) struct CrawlClaims(BTreeMap<String, SeenClaim>);

#[derive(Debug)]
struct SeenClaim {
    owner: String,
    beat: i64,
    /// When the claim was first read with its present owner and beat (its count of renewals).
    seen: Instant,
    /// When the dashboard noticed the last renewal, in milliseconds since 1970; `None` if it has noticed none.
    renewed_ms: Option<i64>,
}

/// Whether the process that holds a claim is alive, as far as the claim shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimState {
    /// The claim was not observed for long enough to say.
    NotKnown,
    Renewed,
    /// The claim was not renewed in time. The value is when its last renewal was noticed; `None` if none was.
    Lapsed(Option<i64>),
}

impl CrawlClaims {
    /// Removes all claims except those to these crawls.
    pub(crate) fn retain_crawls(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.0.retain(|crawl, _| is_kept(crawl));
    }

    /// Compares a claim that was just read with its earlier readings, to find out whether it is renewed.
    pub(crate) fn observe_claim(
        &mut self,
        claim: &CrawlClaim,
        now: Instant,
        now_ms: i64,
    ) -> ClaimState {
        let crawl = claim.crawl.to_string();
        let before = self.0.get(&crawl);
        if let Some(before) = before
            && (&before.owner, before.beat) == (&claim.owner, claim.beat)
        {
            return match now.duration_since(before.seen) >= LAPSES_AFTER {
                true => ClaimState::Lapsed(before.renewed_ms),
                false if before.renewed_ms.is_some() => ClaimState::Renewed,
                false => ClaimState::NotKnown,
            };
        }
        let is_renewed = before.is_some();
        let seen = SeenClaim {
            owner: claim.owner.clone(),
            beat: claim.beat,
            seen: now,
            renewed_ms: is_renewed.then_some(now_ms),
        };
        self.0.insert(crawl, seen);
        match is_renewed {
            true => ClaimState::Renewed,
            false => ClaimState::NotKnown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use webfill_store::CrawlId;

    use super::*;

    fn claim(beat: i64) -> CrawlClaim {
        CrawlClaim {
            crawl: CrawlId::new("local", "books"),
            owner: "one".into(),
            folder: "here".into(),
            holder: "process 1".into(),
            since_ms: 0,
            beat,
        }
    }

    #[test]
    fn a_claim_that_is_not_renewed_lapses() {
        let (mut claims, began) = (CrawlClaims::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(
            claims.observe_claim(&claim(7), began, 0),
            ClaimState::NotKnown
        );
        let soon = began + LAPSES_AFTER - second;
        assert_eq!(
            claims.observe_claim(&claim(7), soon, 1),
            ClaimState::NotKnown
        );
        let late = began + LAPSES_AFTER;
        assert_eq!(
            claims.observe_claim(&claim(7), late, 2),
            ClaimState::Lapsed(None)
        );
        assert_eq!(
            claims.observe_claim(&claim(8), late, 3),
            ClaimState::Renewed
        );
        assert_eq!(
            claims.observe_claim(&claim(8), late, 4),
            ClaimState::Renewed
        );
        let later = late + LAPSES_AFTER;
        assert_eq!(
            claims.observe_claim(&claim(8), later, 5),
            ClaimState::Lapsed(Some(3))
        );
        claims.retain_crawls(|crawl| crawl != "local/books");
        assert_eq!(
            claims.observe_claim(&claim(8), later, 6),
            ClaimState::NotKnown
        );
    }
}
