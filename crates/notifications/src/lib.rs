//! Reports the news of watches to their recipients.
//!
//! [`Reported::find_news`] finds the news of a watch (including [`silence`]), and [`compose`] makes a notification of
//! it. A [`Courier`] delivers notifications to webhooks, mail, commands and files (`targets`). This crate stores
//! nothing. In one transaction, the caller stores the reported state and the waiting notifications (the outbox). It
//! repeats a delivery under the same key until the delivery succeeds, so a notification arrives at least once.
//! Receivers recognise repetitions by the key.

mod config;
mod courier;
mod delivery;
mod digest;
mod folder;
mod json_lines;
mod permissions;
mod reported;
mod signature;
pub mod silence;
mod smtp_address;
mod targets;
mod tls;
mod verdict;

pub use config::{AllowedCommand, NotificationsConfig};
pub use courier::{Courier, DeliveryEnd};
pub use delivery::{Delivery, Publish};
pub use digest::compose;
pub use json_lines::append_line;
pub use permissions::Permissions;
pub use reported::{Event, Facts, ReadChanges, Reported, ReportedAlert, ReportedSilence, Standing};
pub use signature::sign;
pub use silence::SiteTrouble;
pub use verdict::Verdict;

/// A time for people, such as `2026-01-31T02:00:00Z`.
fn iso_time(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => format!("{time:.0}"),
        Err(_) => format!("{ms} ms"),
    }
}

/// The wait in milliseconds after this many failures in a row: one second, then twice as long each time, up to a
/// quarter of an hour.
pub fn retry_wait_ms(tries: u32) -> i64 {
    const LONGEST_MS: i64 = 900_000;
    let doubled = 1_000_i64 << tries.saturating_sub(1).min(20);
    doubled.min(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_quarter_of_an_hour() {
        let waits: Vec<i64> = [1, 2, 3, 10, 11, 1_000].map(retry_wait_ms).into();
        assert_eq!(waits, [1_000, 2_000, 4_000, 512_000, 900_000, 900_000]);
    }

    #[test]
    fn times_are_shown_in_iso_form_without_fractions() {
        assert_eq!(iso_time(1_700_000_000_999), "2023-11-14T22:13:20Z");
    }
}
