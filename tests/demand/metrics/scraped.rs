//! A page of metrics as Prometheus scrapes it: each series (a name with labels) with its value.

use std::collections::BTreeMap;

/// The value of each series. The key is the name with the labels, as written in the page.
#[derive(Debug, Clone)]
pub(crate) struct Scraped(BTreeMap<String, f64>);

impl Scraped {
    pub(super) fn parse(text: &str) -> Scraped {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            (name.to_owned(), value)
        });
        Scraped(series.collect())
    }

    pub(super) fn names(self) -> impl Iterator<Item = String> {
        self.0.into_keys()
    }

    pub(crate) fn get(&self, series: &str) -> Option<f64> {
        self.0.get(series).copied()
    }

    pub(super) fn value_of(&self, series: &str) -> f64 {
        self.get(series)
            .unwrap_or_else(|| panic!("{series} is not among {:#?}", self.0))
    }

    /// The sum of the values of all series whose names begin with this text.
    pub(super) fn sum(&self, beginning: &str) -> f64 {
        let found = self.0.range(beginning.to_owned()..);
        let found = found.take_while(|(name, _)| name.starts_with(beginning));
        found.map(|(_, value)| value).sum()
    }

    /// Checks that no counter of webfill, and no part of a histogram, has decreased or disappeared since `before`.
    /// Counts of the operating system are left out, because they start from 0 in each process.
    pub(super) fn assert_not_behind(&self, before: &Scraped) {
        let grows = |name: &str| {
            let name = name.split('{').next().unwrap_or_default();
            if name.starts_with("process_") {
                return false;
            }
            let endings = ["_total", "_bucket", "_count", "_sum"];
            endings.iter().any(|ending| name.ends_with(ending))
        };
        for (name, value) in before.0.iter().filter(|(name, _)| grows(name)) {
            assert!(
                self.value_of(name) >= *value,
                "{name}: {value}, then {}",
                self.value_of(name)
            );
        }
    }
}
