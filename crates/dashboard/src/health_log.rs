//! The fill rates of mappings' fields over time. Recent points are closer together. They are in a file of JSON lines in
//! the state folder, or without one in memory. The store has only the current rates.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::line_file::{LineFile, Writing};

/// How many points are kept for one mapping, and for how many mappings.
const MOST_POINTS: usize = 200;
const MOST_MAPPINGS: usize = 200;

/// How many fields of a mapping are recorded in a point.
const MOST_FIELDS: usize = 60;

/// The next point of a mapping is recorded when at least this many more pages were judged.
const PAGES: u64 = 3;

const FILE: &str = "dashboard-health.jsonl";

/// A point of the log: the fill rates of a mapping's fields at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    mapping: String,
    at_ms: i64,
    /// The number of pages that the mapping's health has judged so far.
    pages: u64,
    /// For each field: the share of pages with a value now, and the share that is usual.
    fields: BTreeMap<String, (f64, Option<f64>)>,
}

#[derive(Debug, Default)]
pub(crate) struct HealthLog {
    points: BTreeMap<String, Vec<Point>>,
    file: LineFile,
}

impl HealthLog {
    /// Reads the points that are stored in the state folder.
    pub(crate) fn open(state: Option<&Path>) -> HealthLog {
        let (file, points) = LineFile::open(state, FILE, MOST_MAPPINGS * MOST_POINTS);
        let mut log = HealthLog {
            file,
            ..HealthLog::default()
        };
        for point in points {
            log.add(point);
        }
        log
    }

    fn add(&mut self, point: Point) {
        let is_known = self.points.contains_key(&point.mapping);
        if !is_known && self.points.len() >= MOST_MAPPINGS {
            return;
        }
        let own = self.points.entry(point.mapping.clone()).or_default();
        own.push(point);
        if own.len() > MOST_POINTS {
            // Of the older half of the points, every second one is dropped.
            let half = own.len() / 2;
            let mut at = 0;
            own.retain(|_| {
                at += 1;
                at > half || at % 2 == 1
            });
        }
    }

    /// Records the present fill rates of all mappings, from their reports.
    pub(crate) fn record_reports(&mut self, reports: &[Value], now_ms: i64) -> Writing {
        let points = reports
            .iter()
            .filter_map(|report| point_from_report(report, now_ms));
        let is_due = |point: &Point| {
            let last = self.points.get(&point.mapping).and_then(|own| own.last());
            last.is_none_or(|last| {
                // The number of pages starts again at 0 when a mapping gets a new version.
                point.pages < last.pages || point.pages >= last.pages + PAGES
            })
        };
        let points: Vec<Point> = points.filter(is_due).collect();
        for point in &points {
            self.add(point.clone());
        }
        self.file
            .prepare_write(&points, self.points.values().flatten())
    }

    /// The curves of the fill rates of a mapping's fields. Each is drawn into a box of 100 by 40 units.
    pub(crate) fn draw_curves(&self, report: &Value, now_ms: i64) -> Vec<Value> {
        let mapping = report["mapping"].as_str().unwrap_or_default();
        let now = point_from_report(report, now_ms);
        let points = self.points.get(mapping).into_iter().flatten().chain(&now);
        let points: Vec<&Point> = points.collect();
        let fields = report["fields"].as_array().into_iter().flatten();
        let names = fields.filter_map(|field| field["field"].as_str());
        names.filter_map(|name| draw_curve(name, &points)).collect()
    }
}

fn point_from_report(report: &Value, at_ms: i64) -> Option<Point> {
    let fields = report["fields"].as_array()?.iter().take(MOST_FIELDS);
    let fields = fields.filter_map(|field| {
        let rates = (field["now"].as_f64()?, field["baseline"].as_f64());
        Some((field["field"].as_str()?.to_owned(), rates))
    });
    Some(Point {
        mapping: report["mapping"].as_str()?.to_owned(),
        at_ms,
        pages: report["pages"].as_u64()?,
        fields: fields.collect(),
    })
}

/// The curve of a field's fill rate; `None` for fewer than two points.
fn draw_curve(name: &str, points: &[&Point]) -> Option<Value> {
    const WIDTH: f64 = 100.0;
    const HEIGHT: f64 = 40.0;
    let own: Vec<(&Point, (f64, Option<f64>))> = points
        .iter()
        .filter_map(|point| Some((*point, *point.fields.get(name)?)))
        .collect();
    let (first, last) = (own.first()?, own.last()?);
    let span_ms = (last.0.at_ms - first.0.at_ms) as f64;
    if own.len() < 2 || span_ms <= 0.0 {
        return None;
    }
    let x = |point: &Point| WIDTH * (point.at_ms - first.0.at_ms) as f64 / span_ms;
    let y = |share: f64| HEIGHT * (1.0 - share.clamp(0.0, 1.0));
    let line: Vec<String> = own
        .iter()
        .map(|(point, (now, _))| format!("{:.1},{:.1}", x(point), y(*now)))
        .collect();
    // The usual rate is not updated while a field is broken, so the last known one is from before.
    let baseline = own.iter().rev().find_map(|(_, (_, baseline))| *baseline);
    let highest = own.iter().map(|(_, (now, _))| *now).fold(0.0, f64::max);
    let usual = baseline.unwrap_or(highest);
    let is_broken = last.1.0 < usual * 0.75;
    let broken = own.iter().rev().take_while(|(_, (now, _))| *now < usual);
    let broken = broken.last().filter(|_| is_broken);
    Some(json!({
        "name": name,
        "line": line.join(" "),
        "baseline": baseline.map(y),
        "break_x": broken.map(|(point, _)| x(point)),
        "break_ms": broken.map(|(point, _)| point.at_ms),
        "before": (usual * 100.0).round(),
        "now": (last.1.0 * 100.0).round(),
        "from_ms": first.0.at_ms,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(pages: u64, now: f64, baseline: Option<f64>) -> Value {
        json!({"mapping": "shop", "pages": pages, "fields": [
            {"field": "price", "now": now, "baseline": baseline},
            {"field": "name", "now": 1.0, "baseline": null}]})
    }

    #[test]
    fn curves_show_the_baseline_and_the_break() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = HealthLog::open(Some(folder.path()));
        for (at, pages, now) in [(0, 10, 1.0), (100, 20, 1.0), (200, 30, 0.8), (300, 40, 0.3)] {
            log.record_reports(&[report(pages, now, Some(0.9))], at)
                .write();
            log.record_reports(&[report(pages + 1, now, Some(0.9))], at + 1)
                .write();
        }
        let log = HealthLog::open(Some(folder.path()));
        assert_eq!(log.points["shop"].len(), 4, "a page more is not a point");
        let curves = log.draw_curves(&report(50, 0.2, Some(0.9)), 400);
        assert_eq!(curves[0]["name"], "price");
        let line = "0.0,0.0 25.0,0.0 50.0,8.0 75.0,28.0 100.0,32.0";
        assert_eq!(curves[0]["line"], line);
        assert_eq!(curves[0]["break_ms"], 200);
        assert_eq!(
            (&curves[0]["before"], &curves[0]["now"]),
            (&json!(90.0), &json!(20.0))
        );
        assert_eq!(curves[1]["break_x"], Value::Null);
        assert!(
            HealthLog::default()
                .draw_curves(&report(5, 1.0, None), 0)
                .is_empty()
        );
    }

    #[test]
    fn the_points_of_a_mapping_are_bounded_and_the_recent_ones_closer() {
        let mut log = HealthLog::default();
        for n in 0..2_000 {
            log.record_reports(&[report(n * 1_000, 1.0, None)], n as i64)
                .write();
        }
        let own = &log.points["shop"];
        assert!(own.len() <= MOST_POINTS, "{}", own.len());
        assert_eq!(own[0].at_ms, 0);
        let gap = |at: usize| own[at + 1].at_ms - own[at].at_ms;
        assert!(gap(0) > gap(own.len() - 2));
    }
}
