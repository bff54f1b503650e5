//! Samples as the columns of a chart.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{EVERY_S, Sample};
use crate::views::words::outcome_group;

/// Samples as the columns of a chart: a list for each metric, in order of time, with null for unknown values. Outcomes
/// are counted by their groups. A rate is constant over the whole span of its sample.
pub(crate) fn chart_json(samples: &[Sample]) -> Value {
    let mut columns = ChartColumns::default();
    let names = samples.iter().flat_map(|sample| sample.ended.keys());
    let groups: BTreeSet<&str> = names.map(|name| group_of_outcome(name)).collect();
    let mut ended_before = None;
    for sample in samples {
        let begins = sample.at - sample.over;
        let is_after_gap = ended_before.is_none_or(|at| begins - at > EVERY_S);
        if let Some(at) = ended_before.filter(|_| is_after_gap) {
            columns.push(at + 1, None, &groups);
        }
        if is_after_gap && sample.over > 0 {
            columns.push(begins, Some(&sample.to_begin_sample()), &groups);
        }
        columns.push(sample.at, Some(sample), &groups);
        ended_before = Some(sample.at);
    }
    serde_json::to_value(columns).unwrap_or_default()
}

fn group_of_outcome(outcome: &str) -> &'static str {
    outcome.parse().map_or("refused", outcome_group)
}

#[derive(Default, Serialize)]
struct ChartColumns {
    at: Vec<i64>,
    queued: Vec<Option<u64>>,
    leased: Vec<Option<u64>>,
    oldest: Vec<Option<f64>>,
    pages_per_second: Vec<Option<f64>>,
    resolved: Vec<Option<u64>>,
    open: Vec<Option<u64>>,
    exhausted: Vec<Option<u64>>,
    /// Tasks that ended per second, by group of outcomes.
    ended: BTreeMap<String, Vec<Option<f64>>>,
}

impl ChartColumns {
    fn push(&mut self, at: i64, sample: Option<&Sample>, groups: &BTreeSet<&str>) {
        let per_second = |count: u64, sample: &Sample| {
            let rate = count as f64 / sample.over.max(1) as f64;
            (rate * 1_000.0).round() / 1_000.0
        };
        let records = sample.and_then(|sample| sample.records);
        self.at.push(at);
        let level = sample.filter(|sample| !sample.is_begin);
        self.queued.push(level.map(|sample| sample.queued));
        self.leased.push(level.map(|sample| sample.leased));
        self.oldest.push(sample.and_then(|sample| sample.oldest));
        self.pages_per_second
            .push(sample.map(|sample| per_second(sample.pages, sample)));
        self.resolved.push(records.map(|records| records.resolved));
        self.open.push(records.map(|records| records.open));
        self.exhausted
            .push(records.map(|records| records.exhausted));
        for group in groups {
            let count = |sample: &Sample| {
                let of_group = sample.ended.iter();
                let of_group = of_group.filter(|(name, _)| group_of_outcome(name) == *group);
                of_group.map(|(_, count)| count).sum::<u64>()
            };
            let rate = sample.map(|sample| per_second(count(sample), sample));
            self.ended
                .entry((*group).to_owned())
                .or_default()
                .push(rate);
        }
    }
}
