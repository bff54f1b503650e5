//! Shows the progress of a crawl or a feed on standard error: a bar on a terminal, otherwise a plain line after
//! [`PLAIN_FIRST`] and every [`PLAIN_EVERY`], or [`lines`] for programs. The most important facts come first, because a
//! narrow terminal cuts off the end.

pub mod lines;
mod schema;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
use serde_json::{Value, json};
use webfill_service::terminal::escape_control_characters;
use webfill_store::RecordCounts;

use self::lines::Counts;
pub use self::schema::schema;
use crate::cli::ProgressStyle;
use crate::demand::Tally;
use crate::summary::{Counters, OfflineState, format_duration};

/// The time of the first plain line, early enough to show that the crawl works, and the time between further ones.
const PLAIN_FIRST: Duration = Duration::from_secs(5);
const PLAIN_EVERY: Duration = Duration::from_secs(60);

/// The interval of plain lines during a feed, which takes less time than a crawl.
const FEED_EVERY: Duration = Duration::from_secs(10);

/// Rates are averages over this period.
const WINDOW: Duration = Duration::from_secs(30);

/// Estimates of the time left are not shown if they are longer than this, because backoffs may have no end.
const LONGEST_LEFT: Duration = Duration::from_secs(30 * 86_400);

/// Estimates of the time left are not shown if they are shorter than this, because they are too imprecise.
const SHORTEST_LEFT: Duration = Duration::from_secs(5);

/// On a terminal with fewer columns, no bar is shown before the text.
const ROOM_FOR_BAR: u16 = 100;

/// The counters of a crawl at one moment, to compute rates.
struct Sample {
    at: Instant,
    pages: u64,
    queued: u64,
}

/// Shows progress on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    style: ProgressStyle,
    started: Instant,
    samples: VecDeque<Sample>,
    next_line: Instant,
    counts: Counts,
}

impl Progress {
    pub fn start(style: ProgressStyle) -> Progress {
        let style = resolve_style(style);
        let started = Instant::now();
        Progress {
            bar: (style == ProgressStyle::Bar).then(new_bar),
            style,
            started,
            samples: VecDeque::new(),
            next_line: started + PLAIN_FIRST,
            counts: Counts::default(),
        }
    }

    pub fn show(&mut self, counters: &Counters, records: RecordCounts) {
        if self.style == ProgressStyle::Json {
            return self.counts.show(counts_json(counters, records));
        }
        let now = Instant::now();
        self.samples.push_back(Sample {
            at: now,
            pages: counters.pages,
            queued: counters.queued + counters.leased,
        });
        while self.samples.len() > 2 && now.duration_since(self.samples[0].at) > WINDOW {
            self.samples.pop_front();
        }
        let plain_line = self.style == ProgressStyle::Plain && now >= self.next_line;
        if self.bar.is_none() && !plain_line {
            return;
        }
        let line = self.format_line(now - self.started, counters, records);
        if let Some(bar) = &self.bar {
            let done: u64 = counters.outcomes.values().sum();
            bar.set_style(bar_style());
            bar.set_length(done + counters.queued + counters.leased);
            bar.set_position(done);
            bar.set_message(escape_control_characters(&line));
        } else {
            webfill_service::say!("{line}");
            self.next_line = now + PLAIN_EVERY;
        }
    }

    /// Prints a line whose content the summary will repeat. Nothing is printed if progress is off.
    pub fn print_unless_off(&self, line: &str) {
        if self.style != ProgressStyle::None {
            self.print(line);
        }
    }

    /// Prints a line above the bar, if there is a bar.
    pub fn print(&self, line: &str) {
        print_above(self.bar.as_ref(), self.style, line);
    }

    /// Ends the display: removes the bar, or prints the last counts for programs.
    pub fn finish(mut self, counters: &Counters, records: RecordCounts) {
        if self.style == ProgressStyle::Json {
            self.counts.show_last(counts_json(counters, records));
        }
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn format_line(&self, elapsed: Duration, counters: &Counters, records: RecordCounts) -> String {
        let mut parts = Vec::new();
        if records.total > 0 {
            parts.push(format!("resolved {}/{}", records.resolved, records.total));
        }
        parts.push(format!("errors {}", counters.errors()));
        parts.extend(self.time_left(counters));
        parts.push(format!("pages {}", counters.pages));
        let rate = self.rate(|sample| sample.pages as f64).max(0.0);
        parts.push(format!("{rate:.1}/s"));
        parts.push(format!("queued {}", counters.queued + counters.leased));
        parts.push(format!("sites {}", counters.sites));
        parts.extend(counters.offline.as_ref().map(OfflineState::text));
        parts.extend(counters.waiting.text());
        format!("{}: {}", format_whole_seconds(elapsed), parts.join(", "))
    }

    fn rate(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        match (self.samples.front(), self.samples.back()) {
            (Some(first), Some(last)) if last.at > first.at => {
                (value(last) - value(first)) / last.at.duration_since(first.at).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    /// An estimate of the time left. The end of the whole queue is estimated only after it has been shrinking for a
    /// whole window. Until then, or if the slowest site needs longer, the estimate is the slowest site's queue times
    /// its delay.
    fn time_left(&self, counters: &Counters) -> Option<String> {
        let least = Duration::from_millis(counters.least_time_left_ms);
        let (about, left) = match self.queue_ends_in() {
            Some(left) => ("about", left.max(least)),
            None => ("at least", least),
        };
        let is_shown = (SHORTEST_LEFT..LONGEST_LEFT).contains(&left);
        is_shown.then(|| format!("{about} {} left", format_whole_seconds(left)))
    }

    fn queue_ends_in(&self) -> Option<Duration> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        if last.at.duration_since(first.at) < WINDOW * 9 / 10 {
            return None;
        }
        let shrinking = -self.rate(|sample| sample.queued as f64);
        let left = last.queued as f64 / shrinking;
        Duration::try_from_secs_f64(left).ok()
    }
}

/// Shows the progress of a feed, whose length is unknown.
pub struct FeedProgress {
    bar: Option<ProgressBar>,
    style: ProgressStyle,
    started: Instant,
    next_line: Instant,
    counts: Counts,
}

impl FeedProgress {
    pub fn start(style: ProgressStyle) -> FeedProgress {
        let style = resolve_style(style);
        let bar = (style == ProgressStyle::Bar).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            bar.set_style(BarStyle::with_template("{spinner} {wide_msg}").expect("well-formed"));
            bar
        });
        FeedProgress {
            bar,
            style,
            started: Instant::now(),
            next_line: Instant::now() + FEED_EVERY,
            counts: Counts::default(),
        }
    }

    pub fn show(&mut self, tally: &Tally) {
        let now = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_message(escape_control_characters(&self.format_line(tally)));
            bar.tick();
        } else if self.style == ProgressStyle::Json {
            self.counts.show(tally.counts());
        } else if self.style == ProgressStyle::Plain && now >= self.next_line {
            webfill_service::say!("{}", self.format_line(tally));
            self.next_line = now + FEED_EVERY;
        }
    }

    /// Prints a line above the bar. Unlike the bar, the line stays.
    pub fn print(&self, line: &str) {
        print_above(self.bar.as_ref(), self.style, line);
    }

    pub fn finish(mut self, tally: &Tally) {
        if self.style == ProgressStyle::Json {
            self.counts.show_last(tally.counts());
        }
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn format_line(&self, tally: &Tally) -> String {
        let rate = tally.accepted as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        format!("{}, {rate:.0}/s", tally.sentence())
    }
}

/// Prints a sentence in the form of this progress style. Nothing is printed if progress is off.
pub fn print_sentence(style: ProgressStyle, sentence: &str) {
    match style {
        ProgressStyle::None => {}
        ProgressStyle::Json => lines::print_message(sentence),
        _ => webfill_service::say!("webfill: {sentence}"),
    }
}

fn print_above(bar: Option<&ProgressBar>, style: ProgressStyle, line: &str) {
    match bar {
        Some(bar) => bar.suspend(|| webfill_service::say!("{line}")),
        None if style == ProgressStyle::Json => lines::print_message(line),
        None => webfill_service::say!("{line}"),
    }
}

/// The counts of a crawl as JSON, for programs.
fn counts_json(counters: &Counters, records: RecordCounts) -> Value {
    let done: u64 = counters.outcomes.values().sum();
    json!({
        "kind": "crawl",
        "done": done,
        "total": done + counters.queued + counters.leased,
        "pages": counters.pages,
        "errors": counters.errors(),
        "queued": counters.queued,
        "leased": counters.leased,
        "sites": counters.sites,
        "records": records.total,
        "resolved": records.resolved,
        "least_seconds_left": counters.least_time_left_ms / 1_000,
        "waiting": counters.waiting.text(),
        "offline": counters.offline.as_ref().map(OfflineState::text),
    })
}

fn resolve_style(style: ProgressStyle) -> ProgressStyle {
    match style {
        ProgressStyle::Auto if std::io::stderr().is_terminal() => ProgressStyle::Bar,
        ProgressStyle::Auto => ProgressStyle::Plain,
        chosen => chosen,
    }
}

/// Formats a duration for people, without fractions of a second.
fn format_whole_seconds(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => format_duration(duration),
    }
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    bar.set_style(bar_style());
    bar
}

/// The style of the bar for the terminal's present width.
fn bar_style() -> BarStyle {
    let (_, columns) = console::Term::stderr().size();
    let template = match columns < ROOM_FOR_BAR {
        true => "{wide_msg}",
        false => "{bar:24} {wide_msg}",
    };
    BarStyle::with_template(template).expect("the template is well-formed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::WaitingSites;

    fn progress(samples: &[(u64, u64, u64)]) -> Progress {
        let start = Instant::now();
        let mut progress = Progress::start(ProgressStyle::None);
        for (seconds, pages, queued) in samples {
            progress.samples.push_back(Sample {
                at: start + Duration::from_secs(*seconds),
                pages: *pages,
                queued: *queued,
            });
        }
        progress
    }

    fn time_left_of(samples: &[(u64, u64, u64)], least_s: u64) -> Option<String> {
        progress(samples).time_left(&Counters {
            least_time_left_ms: least_s * 1_000,
            ..Counters::default()
        })
    }

    #[test]
    fn the_end_of_the_queue_is_estimated_only_while_it_shrinks() {
        let shrinking = [(0, 0, 100), (30, 60, 40)];
        assert_eq!(time_left_of(&shrinking, 0).unwrap(), "about 20 s left");
        assert_eq!(time_left_of(&[(0, 0, 100), (30, 60, 100)], 0), None);
        assert_eq!(time_left_of(&[(0, 0, 100), (30, 60, 140)], 0), None);
        assert_eq!(time_left_of(&[(0, 0, 100), (5, 60, 40)], 0), None);
    }

    #[test]
    fn one_slow_site_outlasts_the_rest_of_the_queue() {
        let shrinking = [(0, 0, 100), (30, 60, 40)];
        assert_eq!(
            time_left_of(&shrinking, 7_200).unwrap(),
            "about 2 h 0 min left"
        );
        assert_eq!(
            time_left_of(&[(0, 0, 100)], 7_200).unwrap(),
            "at least 2 h 0 min left"
        );
        let without_end = 31 * 86_400;
        assert_eq!(time_left_of(&shrinking, without_end), None);
    }

    #[test]
    fn the_line_has_all_counts_with_the_most_important_first() {
        let counters = Counters {
            pages: 60,
            queued: 40,
            ..Counters::default()
        };
        let waiting = WaitingSites {
            by: [("delay".into(), 2), ("robots".into(), 1)].into(),
            first_ms: Some(1_767_225_600_000),
        };
        let waits = Counters {
            waiting,
            ..counters.clone()
        };
        let records = RecordCounts {
            total: 10,
            resolved: 4,
        };
        let shown = progress(&[(0, 0, 100), (30, 60, 40)]);
        let line = shown.format_line(Duration::from_millis(30_700), &counters, records);
        assert_eq!(
            line,
            "30 s: resolved 4/10, errors 0, about 20 s left, pages 60, 2.0/s, queued 40, sites 0"
        );
        let longer = shown.format_line(Duration::from_millis(30_700), &waits, records);
        assert_eq!(
            longer,
            line + ", 3 sites wait until 2026-01-01T00:00:00Z (2 delay, 1 robots)"
        );
    }
}
