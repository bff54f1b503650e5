//! How well judgements of made tables hold: calibration, doubts, and fusion beside a plain vote.
//!
//! `tests/bench/run.sh truth` prints the figures.

mod made;
mod measure;

use made::{Plan, make};
use measure::{Buckets, Doubting, correct, vote};
use webfill_truth::judge;

/// Figures over a few tables of one plan.
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
        let table = make(plan, seed);
        let judgement = judge(&table.evidence());
        figures.buckets.add(&table, &judgement);
        figures.doubting.add(&table, &judgement);
        let (fused, voted, all) = correct(&table, &judgement, &vote(&table));
        figures.fused += fused;
        figures.voted += voted;
        items += all;
    }
    figures.fused /= items;
    figures.voted /= items;
    figures
}

#[test]
fn confidence_means_what_it_says() {
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
            let (error, right) = (figures.buckets.error(), figures.buckets.right_at_99());
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

#[test]
fn wrong_known_values_are_pointed_at() {
    for (name, wrong_known) in [("10 % wrong", 0.1), ("30 % wrong", 0.3)] {
        let plan = Plan {
            wrong_known,
            site_accuracy: (0.99, 1.0),
            ..Plan::default()
        };
        let figures = measure(&plan).doubting;
        println!(
            "{name}: found {:.4}, false flags {:.4}",
            figures.found(),
            figures.false_flags()
        );
        assert!(figures.found() >= 0.99, "{name}: {}", figures.found());
        assert!(
            figures.false_flags() <= 0.005,
            "{name}: {}",
            figures.false_flags()
        );
    }
}
