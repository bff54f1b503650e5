//! Shows the progress of a crawl or a feed on standard error: a bar on a terminal, else a plain line
//! every [`PLAIN_EVERY`].

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};
use webfill_store::RecordCounts;

use crate::cli::ProgressStyle;
use crate::demand::Tally;
use crate::summary::{Counters, format_duration};

const PLAIN_EVERY: Duration = Duration::from_secs(60);

/// The interval of plain lines of a feed, which takes less time than a crawl.
const FEED_EVERY: Duration = Duration::from_secs(10);

/// Rates are averages over this long.
const WINDOW: Duration = Duration::from_secs(30);

/// The counters at one moment.
struct Sample {
    at: Instant,
    pages: u64,
    queued: u64,
}

/// Shows progress on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    plain: bool,
    samples: VecDeque<Sample>,
    next_line: Instant,
}

impl Progress {
    pub fn start(style: ProgressStyle) -> Progress {
        let style = chosen(style);
        Progress {
            bar: (style == ProgressStyle::Bar).then(new_bar),
            plain: style == ProgressStyle::Plain,
            samples: VecDeque::new(),
            next_line: Instant::now() + PLAIN_EVERY,
        }
    }

    pub fn show(&mut self, counters: &Counters, records: RecordCounts) {
        let now = Instant::now();
        self.samples.push_back(Sample {
            at: now,
            pages: counters.pages,
            queued: counters.queued + counters.leased,
        });
        while self.samples.len() > 2 && now.duration_since(self.samples[0].at) > WINDOW {
            self.samples.pop_front();
        }
        let plain_line = self.plain && now >= self.next_line;
        if self.bar.is_none() && !plain_line {
            return;
        }
        let line = self.line(counters, records);
        if let Some(bar) = &self.bar {
            let done: u64 = counters.outcomes.values().sum();
            bar.set_length(done + counters.queued + counters.leased);
            bar.set_position(done);
            bar.set_message(line);
        } else {
            eprintln!("{line}");
            self.next_line = now + PLAIN_EVERY;
        }
    }

    /// Prints a line, above the bar if there is one.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, counters: &Counters, records: RecordCounts) -> String {
        let mut line = format!(
            "pages {}, {:.1}/s, queued {}, sites {}",
            counters.pages,
            self.rate(|sample| sample.pages as f64).max(0.0),
            counters.queued + counters.leased,
            counters.sites
        );
        if records.total > 0 {
            line += &format!(", resolved {}/{}", records.resolved, records.total);
        }
        line += &format!(", errors {}", counters.errors());
        if let Some(cut_off) = &counters.cut_off {
            line += &format!(", {}", cut_off.text());
        }
        match counters.resting_first.first() {
            Some(first) if counters.resting == 1 => line += &format!(", {}", first.text()),
            Some(first) => line += &format!(", {} sites rest, {}", counters.resting, first.text()),
            None => {}
        }
        if let Some(left) = self.time_left() {
            line += &format!(", about {} left", format_duration(left));
        }
        line
    }

    fn rate(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        match (self.samples.front(), self.samples.back()) {
            (Some(first), Some(last)) if last.at > first.at => {
                (value(last) - value(first)) / last.at.duration_since(first.at).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    /// An estimate of the time left; only after the queue has been shrinking for a whole window.
    fn time_left(&self) -> Option<Duration> {
        let span = self
            .samples
            .back()?
            .at
            .duration_since(self.samples.front()?.at);
        if span < WINDOW * 9 / 10 {
            return None;
        }
        let shrinking = -self.rate(|sample| sample.queued as f64);
        let left = self.samples.back()?.queued as f64 / shrinking;
        (shrinking > 0.0 && left < 30.0 * 86_400.0).then(|| Duration::from_secs_f64(left))
    }
}

/// Shows the progress of a feed, whose length is unknown.
pub struct FeedProgress {
    bar: Option<ProgressBar>,
    plain: bool,
    started: Instant,
    next_line: Instant,
}

impl FeedProgress {
    pub fn start(style: ProgressStyle) -> FeedProgress {
        let style = chosen(style);
        let bar = (style == ProgressStyle::Bar).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            bar.set_style(BarStyle::with_template("{spinner} {wide_msg}").expect("well-formed"));
            bar
        });
        FeedProgress {
            bar,
            plain: style == ProgressStyle::Plain,
            started: Instant::now(),
            next_line: Instant::now() + FEED_EVERY,
        }
    }

    pub fn show(&mut self, tally: &Tally) {
        let now = Instant::now();
        if let Some(bar) = &self.bar {
            bar.set_message(self.line(tally));
            bar.tick();
        } else if self.plain && now >= self.next_line {
            eprintln!("{}", self.line(tally));
            self.next_line = now + FEED_EVERY;
        }
    }

    /// Prints a line of text that stays, above the bar.
    pub fn tell(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, tally: &Tally) -> String {
        let rate = tally.accepted as f64 / self.started.elapsed().as_secs_f64().max(0.001);
        format!("{}, {rate:.0}/s", tally.sentence())
    }
}

fn chosen(style: ProgressStyle) -> ProgressStyle {
    match style {
        ProgressStyle::Auto if std::io::stderr().is_terminal() => ProgressStyle::Bar,
        ProgressStyle::Auto => ProgressStyle::Plain,
        chosen => chosen,
    }
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    let style =
        BarStyle::with_template("{bar:24} {wide_msg}").expect("the template is well-formed");
    bar.set_style(style);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn time_left_is_told_only_while_the_queue_shrinks() {
        let shrinking = progress(&[(0, 0, 100), (30, 60, 40)]);
        assert_eq!(shrinking.time_left().unwrap().as_secs(), 20);
        assert!(
            progress(&[(0, 0, 100), (30, 60, 100)])
                .time_left()
                .is_none()
        );
        assert!(progress(&[(0, 0, 100), (5, 60, 40)]).time_left().is_none());
    }

    #[test]
    fn the_line_names_everything() {
        let counters = Counters {
            pages: 60,
            queued: 40,
            ..Counters::default()
        };
        let records = RecordCounts {
            total: 10,
            resolved: 4,
        };
        let line = progress(&[(0, 0, 100), (30, 60, 40)]).line(&counters, records);
        assert_eq!(
            line,
            "pages 60, 2.0/s, queued 40, sites 0, resolved 4/10, errors 0, about 20.0 s left"
        );
    }
}
