//! Writes the text format of Prometheus, version 0.0.4: families of time series, each with a help text and a type.

use std::fmt::{Display, Write};

use webfill_wire::counts::Histogram;

/// A page of metrics being written.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// A family of time series that is being written. All its series have the same label names.
#[derive(Debug)]
pub struct Family<'e> {
    text: &'e mut String,
    name: &'static str,
}

impl Exposition {
    /// Adds a family with values that only grow as long as the process lives. Its name ends in `_total`.
    pub fn add_counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.add_family(name, help, "counter")
    }

    /// Adds a family with values that go up and down.
    pub fn add_gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.add_family(name, help, "gauge")
    }

    /// Adds a distribution of durations.
    pub fn add_histogram(&mut self, name: &'static str, help: &str, values: &Histogram) {
        let Family { text, name } = self.add_family(name, help, "histogram");
        for (bound, count) in values.cumulative_counts() {
            write_line(text, name, "_bucket", &[("le", &bound.to_string())], &count);
        }
        write_line(text, name, "_bucket", &[("le", "+Inf")], &values.count());
        write_line(text, name, "_sum", &[], &values.sum_seconds());
        write_line(text, name, "_count", &[], &values.count());
    }

    fn add_family(&mut self, name: &'static str, help: &str, kind: &str) -> Family<'_> {
        let text = &mut self.text;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        write_to(
            text,
            format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
        );
        Family { text, name }
    }

    /// Returns the text of the page.
    pub fn finish(self) -> String {
        self.text
    }
}

impl Family<'_> {
    /// Writes the only time series of a family, which has no labels.
    pub fn set_value(self, value: impl Display) {
        write_line(self.text, self.name, "", &[], &value);
    }

    /// Writes one of several time series of a family.
    pub fn add_series(&mut self, labels: &[(&str, &str)], value: impl Display) {
        write_line(self.text, self.name, "", labels, &value);
    }
}

fn write_line(
    text: &mut String,
    name: &str,
    ending: &str,
    labels: &[(&str, &str)],
    value: &dyn Display,
) {
    write_to(text, format_args!("{name}{ending}"));
    for (place, (label, content)) in labels.iter().enumerate() {
        let before = if place == 0 { '{' } else { ',' };
        let content = content
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        write_to(text, format_args!("{before}{label}=\"{content}\""));
    }
    let after = if labels.is_empty() { "" } else { "}" };
    write_to(text, format_args!("{after} {value}\n"));
}

fn write_to(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn families_have_help_type_and_series_with_escaped_labels() {
        let mut page = Exposition::default();
        page.add_gauge("webfill_leases", "Tasks handed out.")
            .set_value(7);
        let mut pages = page.add_counter("webfill_pages_total", "Pages,\nby mapping.");
        pages.add_series(&[("mapping", "a\"b\\c\nd"), ("state", "x")], 1);
        pages.add_series(&[("mapping", "e"), ("state", "y")], 2.5);
        let expected = "# HELP webfill_leases Tasks handed out.\n# TYPE webfill_leases gauge\n\
            webfill_leases 7\n\
            # HELP webfill_pages_total Pages,\\nby mapping.\n# TYPE webfill_pages_total counter\n\
            webfill_pages_total{mapping=\"a\\\"b\\\\c\\nd\",state=\"x\"} 1\n\
            webfill_pages_total{mapping=\"e\",state=\"y\"} 2.5\n";
        assert_eq!(page.finish(), expected);
    }

    #[test]
    fn the_buckets_of_a_histogram_hold_all_that_took_no_longer() {
        let mut values = Histogram::default();
        for ms in [1, 40, 40, 900_000] {
            values.observe(Duration::from_millis(ms));
        }
        let mut page = Exposition::default();
        page.add_histogram("webfill_fetch_seconds", "Time.", &values);
        let page = page.finish();
        for line in [
            "webfill_fetch_seconds_bucket{le=\"0.001\"} 1",
            "webfill_fetch_seconds_bucket{le=\"0.025\"} 1",
            "webfill_fetch_seconds_bucket{le=\"0.05\"} 3",
            "webfill_fetch_seconds_bucket{le=\"300\"} 3",
            "webfill_fetch_seconds_bucket{le=\"+Inf\"} 4",
            "webfill_fetch_seconds_sum 900.081",
            "webfill_fetch_seconds_count 4",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
    }
}
