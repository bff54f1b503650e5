//! Generates tables with known truth: the true values of each item, and claims of sites and values of records, with
//! errors.

use std::collections::HashSet;

use webfill_truth::{Claim, Evidence, FieldShape, Known, Presence};

/// How a table is generated.
#[derive(Debug, Clone)]
pub struct Plan {
    pub rows: usize,
    pub fields: usize,
    pub sites: usize,
    /// The accuracy of each site (the share of its pages that state the truth) is drawn from this range.
    pub site_accuracy: (f64, f64),
    /// How precise chains are: the share of pages that a chain reads correctly. One is drawn for each site and field.
    pub chains: Vec<f64>,
    /// How many alternative chains, with other anchors, read each page.
    pub alternatives: usize,
    /// The probability that an alternative chain is wrong if the first chain is wrong.
    pub wrong_together: f64,
    /// The share of rows that a site has a page for.
    pub coverage: f64,
    /// The share of pages that belong to another row.
    pub foreign: f64,
    /// How many sites copy from another site, and the share of its values that they copy.
    pub copiers: usize,
    pub copied: f64,
    /// How many different values each field has. With few of them, wrong values are often equal.
    pub domain: usize,
    /// How many items have a known value, and the share of these values that are wrong.
    pub known: usize,
    pub wrong_known: f64,
    /// Whether the pages are searched for known values.
    pub searched: bool,
    pub several: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            rows: 1_000,
            fields: 5,
            sites: 4,
            site_accuracy: (0.97, 1.0),
            chains: vec![1.0, 1.0, 0.995, 0.99, 0.98, 0.95, 0.8, 0.3],
            alternatives: 2,
            wrong_together: 0.5,
            coverage: 0.5,
            foreign: 0.002,
            copiers: 0,
            copied: 0.9,
            domain: 2_000,
            known: 1_000,
            wrong_known: 0.1,
            searched: true,
            several: false,
        }
    }
}

/// A generated table, with the truth about its items.
#[derive(Debug)]
pub struct Table {
    pub shapes: Vec<FieldShape>,
    pub claims: Vec<Claim>,
    pub known: Vec<Known>,
    /// For each item, its true values, sorted.
    pub truth: Vec<Vec<u32>>,
}

impl Table {
    pub fn evidence(&self) -> Evidence<'_> {
        Evidence {
            fields: &self.shapes,
            claims: &self.claims,
            known: &self.known,
            texts: &[],
            chosen: &[],
        }
    }

    pub fn known_items(&self) -> HashSet<u32> {
        self.known.iter().map(|known| known.item).collect()
    }
}

pub fn make_table(plan: &Plan, seed: u64) -> Table {
    let mut dice = fastrand::Rng::with_seed(seed);
    let items = plan.rows * plan.fields;
    let truth: Vec<Vec<u32>> = (0..items)
        .map(|item| draw_truths(plan, item, &mut dice))
        .collect();
    let mut table = Table {
        shapes: vec![
            if plan.several {
                FieldShape::Several
            } else {
                FieldShape::Single
            };
            plan.fields
        ],
        claims: Vec::new(),
        known: Vec::new(),
        truth,
    };
    // The values that each site states for each item. They decide which known values are on the site's pages.
    let mut stated: Vec<Vec<Option<Vec<u32>>>> = Vec::new();
    for site in 0..plan.sites {
        let (low, high) = plan.site_accuracy;
        let accuracy = low + (high - low) * dice.f64();
        let original =
            (site >= plan.sites - plan.copiers).then(|| dice.usize(..plan.sites - plan.copiers));
        let mut states = Vec::with_capacity(items);
        for row in 0..plan.rows {
            let has_page = dice.f64() < plan.coverage;
            let foreign = dice.f64() < plan.foreign;
            let of = if foreign {
                dice.usize(..plan.rows)
            } else {
                row
            };
            for field in 0..plan.fields {
                let right = dice.f64() < accuracy;
                let mut own = table.truth[of * plan.fields + field].clone();
                if !right {
                    own = spoil_values(plan, field, &own, &mut dice);
                }
                if let Some(original) = original
                    && let Some(copy) = &stated[original][row * plan.fields + field]
                    && dice.f64() < plan.copied
                {
                    own = copy.clone();
                }
                states.push(has_page.then_some(own));
            }
        }
        stated.push(states);
    }
    for (site, states) in stated.iter().enumerate() {
        for field in 0..plan.fields {
            let precision = plan.chains[dice.usize(..plan.chains.len())];
            for row in 0..plan.rows {
                if let Some(values) = &states[row * plan.fields + field] {
                    add_claims(
                        plan,
                        &mut table,
                        (site, row, field),
                        values,
                        precision,
                        &mut dice,
                    );
                }
            }
        }
    }
    add_known_values(plan, &mut table, &stated, &mut dice);
    table
}

fn draw_value(plan: &Plan, field: usize, dice: &mut fastrand::Rng) -> u32 {
    (field * plan.domain * 2 + dice.usize(..plan.domain)) as u32
}

fn draw_truths(plan: &Plan, item: usize, dice: &mut fastrand::Rng) -> Vec<u32> {
    let count = if plan.several { 1 + dice.usize(..4) } else { 1 };
    let mut values: Vec<u32> = (0..count)
        .map(|_| draw_value(plan, item % plan.fields, dice))
        .collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Changes a value to another one. In a list, one value is removed, added or replaced.
fn spoil_values(plan: &Plan, field: usize, values: &[u32], dice: &mut fastrand::Rng) -> Vec<u32> {
    let mut spoilt = values.to_vec();
    let change = if plan.several { dice.usize(..3) } else { 2 };
    if change != 1 && (change == 2 || spoilt.len() > 1) {
        spoilt.swap_remove(dice.usize(..spoilt.len()));
    }
    while change != 0 && spoilt.len() < values.len() + usize::from(change == 1) {
        let other = draw_value(plan, field, dice);
        if !values.contains(&other) && !spoilt.contains(&other) {
            spoilt.push(other);
        }
    }
    spoilt.sort_unstable();
    spoilt
}

fn add_claims(
    plan: &Plan,
    table: &mut Table,
    (site, row, field): (usize, usize, usize),
    stated: &[u32],
    precision: f64,
    dice: &mut fastrand::Rng,
) {
    let goes_wrong = dice.f64() >= precision;
    // The value that a chain reads by mistake: half of the time another value of the field.
    let mistake = if dice.bool() {
        draw_value(plan, field, dice)
    } else {
        (field * plan.domain * 2 + plan.domain + dice.usize(..plan.domain)) as u32
    };
    for rule in 0..=plan.alternatives {
        let wrong = match rule {
            0 => goes_wrong,
            _ if goes_wrong => dice.f64() < plan.wrong_together,
            _ => dice.f64() < 0.02,
        };
        let mut read = stated.to_vec();
        if wrong {
            let place = dice.usize(..read.len());
            let own_mistake = rule > 0 && (!goes_wrong || dice.bool());
            read[place] = if own_mistake {
                draw_value(plan, field, dice)
            } else {
                mistake
            };
        }
        for value in read {
            table.claims.push(Claim {
                item: (row * plan.fields + field) as u32,
                field: field as u32,
                value,
                page: (site * plan.rows + row) as u32,
                site: site as u32,
                layout: site as u32,
                rule: ((site * plan.fields + field) * 8 + rule) as u32,
                anchor: rule as u8,
            });
        }
    }
}

/// Draws the items with known values, and makes some of these wrong.
fn add_known_values(
    plan: &Plan,
    table: &mut Table,
    stated: &[Vec<Option<Vec<u32>>>],
    dice: &mut fastrand::Rng,
) {
    let mut items: Vec<usize> = (0..table.truth.len())
        .filter(|item| stated.iter().any(|states| states[*item].is_some()))
        .collect();
    dice.shuffle(&mut items);
    for item in items.into_iter().take(plan.known) {
        let field = item % plan.fields;
        let mut values = table.truth[item].clone();
        if dice.f64() < plan.wrong_known {
            values = spoil_values(plan, field, &values, dice);
        }
        for value in values {
            let on_page = stated.iter().any(|states| {
                states[item]
                    .as_ref()
                    .is_some_and(|own| own.contains(&value))
            });
            let presence = match plan.searched {
                false => Presence::Unknown,
                true if on_page || dice.f64() < 0.03 => Presence::OnPage,
                true => Presence::Absent,
            };
            table.known.push(Known {
                item: item as u32,
                value,
                held_out: true,
                presence,
                chance: 0.0,
            });
        }
    }
}
