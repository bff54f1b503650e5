//! Compares this crate with other methods of combining the claims of sites, on the data sets in a folder.
//!
//! `TRUTH_SETS=FOLDER cargo test -p webfill-truth --test public_sets -- --ignored --nocapture`
//!
//! Each file NAME.tsv begins with `# single` or `# several`. Then there is a line for each claim, `claim ITEM SITE
//! VALUE`, and one for each known truth, `truth ITEM VALUE`, separated by tabs. Values that differ only in form must be
//! written alike.

#[path = "rivals/mod.rs"]
mod rivals;

use std::collections::HashMap;

use rivals::{Choices, METHODS, Votes};
use webfill_truth::{Claim, Evidence, FieldShape, Known, Presence, estimate};

struct Set {
    shape: FieldShape,
    claims: Vec<Claim>,
    truth: Vec<(u32, Vec<u32>)>,
}

#[derive(Default)]
struct Numbers(HashMap<String, u32>);

impl Numbers {
    fn intern(&mut self, name: &str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name.to_owned()).or_insert(next)
    }
}

fn parse_set(text: &str) -> Set {
    let (mut items, mut sites, mut values) =
        (Numbers::default(), Numbers::default(), Numbers::default());
    let mut set = Set {
        shape: if text.starts_with("# several") {
            FieldShape::Several
        } else {
            FieldShape::Single
        },
        claims: Vec::new(),
        truth: Vec::new(),
    };
    for line in text.lines() {
        match line.split('\t').collect::<Vec<&str>>()[..] {
            ["claim", item, site, value] => {
                let (item, site) = (items.intern(item), sites.intern(site));
                set.claims.push(Claim {
                    item,
                    field: 0,
                    value: values.intern(value),
                    page: item * 1_000 + site,
                    site,
                    layout: site,
                    rule: site,
                    anchor: 0,
                });
            }
            ["truth", item, value] => {
                let (item, value) = (items.intern(item), values.intern(value));
                match set.truth.last_mut() {
                    Some((last, values)) if *last == item => values.push(value),
                    _ => set.truth.push((item, vec![value])),
                }
            }
            _ => {}
        }
    }
    let claimed: std::collections::HashSet<u32> =
        set.claims.iter().map(|claim| claim.item).collect();
    set.truth.retain(|(item, _)| claimed.contains(item));
    set
}

/// The F1 of the chosen values in percent, averaged over items. For items with a single truth, F1 equals accuracy.
fn score(choices: &Choices, truth: &[(u32, Vec<u32>)]) -> f64 {
    let f1 = |(item, truth): &(u32, Vec<u32>)| {
        let chosen = &choices[item];
        let right = chosen.iter().filter(|value| truth.contains(value)).count() as f64;
        2.0 * right / (chosen.len() + truth.len()) as f64
    };
    100.0 * truth.iter().map(f1).sum::<f64>() / truth.len() as f64
}

#[test]
#[ignore = "needs TRUTH_SETS"]
fn compare_methods_on_public_sets() {
    let folder = std::env::var("TRUTH_SETS").expect("TRUTH_SETS names a folder");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for file in files {
        let mut set = parse_set(&std::fs::read_to_string(&file).expect("a text"));
        fastrand::Rng::with_seed(1).shuffle(&mut set.truth);
        println!(
            "{}: {} claims, {} items with a truth",
            file.display(),
            set.claims.len(),
            set.truth.len()
        );
        let votes = Votes::new(set.shape, &set.claims);
        // All methods are judged on the second half of the items. True values of the first half serve as known values.
        let (known, judged) = set.truth.split_at(set.truth.len() / 2);
        for (name, method) in METHODS {
            println!("  {name:<12} {:.1}", score(&method(&votes), judged));
        }
        for count in [0, 5, 20, known.len()] {
            for wrong in [0, 3] {
                let known: Vec<Known> = known[..count.min(known.len())]
                    .iter()
                    .enumerate()
                    .flat_map(|(place, (item, values))| {
                        // Of each ten items, `wrong` get the values of another item.
                        let values = if place % 10 < wrong {
                            &set.truth[(place * 7 + 1) % set.truth.len()].1
                        } else {
                            values
                        };
                        values.iter().map(|value| Known {
                            item: *item,
                            value: *value,
                            held_out: true,
                            presence: Presence::Unknown,
                            chance: 0.0,
                        })
                    })
                    .collect();
                let started = std::time::Instant::now();
                let judgement = estimate(&Evidence {
                    fields: &[set.shape],
                    claims: &set.claims,
                    known: &known,
                    texts: &[],
                    chosen: &[],
                });
                let took = started.elapsed();
                let choices: Choices = judgement
                    .items
                    .iter()
                    .map(|item| {
                        (
                            item.item,
                            item.chosen.iter().map(|chosen| chosen.value).collect(),
                        )
                    })
                    .collect();
                println!(
                    "  webfill, {count} known, {wrong}0 % wrong: {:.1} ({took:?})",
                    score(&choices, judged)
                );
            }
        }
    }
}
