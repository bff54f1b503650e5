//! Tests how accurate judgements of generated tables are: whether confidence is right, whether wrong records are
//! doubted, and whether the judgement is better than a majority vote.
//!
//! `tests/bench/run.sh truth` prints the figures.

mod made;
mod measure;

use made::{Plan, make_table};
use measure::{Buckets, Decisions, Doubting, majority_values, sum_accuracies};
use webfill_truth::{Claim, Evidence, FieldShape, Known, Presence, estimate};

/// The accuracy of judgements, measured on a few tables of one plan.
#[derive(Debug, Default)]
struct Figures {
    buckets: Buckets,
    doubting: Doubting,
    fused: f64,
    voted: f64,
}

fn measure(plan: &Plan) -> Figures {
    const SEEDS: u64 = 3;
    let mut figures = Figures::default();
    let mut items = 0.0;
    for seed in 0..SEEDS {
        let table = make_table(plan, seed);
        let judgement = estimate(&table.evidence());
        figures.buckets.add(&table, &judgement);
        figures.doubting.add(&table, &judgement);
        let (fused, voted, all) = sum_accuracies(&table, &judgement, &majority_values(&table));
        figures.fused += fused;
        figures.voted += voted;
        items += all;
    }
    figures.fused /= items;
    figures.voted /= items;
    figures
}

#[test]
fn confidence_matches_the_share_of_right_values() {
    for (name, plan) in [
        ("usual", Plan::default()),
        (
            "30 % of records wrong",
            Plan {
                wrong_known: 0.3,
                ..Plan::default()
            },
        ),
        (
            "poor sites",
            Plan {
                site_accuracy: (0.5, 0.99),
                sites: 6,
                chains: vec![1.0],
                ..Plan::default()
            },
        ),
        (
            "five values",
            Plan {
                domain: 5,
                ..Plan::default()
            },
        ),
        (
            "lists",
            Plan {
                several: true,
                ..Plan::default()
            },
        ),
    ] {
        for known in [0, 5, 20, 100, 1_000] {
            let figures = measure(&Plan {
                known,
                ..plan.clone()
            });
            let (error, right) = (
                figures.buckets.calibration_error(),
                figures.buckets.accuracy_at_99(),
            );
            println!(
                "{name:<22} {known:>5} known: calibration error {error:.4}, right at .99 {right:.4}, accuracy {:.4} (vote {:.4})",
                figures.fused, figures.voted
            );
            assert!(error <= 0.02, "{name}, {known} known: {error}");
            assert!(right >= 0.985, "{name}, {known} known: {right}");
            assert!(figures.fused > figures.voted, "{name}, {known} known");
        }
    }
}

/// Judges many small tables of a single site. Each site has only few known values to judge it by.
#[test]
fn confidence_holds_for_a_single_site_with_few_known_values() {
    for (name, plan) in [
        ("one site", Plan::default()),
        (
            "not searched",
            Plan {
                searched: false,
                ..Plan::default()
            },
        ),
        (
            "no alternatives",
            Plan {
                alternatives: 0,
                ..Plan::default()
            },
        ),
        (
            "30 % of records wrong",
            Plan {
                wrong_known: 0.3,
                ..Plan::default()
            },
        ),
        (
            "all chains sound",
            Plan {
                chains: vec![0.995],
                site_accuracy: (0.99, 1.0),
                ..Plan::default()
            },
        ),
        (
            "sites sound",
            Plan {
                site_accuracy: (0.995, 1.0),
                ..Plan::default()
            },
        ),
        (
            "poor chains",
            Plan {
                chains: vec![0.9, 0.7, 0.3],
                ..Plan::default()
            },
        ),
    ] {
        for known in [5, 20, 100, 500] {
            let mut buckets = Buckets::default();
            let mut doubting = Doubting::default();
            let mut decisions = Decisions::default();
            for seed in 0..40 {
                let table = make_table(
                    &Plan {
                        rows: 200,
                        sites: 1,
                        coverage: 1.0,
                        known,
                        ..plan.clone()
                    },
                    seed,
                );
                let judgement = estimate(&table.evidence());
                buckets.add(&table, &judgement);
                doubting.add(&table, &judgement);
                decisions.add(&table, &judgement, 0.95);
            }
            println!(
                "{name:<22} {known:>4} known: calibration error {:.4}, right at .99 {:.4} ({:.0} % of all), doubted {:.4}, false {:.4}, filled {decisions}",
                buckets.calibration_error(),
                buckets.accuracy_at_99(),
                100.0 * buckets.share_at_99(),
                doubting.found_share(),
                doubting.false_flag_rate()
            );
            if name.ends_with("sound") && known >= 100 {
                assert!(
                    buckets.calibration_error() <= 0.02,
                    "{name}: {}",
                    buckets.calibration_error()
                );
                assert!(
                    buckets.accuracy_at_99() >= 0.985,
                    "{name}: {}",
                    buckets.accuracy_at_99()
                );
            }
            if name != "poor chains" && known >= 20 {
                assert!(
                    decisions.precision() >= 0.95,
                    "{name}, {known} known: {decisions}"
                );
            }
        }
    }
}

/// If a record differs from the page by one typing error, and its value is nowhere on the page, then the record is
/// wrong. So the page belongs to the row, and the chain is right.
#[test]
fn misspelt_records_are_doubted_and_confirm_the_page() {
    let judged = |presence| {
        // Three fields of eight rows. Two of the first row's records are wrong, and one of the fourth row's.
        let wrong = [(0, 0), (0, 1), (3, 1)];
        let (mut claims, mut known) = (Vec::new(), Vec::new());
        for row in 0..8_u32 {
            for field in 0..3 {
                let (item, value) = (row * 3 + field, 100 * field + row);
                claims.push(Claim {
                    item,
                    field,
                    value,
                    page: row,
                    site: 0,
                    layout: 0,
                    rule: field,
                    anchor: 0,
                });
                let is_wrong = wrong.contains(&(row, field));
                if row < 5 && (row, field) != (0, 2) {
                    known.push(Known {
                        item,
                        value: if is_wrong { 1_000 + item } else { value },
                        held_out: true,
                        presence: if is_wrong { presence } else { Presence::OnPage },
                        chance: 0.0,
                    });
                }
            }
        }
        estimate(&Evidence {
            fields: &[FieldShape::Single; 3],
            claims: &claims,
            known: &known,
            texts: &[],
            chosen: &[],
        })
    };
    let (misspelt, absent) = (judged(Presence::Misspelt), judged(Presence::Absent));
    assert_eq!(misspelt.likely_errors().len(), 3);
    for doubt in misspelt.likely_errors() {
        assert!(doubt.surely > 0.97, "{doubt:?}");
    }
    // Item 2 is the only field without a known value in the first row.
    let confidence = |judged: &webfill_truth::Judgement| judged.item(2).unwrap().confidence;
    assert!(confidence(&misspelt) > 0.97, "{}", confidence(&misspelt));
    assert!(confidence(&absent) < confidence(&misspelt));
    assert!(misspelt.decide_fill(0, 1, 0.95).fill);
}

#[test]
fn pages_of_other_rows_are_not_believed() {
    let plan = Plan {
        foreign: 0.05,
        wrong_known: 0.1,
        known: 3_000,
        site_accuracy: (0.99, 1.0),
        ..Plan::default()
    };
    let figures = measure(&plan);
    println!(
        "5 % of pages of other rows: calibration error {:.4}, doubted {:.4}, false {:.4}",
        figures.buckets.calibration_error(),
        figures.doubting.found_share(),
        figures.doubting.false_flag_rate()
    );
    assert!(figures.buckets.calibration_error() <= 0.02);
    assert!(figures.doubting.false_flag_rate() <= 0.01);
}

#[test]
fn wrong_known_values_are_doubted() {
    for (name, wrong_known) in [("10 % wrong", 0.1), ("30 % wrong", 0.3)] {
        let plan = Plan {
            wrong_known,
            site_accuracy: (0.99, 1.0),
            ..Plan::default()
        };
        let figures = measure(&plan).doubting;
        println!(
            "{name}: found {:.4}, false flags {:.4}",
            figures.found_share(),
            figures.false_flag_rate()
        );
        assert!(
            figures.found_share() >= 0.99,
            "{name}: {}",
            figures.found_share()
        );
        assert!(
            figures.false_flag_rate() <= 0.005,
            "{name}: {}",
            figures.false_flag_rate()
        );
    }
}
