//! Proposes values for a site without known values, from what sites with known values (taught sites) have in common.
//!
//! Pages of a layout have the same things in the same places. Such a place is a slot ([`slots`]), with the words that
//! name it: a label, classes, a property of linked data. The taught sites show which of their slots hold a field, and
//! what its values look like ([`profile`]). The evidence for each slot of the unknown site ([`evidence`]) gives the
//! probability that this slot holds the field, rather than another slot or none.
//!
//! The method is verified on the taught sites: proposals for each of them, made from the others, are compared with its
//! known values.

mod evidence;
mod profile;
mod slots;

use std::collections::BTreeSet;

use crate::types::Page;
use evidence::{Evidence, FieldModel};
use profile::Profile;
use slots::{Site, Slot, Value, comparison_form, words};

/// The most pages of a site that are used.
const MOST_PAGES: usize = 30;

/// A taught site (with known values) shows where a field is only if at least this many of its pages have known values.
const LEAST_KNOWN: usize = 2;

/// The share of the known values that a slot (shared place) must hold. It is below 1, because records may be wrong.
const HOLDS: f64 = 0.6;

/// A slot (shared place) with a lower confidence is not proposed.
const LEAST: f64 = 0.5;

/// The highest confidence of a doubtful proposal, which becomes a question to a person. A proposal is doubtful without
/// evidence from both names and values. It is also doubtful if a confident proposal for a taught site contradicts that
/// site's known values.
const DOUBTFUL: f64 = 0.9;

/// A field that values may be proposed for.
#[derive(Debug, Clone)]
pub struct ProposedField {
    pub name: String,
    /// The name of the field that users see.
    pub title: String,
    pub is_list: bool,
}

/// The values that are proposed for a field: those of a slot (shared place) of the unknown site that probably holds it.
#[derive(Debug, Clone)]
pub struct Proposal {
    pub field: String,
    /// The probability that the slot (shared place) holds the field.
    pub confidence: f64,
    /// The values for each page; empty if the slot (shared place) has none there.
    pub values: Vec<Vec<String>>,
}

/// What the values of a field usually look like. If a page lacks the value, an extraction chain may read something else
/// that looks different.
pub struct Appearance(Profile);

impl Appearance {
    pub fn from_values<'v>(known: impl Iterator<Item = &'v str>) -> Appearance {
        Appearance(Profile::from_values(known.map(|value| (value, value))))
    }

    /// Whether a value looks like the field's usual values.
    pub fn fits(&self, value: &str) -> bool {
        self.0.fits(value)
    }
}

/// The sites with known values. Proposals are made from them.
pub struct Teachers {
    fields: Vec<ProposedField>,
    sites: Vec<TaughtSite>,
    /// For each field, whether proposals for each taught site, made from the others, agree with that site's known
    /// values.
    confirmed: Vec<bool>,
}

struct TaughtSite {
    site: Site,
    fields: Vec<TaughtField>,
}

/// What is known about one field on a taught site.
#[derive(Default)]
struct TaughtField {
    known: Vec<Value>,
    /// Whether enough values are known to judge a proposal for this site.
    is_known: bool,
    /// The indexes of the site's slots (shared places) that hold the field.
    right: Vec<usize>,
}

impl Teachers {
    /// Learns from the pages of some sites with known values.
    pub fn new(sites: &[Vec<&Page>], fields: &[ProposedField]) -> Teachers {
        let sites: Vec<TaughtSite> = sites
            .iter()
            .map(|pages| TaughtSite::new(&select_best_known_pages(pages), fields))
            .collect();
        let mut teachers = Teachers {
            fields: fields.to_vec(),
            sites,
            confirmed: vec![true; fields.len()],
        };
        teachers.confirmed = (0..fields.len())
            .map(|field| teachers.is_confirmed(field))
            .collect();
        teachers
    }

    /// Proposes values for fields of an unknown site. `wanted` has the indexes of these fields.
    pub fn propose(&self, pages: &[&Page], wanted: &[usize]) -> Vec<Proposal> {
        let some = &pages[..pages.len().min(MOST_PAGES)];
        let site = Site::from_pages(some);
        let mut found: Vec<(usize, Guess)> = Vec::new();
        for &field in wanted {
            let teaching: Vec<&TaughtSite> = self.sites.iter().collect();
            found.extend(
                self.best_guess(&site, field, &teaching)
                    .map(|guess| (field, guess)),
            );
        }
        found.sort_by(|a, b| b.1.confidence.total_cmp(&a.1.confidence));
        let mut taken: Vec<&Slot> = Vec::new();
        // Slots that hold a field with known values are taken, because a slot (shared place) holds only one field.
        for (at, field) in self.fields.iter().enumerate() {
            if !wanted.contains(&at) {
                let of_field = TaughtField::new(&site, some, field);
                taken.extend(of_field.right.iter().map(|&slot| &site.slots[slot]));
            }
        }
        let mut proposals = Vec::new();
        for (field, guess) in &found {
            let slot = &site.slots[guess.slot];
            // A slot (shared place) holds only one field, so the same slot is not proposed twice.
            if guess.confidence < LEAST || taken.iter().any(|other| other.has_same_values(slot)) {
                continue;
            }
            let is_sure = guess.is_twofold && self.confirmed[*field];
            let is_list = self.fields[*field].is_list;
            let mut values: Vec<Vec<String>> = slot
                .values
                .iter()
                .map(|values| value_texts(values, is_list))
                .collect();
            // Nothing is proposed if all pages have several values where one is expected, because nothing shows which
            // value is right.
            if values.iter().all(Vec::is_empty) {
                continue;
            }
            taken.push(slot);
            values.resize(pages.len(), Vec::new());
            proposals.push(Proposal {
                field: self.fields[*field].name.clone(),
                confidence: match is_sure {
                    true => guess.confidence,
                    false => guess.confidence.min(DOUBTFUL),
                },
                values,
            });
        }
        proposals
    }

    /// Whether each confident proposal of this field for a taught site, made from the others, is a slot (shared place)
    /// that holds the field.
    fn is_confirmed(&self, field: usize) -> bool {
        (0..self.sites.len()).all(|at| {
            let taught = &self.sites[at];
            let others: Vec<&TaughtSite> = self
                .sites
                .iter()
                .enumerate()
                .filter_map(|(other, site)| (other != at).then_some(site))
                .collect();
            let TaughtField {
                right, is_known, ..
            } = &taught.fields[field];
            if !is_known {
                return true;
            }
            let guess = self.best_guess(&taught.site, field, &others);
            guess.is_none_or(|guess| {
                let slot = &taught.site.slots[guess.slot];
                let is_right = right
                    .iter()
                    .any(|right| taught.site.slots[*right].has_same_values(slot));
                is_right || guess.confidence < DOUBTFUL
            })
        })
    }

    fn best_guess(&self, site: &Site, field: usize, teaching: &[&TaughtSite]) -> Option<Guess> {
        let model = self.build_model(field, teaching)?;
        let evidence: Vec<Evidence> = site
            .slots
            .iter()
            .map(|slot| Evidence::new(slot, &slot.profile, site.pages, &model))
            .collect();
        let odds: Vec<f64> = evidence.iter().map(|one| one.log_odds().exp()).collect();
        // The case that no slot (shared place) holds the field has odds of 1.
        let all: f64 = 1.0 + odds.iter().sum::<f64>();
        let best = (0..odds.len()).max_by(|a, b| odds[*a].total_cmp(&odds[*b]))?;
        let slot = &site.slots[best];
        let same = (0..odds.len()).filter(|&at| {
            at == best || (odds[at] > all * 1e-4 && site.slots[at].has_same_values(slot))
        });
        Some(Guess {
            slot: best,
            confidence: same.map(|at| odds[at]).sum::<f64>() / all,
            is_twofold: evidence[best].has_name_and_values(),
        })
    }

    fn build_model<'t>(&self, field: usize, teaching: &[&'t TaughtSite]) -> Option<FieldModel<'t>> {
        let wanted = &self.fields[field];
        let mut model = FieldModel {
            title: words(&wanted.title),
            is_list: wanted.is_list,
            ..FieldModel::default()
        };
        let mut known: Vec<&Value> = Vec::new();
        let mut distinct = Vec::new();
        for taught in teaching {
            let of_field = &taught.fields[field];
            known.extend(&of_field.known);
            if of_field.right.is_empty() {
                continue;
            }
            for (at, slot) in taught.site.slots.iter().enumerate() {
                let names = slot.label.iter().chain(&slot.property);
                if of_field.right.contains(&at) {
                    model.right.push(slot);
                    model.profiles.push(slot.profile.clone());
                } else if !of_field.right.iter().any(|right| {
                    let right = &taught.site.slots[*right];
                    right.label == slot.label && right.property == slot.property
                }) {
                    model.wrong.extend(names.cloned());
                }
            }
            let forms: BTreeSet<&str> =
                of_field.known.iter().map(|one| one.form.as_str()).collect();
            distinct.push(forms.len() as f64 / of_field.known.len().max(1) as f64);
        }
        if known.is_empty() {
            return None;
        }
        for right in &model.right {
            for name in right.label.iter().chain(&right.property) {
                model.wrong.remove(name);
            }
        }
        model.distinct = distinct.iter().sum::<f64>() / distinct.len().max(1) as f64;
        let of_known = known
            .iter()
            .map(|one| (one.text.as_str(), one.form.as_str()));
        model.profiles.push(Profile::from_values(of_known));
        Some(model)
    }
}

struct Guess {
    slot: usize,
    confidence: f64,
    is_twofold: bool,
}

impl TaughtSite {
    fn new(pages: &[&Page], fields: &[ProposedField]) -> TaughtSite {
        let site = Site::from_pages(pages);
        let fields = fields
            .iter()
            .map(|field| TaughtField::new(&site, pages, field))
            .collect();
        TaughtSite { site, fields }
    }
}

impl TaughtField {
    fn new(site: &Site, pages: &[&Page], field: &ProposedField) -> TaughtField {
        let known: Vec<Vec<Value>> = pages
            .iter()
            .map(|page| {
                let values = page.known.get(&field.name).into_iter().flatten();
                let values = values.map(|text| Value {
                    text: text.clone(),
                    form: comparison_form(text),
                });
                values.collect()
            })
            .collect();
        let pages_known = known.iter().filter(|known| !known.is_empty()).count();
        let mut taught = TaughtField {
            known: known.iter().flatten().cloned().collect(),
            is_known: pages_known >= LEAST_KNOWN,
            right: Vec::new(),
        };
        if !taught.is_known {
            return taught;
        }
        let shares: Vec<f64> = site
            .slots
            .iter()
            .map(
                |slot| match field.is_list || slot.mean_values_per_page() <= 1.5 {
                    true => share_of_known(slot, &known) / pages_known as f64,
                    false => 0.0,
                },
            )
            .collect();
        let most = shares.iter().copied().fold(0.0, f64::max);
        if most >= HOLDS {
            let is_right = |at: &usize| shares[*at] >= (most * 0.9).max(HOLDS);
            taught.right = (0..shares.len()).filter(is_right).collect();
        }
        taught
    }
}

/// How well the values of a slot (shared place) agree with the known values: the sum of F1 over all pages.
fn share_of_known(slot: &Slot, known: &[Vec<Value>]) -> f64 {
    let of_page = |(values, known): (&Vec<Value>, &Vec<Value>)| {
        if values.is_empty() || known.is_empty() {
            return 0.0;
        }
        let values: BTreeSet<&str> = values.iter().map(|value| value.form.as_str()).collect();
        let known: BTreeSet<&str> = known.iter().map(|value| value.form.as_str()).collect();
        let both = values.intersection(&known).count() as f64;
        2.0 * both / (values.len() + known.len()) as f64
    };
    slot.values.iter().zip(known).map(of_page).sum()
}

/// The different values of a slot (shared place) on a page. If one value is expected but there are several, the result
/// is empty.
fn value_texts(values: &[Value], is_list: bool) -> Vec<String> {
    let mut forms = BTreeSet::new();
    let distinct: Vec<String> = values
        .iter()
        .filter(|value| forms.insert(value.form.as_str()))
        .map(|value| value.text.clone())
        .collect();
    match is_list || distinct.len() == 1 {
        true => distinct,
        false => Vec::new(),
    }
}

/// The pages with the most known fields, at most [`MOST_PAGES`].
fn select_best_known_pages<'p>(pages: &[&'p Page]) -> Vec<&'p Page> {
    let mut best = pages.to_vec();
    best.sort_by_key(|page| usize::MAX - page.known.len());
    best.truncate(MOST_PAGES);
    best
}
