//! Progress for programs: JSON objects on standard error, one per line, as [`super::schema`] describes them. At most
//! [`MOST_A_SECOND`] lines are printed in any second. Counts that later ones would soon replace are skipped; other
//! lines wait.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);
const MOST_A_SECOND: usize = 10;

/// The shortest time between two lines of counts. It leaves room for other lines within the limit.
const COUNTS_EVERY: Duration = Duration::from_millis(200);

/// The times when the last lines of this process were printed.
static PRINTED: Mutex<VecDeque<Instant>> = Mutex::new(VecDeque::new());

/// Prints the counts of a crawl or a feed, which change continually.
#[derive(Default)]
pub struct Counts {
    printed: Option<(Instant, Value)>,
}

impl Counts {
    /// Prints the counts if they have changed and the previous line is old enough.
    pub fn show(&mut self, line: Value) {
        let is_due = |(at, _): &(Instant, Value)| at.elapsed() >= COUNTS_EVERY;
        if self.printed.as_ref().is_none_or(is_due) {
            self.show_last(line);
        }
    }

    /// Prints the last counts if they have changed, even if the previous line is recent.
    pub fn show_last(&mut self, line: Value) {
        if self.printed.as_ref().is_none_or(|(_, last)| *last != line) {
            print(&line);
            self.printed = Some((Instant::now(), line));
        }
    }
}

/// Prints a sentence, as a line of the kind `message`.
pub fn print_message(text: &str) {
    print(&json!({"kind": "message", "text": text}));
}

/// Prints a line. If too many lines were printed within the last second, it waits.
pub fn print(line: &Value) {
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.len() == MOST_A_SECOND
        && let Some(first) = printed.pop_front()
    {
        std::thread::sleep(SECOND.saturating_sub(first.elapsed()));
    }
    webfill_service::say!("{line}");
    printed.push_back(Instant::now());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_ten_lines_are_printed_per_second() {
        let started = Instant::now();
        let printed: Vec<Duration> = (0..2 * MOST_A_SECOND + 1)
            .map(|number| {
                print_message(&format!("line {number}"));
                started.elapsed()
            })
            .collect();
        assert!(printed[MOST_A_SECOND] >= SECOND, "{printed:?}");
        assert!(printed[2 * MOST_A_SECOND] >= 2 * SECOND, "{printed:?}");
    }

    #[test]
    fn counts_are_printed_when_they_have_changed_and_the_last_ones_are_old_enough() {
        let mut counts = Counts::default();
        let printed = |counts: &Counts| counts.printed.as_ref().map(|(_, line)| line.clone());
        counts.show(json!(1));
        counts.show(json!(2));
        assert_eq!(printed(&counts), Some(json!(1)));
        std::thread::sleep(COUNTS_EVERY);
        counts.show(json!(3));
        assert_eq!(printed(&counts), Some(json!(3)));
        counts.show_last(json!(4));
        assert_eq!(printed(&counts), Some(json!(4)));
    }
}
