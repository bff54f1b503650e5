//! The rules for reserving a site's next request ([`SiteClock::decide_reservation`]), the same for every backend.
//! SQLite runs them here, MongoDB as an expression in the server.

use crate::cache::{Reservation, ReservationRequest, SITE_KEPT_MS, SiteClockEntry};

/// The bounds of a worker's wait before it tries again while another holder's request is in flight. The end of that
/// request cannot be predicted, so the worker waits for a quarter of its delay, within these bounds.
const LEAST_POLL_MS: u64 = 20;
const MOST_POLL_MS: u64 = 1_000;

/// How long a worker with this delay waits before it checks again whether another's reservation was released.
pub(crate) fn poll_ms(delay_ms: u64) -> u64 {
    (delay_ms / 4).clamp(LEAST_POLL_MS, MOST_POLL_MS)
}

/// The times that a cache knows about a site, by the cache's own clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SiteClock {
    /// When the last request started; the epoch if there was none.
    pub(crate) last_start_ms: i64,
    /// When the last request that had a reservation was answered.
    pub(crate) answered_at_ms: Option<i64>,
    pub(crate) blocked_until_ms: Option<i64>,
    pub(crate) reservation: Option<HeldReservation>,
}

/// A reservation that was granted and has not been released. It may have lapsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldReservation {
    pub(crate) holder: String,
    pub(crate) granted_at_ms: i64,
    pub(crate) lapses_at_ms: i64,
}

impl SiteClock {
    /// The clock of an unknown site.
    pub(crate) const NEVER: SiteClock = SiteClock {
        last_start_ms: 0,
        answered_at_ms: None,
        blocked_until_ms: None,
        reservation: None,
    };

    /// Whether a request may start now. A reservation that has lapsed counts as answered when it lapsed.
    pub(crate) fn decide_reservation(
        &self,
        request: &ReservationRequest,
        now_ms: i64,
    ) -> Reservation {
        let reservation = self.reservation.as_ref();
        if reservation.is_some_and(|reservation| reservation.holder == request.holder) {
            return Reservation::Granted;
        }
        let delay_ms = clamp_to_i64(request.delay_ms);
        let paced = |at_ms: i64| at_ms.saturating_add(delay_ms);
        let known_ms = [
            Some(paced(self.last_start_ms)),
            self.answered_at_ms.map(paced),
            self.blocked_until_ms,
            reservation.map(|reservation| paced(reservation.granted_at_ms)),
        ];
        let known_ms = known_ms.into_iter().flatten().max().unwrap_or(i64::MIN);
        let lapsed_ms = reservation.map(|reservation| paced(reservation.lapses_at_ms));
        let start_ms = match reservation {
            // The reservation may be released before it lapses, so the worker is to try again earlier.
            Some(reservation) if reservation.lapses_at_ms > now_ms => {
                let ask_again_ms = now_ms.saturating_add(clamp_to_i64(poll_ms(request.delay_ms)));
                known_ms
                    .max(ask_again_ms)
                    .min(paced(reservation.lapses_at_ms))
            }
            _ => known_ms.max(lapsed_ms.unwrap_or(i64::MIN)),
        };
        match u64::try_from(start_ms.saturating_sub(now_ms)) {
            Ok(0) | Err(_) => Reservation::Granted,
            Ok(wait_ms) => Reservation::Wait { wait_ms },
        }
    }

    /// The clock in the form for workers that do not use reservations; `None` if it has not changed for
    /// [`SITE_KEPT_MS`]. A reservation that has lapsed counts as answered when it lapsed.
    pub(crate) fn entry(
        self,
        site: &str,
        delay_ms: u64,
        owner: Option<String>,
        now_ms: i64,
    ) -> Option<SiteClockEntry> {
        let reservation = self.reservation.as_ref();
        let granted_at_ms = reservation.map(|reservation| reservation.granted_at_ms);
        let lapses_at_ms = reservation.map(|reservation| reservation.lapses_at_ms);
        let reserved_until_ms = lapses_at_ms.filter(|lapses_at_ms| *lapses_at_ms > now_ms);
        let lapsed_at_ms = lapses_at_ms.filter(|lapses_at_ms| *lapses_at_ms <= now_ms);
        let free_at_ms = lapsed_at_ms.map(|at_ms| at_ms.saturating_add(clamp_to_i64(delay_ms)));
        let last_start_ms = granted_at_ms.map_or(self.last_start_ms, |granted_at_ms| {
            granted_at_ms.max(self.last_start_ms)
        });
        // If the last request was a reserved one, any worker may have made it, so its owner is unknown.
        let owner = owner.filter(|_| granted_at_ms.is_none_or(|at| at <= self.last_start_ms));
        let blocked_until_ms = self.blocked_until_ms.max(free_at_ms);
        let touched_at_ms = [blocked_until_ms, reserved_until_ms, Some(last_start_ms)];
        let touched_at_ms = touched_at_ms.into_iter().flatten().max().unwrap_or(0);
        let is_kept = touched_at_ms >= now_ms.saturating_sub(SITE_KEPT_MS);
        is_kept.then(|| SiteClockEntry {
            site: site.to_owned(),
            last_start_ms,
            delay_ms,
            blocked_until_ms,
            owner,
            reserved_until_ms,
            accepted_ms: None,
        })
    }
}

/// A number as it is stored: times and durations end at `i64::MAX`.
pub(crate) fn clamp_to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(holder: &str) -> ReservationRequest {
        ReservationRequest {
            site: String::from("example.com"),
            holder: holder.to_owned(),
            delay_ms: 1_000,
            longest_request_ms: 5_000,
        }
    }

    fn reserved_clock() -> SiteClock {
        let reservation = HeldReservation {
            holder: String::from("one"),
            granted_at_ms: 10_000,
            lapses_at_ms: 15_000,
        };
        SiteClock {
            reservation: Some(reservation),
            ..SiteClock::default()
        }
    }

    fn wait_reservation(wait_ms: u64) -> Reservation {
        Reservation::Wait { wait_ms }
    }

    #[test]
    fn an_unknown_site_is_granted_at_once() {
        let clock = SiteClock::default();
        assert_eq!(
            clock.decide_reservation(&request("one"), 10_000),
            Reservation::Granted
        );
    }

    #[test]
    fn a_held_reservation_is_granted_again_only_to_its_holder() {
        assert_eq!(
            reserved_clock().decide_reservation(&request("one"), 10_500),
            Reservation::Granted
        );
        assert_eq!(
            reserved_clock().decide_reservation(&request("two"), 10_000),
            wait_reservation(1_000)
        );
        assert_eq!(
            reserved_clock().decide_reservation(&request("two"), 12_000),
            wait_reservation(250)
        );
    }

    #[test]
    fn a_lapsed_reservation_counts_as_answered_when_it_lapsed() {
        assert_eq!(
            reserved_clock().decide_reservation(&request("two"), 14_999),
            wait_reservation(250)
        );
        assert_eq!(
            reserved_clock().decide_reservation(&request("two"), 15_000),
            wait_reservation(1_000)
        );
        assert_eq!(
            reserved_clock().decide_reservation(&request("two"), 16_000),
            Reservation::Granted
        );
    }

    #[test]
    fn a_reservation_is_visible_until_it_lapses_and_then_counts_as_answered() {
        let entry = |now_ms| {
            reserved_clock()
                .entry("example.com", 1_000, None, now_ms)
                .unwrap()
        };
        assert_eq!(entry(14_999).reserved_until_ms, Some(15_000));
        assert_eq!(entry(14_999).blocked_until_ms, None);
        assert_eq!(entry(15_000).reserved_until_ms, None);
        assert_eq!(entry(15_000).blocked_until_ms, Some(16_000));
    }

    #[test]
    fn the_delay_counts_from_the_answer_and_a_block_may_be_longer() {
        let mut clock = SiteClock {
            last_start_ms: 10_000,
            answered_at_ms: Some(12_000),
            ..SiteClock::default()
        };
        assert_eq!(
            clock.decide_reservation(&request("one"), 12_500),
            wait_reservation(500)
        );
        assert_eq!(
            clock.decide_reservation(&request("one"), 13_000),
            Reservation::Granted
        );
        clock.blocked_until_ms = Some(20_000);
        assert_eq!(
            clock.decide_reservation(&request("one"), 13_000),
            wait_reservation(7_000)
        );
    }
}
