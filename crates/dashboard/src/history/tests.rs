use serde_json::{Value, json};

use super::*;
use crate::snapshot::{CrawlCounters, Snapshot};

fn snapshot(at_s: i64, pages: u64, ok: u64) -> Snapshot {
    Snapshot {
        at_ms: at_s * 1_000,
        status: json!({"total_pending": 7, "leased": 2, "pages": pages, "ended": {"ok": ok}}),
        ..Snapshot::default()
    }
}

fn sample(at: i64) -> Sample {
    Sample {
        at,
        over: 60,
        queued: 5,
        pages: 60,
        ended: BTreeMap::from([("ok".to_owned(), 6)]),
        ..Sample::default()
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_sample_covers_the_time_since_the_previous_one() {
    let mut counters = Counters::default();
    assert_eq!(
        counters.take_sample(&snapshot(1_000, 500, 50)),
        None,
        "nothing is known of before"
    );
    let taken = counters.take_sample(&snapshot(1_060, 560, 56)).unwrap();
    assert_eq!(
        taken,
        Sample {
            leased: 2,
            queued: 7,
            ..sample(1_060)
        }
    );
    // After a restart of the fleet, the counters of outcomes start at 0, and some crawls may be missing.
    let taken = counters.take_sample(&snapshot(1_120, 400, 3)).unwrap();
    assert_eq!((taken.pages, taken.ended["ok"]), (0, 3));
    assert_eq!(
        counters.take_sample(&snapshot(1_100, 400, 3)),
        None,
        "the clock was set back"
    );
    assert!(counters.take_sample(&snapshot(1_160, 410, 4)).is_some());
}

#[test]
fn samples_outlive_the_process_and_a_line_that_was_cut_off() {
    let folder = folder();
    let mut history = History::open(Some(folder.path()));
    for minute in 1..=3 {
        history.add_sample(sample(minute * 60)).write();
    }
    let path = folder.path().join(FILE);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text += "{\"at\": 24";
    std::fs::write(&path, text).unwrap();
    let history = History::open(Some(folder.path()));
    let expected: Vec<Sample> = (1..=3).map(|minute| sample(minute * 60)).collect();
    assert_eq!(history.samples, expected);
    assert!(History::open(None).samples.is_empty());
}

#[test]
fn three_months_are_kept_in_bounded_memory_and_on_a_bounded_disk() {
    let folder = folder();
    let mut history = History::open(Some(folder.path()));
    let minutes = 100 * 24 * 60;
    history.samples = (1..minutes).map(|minute| sample(minute * 60)).collect();
    history.add_sample(sample(minutes * 60)).write();
    let kept = &history.samples;
    assert!(kept.len() <= MOST, "{}", kept.len());
    let oldest = &kept[0];
    assert!(minutes * 60 - oldest.at <= KEPT_S);
    assert_eq!(
        (kept[1].over, kept[1].pages),
        (15 * 60, 900),
        "pieces are summed up"
    );
    let newest = kept.last().unwrap();
    assert_eq!((newest.over, newest.pages), (60, 60));
    for minute in 0..2 * MOST as i64 {
        history
            .add_sample(sample((minutes + 1 + minute) * 60))
            .write();
    }
    let lines = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
    assert!(lines.lines().count() <= 2 * MOST);
    let again = History::open(Some(folder.path()));
    // `open` merges old samples, so those in memory must be merged as well before they are compared.
    history.thinned_at = 0;
    history.thin_old_samples();
    assert_eq!(again.samples, history.samples);
}

#[test]
fn a_clock_set_back_removes_later_samples() {
    let mut history = History::open(None);
    for at in [60, 120, 180, 120] {
        history.add_sample(sample(at)).write();
    }
    let times: Vec<i64> = history.samples.iter().map(|sample| sample.at).collect();
    assert_eq!(times, [60, 120]);
}

#[test]
fn charts_have_gaps_where_nothing_was_recorded() {
    let mut history = History::open(None);
    for at in [60, 120, 1_020, 1_080] {
        history.add_sample(sample(at)).write();
    }
    let chart = chart_json(&history.samples_between(0, 3_600, 1_000));
    // A rate holds for the whole span of its sample. The length of the queue was only measured at the end of the span.
    assert_eq!(chart["at"], json!([0, 60, 120, 121, 960, 1_020, 1_080]));
    assert_eq!(chart["queued"], json!([null, 5, 5, null, null, 5, 5]));
    let rates = |rate: f64| json!([rate, rate, rate, null, rate, rate, rate]);
    assert_eq!(chart["pages_per_second"], rates(1.0));
    assert_eq!(chart["ended"]["ok"], rates(0.1));
    assert_eq!(chart["resolved"], json!(vec![Value::Null; 7]));
}

#[test]
fn the_chart_of_a_run_begins_and_ends_with_it() {
    let ended = |count: u64| BTreeMap::from([("ok".to_owned(), count)]);
    let of = |at: i64, over: i64, count: u64| Sample {
        at,
        over,
        pages: count,
        ended: ended(count),
        ..Sample::default()
    };
    let completed = |mut samples: Vec<Sample>, totals: Sample| {
        complete_run(&mut samples, totals);
        let spans = samples
            .iter()
            .map(|one| (one.at - one.over, one.at, one.pages));
        spans.collect::<Vec<_>>()
    };
    // The run was shorter than the time between two samples.
    assert_eq!(completed(vec![], of(1_012, 12, 8)), [(1_000, 1_012, 8)]);
    // The run began and ended between two samples.
    let samples = vec![of(990, 30, 0), of(1_020, 30, 0), of(1_060, 30, 0)];
    assert_eq!(completed(samples, of(1_012, 12, 8)), [(1_000, 1_020, 8)]);
    assert_eq!(completed(vec![], of(1_000, 0, 8)), [(1_000, 1_001, 8)]);
    // Part of the run came after the last sample.
    let samples = vec![of(900, 30, 0), of(1_030, 30, 5)];
    assert_eq!(
        completed(samples, of(1_040, 40, 8)),
        [(1_000, 1_030, 5), (1_030, 1_040, 3)]
    );
    // Part of the run came before the dashboard was started.
    let samples = vec![of(1_530, 30, 5)];
    assert_eq!(
        completed(samples, of(1_530, 530, 105)),
        [(1_000, 1_500, 100), (1_500, 1_530, 5)]
    );
}

#[test]
fn many_samples_are_merged_into_few() {
    let mut history = History::open(None);
    for minute in 1..=600 {
        history.add_sample(sample(minute * 60)).write();
    }
    let few = history.samples_between(0, 10 * 3_600, 60);
    assert!((55..=62).contains(&few.len()), "{}", few.len());
    let pages: u64 = few.iter().map(|sample| sample.pages).sum();
    assert_eq!(pages, 600 * 60, "nothing is lost by summing up");
}

#[test]
fn a_crawl_has_its_own_part_of_the_samples() {
    let with_run = |at_s: i64, stored_s: i64, ok: u64| {
        let run = CrawlCounters {
            at_s: stored_s,
            began_s: 1_010,
            ended: BTreeMap::from([("ok".to_owned(), ok)]),
            resolved: ok / 2,
            queued: 9,
        };
        let crawls = crate::snapshot::Crawls {
            read_at_ms: at_s * 1_000,
            pages: ok,
            ended: run.ended.clone(),
            queued: 9,
            runs: BTreeMap::from([("app/c".to_owned(), run)]),
            ..crate::snapshot::Crawls::default()
        };
        Snapshot {
            at_ms: at_s * 1_000,
            crawls: Some(crawls),
            ..Snapshot::default()
        }
    };
    let mut counters = Counters::default();
    assert_eq!(
        counters.take_sample(&Snapshot::default()),
        None,
        "nothing is known"
    );
    let nothing_yet = Snapshot {
        at_ms: 1_000_000,
        crawls: Some(crate::snapshot::Crawls {
            read_at_ms: 1_000_000,
            ..crate::snapshot::Crawls::default()
        }),
        ..Snapshot::default()
    };
    assert_eq!(counters.take_sample(&nothing_yet), None);
    let first = counters.take_sample(&with_run(1_030, 1_022, 4)).unwrap();
    // The crawl has stored no new counters since the last sample, so the next sample covers this time as well.
    let none = counters.take_sample(&with_run(1_040, 1_022, 4)).unwrap();
    assert!(none.sample_of_run("app/c").is_none());
    let mut both = counters.take_sample(&with_run(1_060, 1_058, 10)).unwrap();
    assert_eq!((first.pages, both.pages, both.queued), (4, 6, 9));
    assert_eq!(
        (
            first.runs["app/c"].ended["ok"],
            both.runs["app/c"].ended["ok"]
        ),
        (4, 6)
    );
    let second = std::mem::replace(&mut both, first);
    both.merge_next(&second);
    let own = both.sample_of_run("app/c").unwrap();
    assert_eq!((own.pages, own.records.unwrap().resolved), (10, 5));
    assert_eq!((own.at, own.over), (1_058, 48));
    assert!(both.sample_of_run("app/d").is_none());
}

#[test]
fn charts_end_with_the_present_counts() {
    let with_records = |at_s: i64, resolved: u64| Snapshot {
        records: Some(Records {
            resolved,
            ..Records::default()
        }),
        ..snapshot(at_s, 500, 50)
    };
    let mut counters = Counters::default();
    assert_eq!(counters.sample_until(&with_records(1_000, 0)), None);
    counters.take_sample(&with_records(1_000, 0));
    let sample = counters.take_sample(&with_records(1_010, 0)).unwrap();
    assert_eq!(sample.records.unwrap().resolved, 0);
    let shown = |at_s: i64| counters.sample_until(&with_records(at_s, 62));
    assert_eq!(shown(1_012), None, "rates over two seconds say little");
    let current = shown(1_020).unwrap();
    assert_eq!((current.at, current.over), (1_020, 10));
    assert_eq!(current.records.unwrap().resolved, 62);
}
