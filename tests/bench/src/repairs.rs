//! Judges repairs of mappings that a redesign has broken. Any program may have made the repairs.
//!
//! A field is *broken* if the mapping read it well before (`RIGHT_BEFORE`), and now reads it less than half as well. An
//! accepted repair is *right* if the field is read correctly on the new pages, and *wrong* otherwise. How it reads the
//! true values does not matter.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use webfill_urls::Url;

use crate::redesign::{Redesign, visible_text};
use crate::sites::{Failure, Site, Values, build_engine, extract};

/// A field counts as right before the redesign if its F1 score on the old pages is at least this.
const RIGHT_BEFORE: f64 = 0.9;

/// A repaired field is right if its mean F1 score over the new pages is at least this.
const RIGHT_AFTER: f64 = 0.9;

/// A page after a redesign.
#[derive(Debug, Clone)]
pub struct NewPage {
    pub url: Url,
    pub html: String,
    /// The true values on the page, as the old layout writes them.
    pub truth: Values,
    /// For each value that the new layout writes differently, its old form by its new form.
    old_forms: BTreeMap<String, String>,
}

/// A mapping, its pages before and after a redesign, and the fields that the redesign has broken.
#[derive(Debug, Clone)]
pub struct Break {
    pub mapping: Value,
    /// The broken fields.
    pub fields: BTreeSet<String>,
    /// Whether every field that was right before the redesign is still right.
    pub is_unharmed: bool,
    /// The values that the mapping read before the redesign, for each page.
    pub before: Vec<(Url, Values)>,
    /// The true values among those in `before`, for each page.
    pub known: Vec<Values>,
    pub after: Vec<NewPage>,
}

/// A repaired mapping, and what the repair claims.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    pub mapping: Option<Value>,
    /// The fields that the repair claims to have repaired.
    pub accepted: BTreeSet<String>,
}

/// How the repair of a field has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairOutcome {
    Right,
    Wrong,
    Refused,
}

impl Break {
    /// Applies a redesign to a site, and finds its effect on a mapping. `None` if the mapping reads none of the site's
    /// fields well.
    ///
    /// # Errors
    ///
    /// The mapping is not valid.
    pub fn find(
        site: &Site,
        mapping: &Value,
        redesign: &Redesign,
    ) -> Result<Option<Break>, Failure> {
        let engine = build_engine(mapping)?;
        let mut before = Vec::new();
        let (mut truths, mut truth_of) = (Vec::new(), Vec::new());
        for page in &site.pages {
            let read = extract(&engine, &page.url, &page.html);
            truths.push((read.clone(), page.truth.clone()));
            truth_of.push(known_truth(&read, &page.truth));
            before.push((page.url.clone(), read));
        }
        let right: BTreeSet<String> = fields_of(truths.iter().map(|(_, truth)| truth))
            .into_iter()
            .filter(|field| {
                mean_score_of_field(&truths, field).is_some_and(|score| score >= RIGHT_BEFORE)
            })
            .collect();
        if right.is_empty() {
            return Ok(None);
        }
        let after: Vec<NewPage> = site
            .pages
            .iter()
            .zip(&truth_of)
            .map(|(page, truth)| NewPage::new(&page.url, &page.html, truth.clone(), redesign))
            .collect();
        let mut found = Break {
            mapping: mapping.clone(),
            fields: BTreeSet::new(),
            is_unharmed: false,
            before,
            known: truth_of,
            after,
        };
        let now = found.scores(mapping)?;
        let is_right = |field: &String| now.get(field).is_none_or(|score| *score >= RIGHT_BEFORE);
        found.is_unharmed = right.iter().all(is_right);
        found.fields = right
            .into_iter()
            .filter(|field| {
                now.get(field)
                    .is_some_and(|score| *score < RIGHT_BEFORE / 2.0)
            })
            .collect();
        Ok(Some(found))
    }

    /// The mean F1 score of each field over the new pages whose true values are known.
    ///
    /// # Errors
    ///
    /// The mapping is not valid.
    pub fn scores(&self, mapping: &Value) -> Result<BTreeMap<String, f64>, Failure> {
        let engine = build_engine(mapping)?;
        let read: Vec<(Values, Values)> = self
            .after
            .iter()
            .map(|page| {
                (
                    page.to_old_form(extract(&engine, &page.url, &page.html)),
                    page.truth.clone(),
                )
            })
            .collect();
        let fields = fields_of(self.after.iter().map(|page| &page.truth));
        let scored = fields.into_iter().filter_map(|field| {
            let score = mean_score_of_field(&read, &field)?;
            Some((field, score))
        });
        Ok(scored.collect())
    }

    /// The result of each broken field's repair.
    ///
    /// # Errors
    ///
    /// The repaired mapping is not valid.
    pub fn compare_with_truth(
        &self,
        repaired: &Repaired,
    ) -> Result<BTreeMap<String, RepairOutcome>, Failure> {
        let scores = match &repaired.mapping {
            Some(mapping) => self.scores(mapping)?,
            None => BTreeMap::new(),
        };
        let ended = self.fields.iter().map(|field| {
            let is_accepted = repaired.mapping.is_some() && repaired.accepted.contains(field);
            let is_right = scores.get(field).is_some_and(|score| *score >= RIGHT_AFTER);
            let ending = match (is_accepted, is_right) {
                (false, _) => RepairOutcome::Refused,
                (true, true) => RepairOutcome::Right,
                (true, false) => RepairOutcome::Wrong,
            };
            (field.clone(), ending)
        });
        Ok(ended.collect())
    }
}

impl NewPage {
    fn new(url: &Url, html: &str, mut truth: Values, redesign: &Redesign) -> NewPage {
        let html = redesign.apply(html);
        let seen = visible_text(&html);
        let mut old_forms = BTreeMap::new();
        // If the new page does not show a value, the true values of this field are unknown.
        truth.retain(|_, values| {
            values.iter().all(|old| {
                let new = redesign.rewrite_value(old);
                let is_seen = seen.contains(&new) || seen.contains(old.as_str());
                old_forms.insert(new, old.clone());
                is_seen
            })
        });
        NewPage {
            url: url.clone(),
            html,
            truth,
            old_forms,
        }
    }

    /// Converts values that were read to the form of the old layout.
    pub fn to_old_form(&self, mut values: Values) -> Values {
        for value in values.values_mut().flatten() {
            if let Some(old) = self.old_forms.get(value) {
                value.clone_from(old);
            }
        }
        values
    }
}

/// The known values of a page: the values read there that are true.
fn known_truth(read: &Values, truth: &Values) -> Values {
    let mut known = read.clone();
    known.retain(|field, values| {
        let truth = truth.get(field).map_or(&[][..], Vec::as_slice);
        !values.is_empty() && values.iter().all(|value| truth.contains(value))
    });
    known
}

/// For each field with known values, whether the values read agree with them.
pub fn compare_with_known(read: &Values, known: &Values) -> Vec<(String, bool)> {
    let agrees =
        |field: &String, known: &Vec<String>| read.get(field).is_some_and(|read| read == known);
    let all = known.iter().filter(|(_, known)| !known.is_empty());
    all.map(|(field, known)| (field.clone(), agrees(field, known)))
        .collect()
}

fn fields_of<'a>(values: impl Iterator<Item = &'a Values>) -> BTreeSet<String> {
    values.flat_map(|values| values.keys().cloned()).collect()
}

/// The mean F1 score of a field over the pages whose true values are known. If the mapping reads a single value, it may
/// be any of the true ones.
fn mean_score_of_field(pages: &[(Values, Values)], field: &str) -> Option<f64> {
    let known = pages.iter().filter_map(|(read, truth)| {
        let truth = truth.get(field).filter(|truth| !truth.is_empty())?;
        let read = read.get(field).map_or(&[][..], Vec::as_slice);
        Some(match read {
            [one] if truth.contains(one) => 1.0,
            _ => f1(read, truth),
        })
    });
    let known: Vec<f64> = known.collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// The F1 score of two sets of values.
fn f1(read: &[String], truth: &[String]) -> f64 {
    let (read, truth): (BTreeSet<_>, BTreeSet<_>) = (read.iter().collect(), truth.iter().collect());
    let both = read.intersection(&truth).count();
    2.0 * both as f64 / (read.len() + truth.len()).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redesign::Change;
    use crate::sites::LabelledPage;
    use serde_json::json;

    fn mapping(expression: &str) -> Value {
        json!({
            "name": "made",
            "url_patterns": [{"type": "host", "pattern": "made.example"}],
            "fields": [{"name": "price", "processors": [
                {"type": "xpath", "parameters": {"expression": expression}},
            ]}],
        })
    }

    fn site() -> Site {
        let page = |number: u32| LabelledPage {
            url: Url::parse(&format!("https://made.example/{number}")).unwrap(),
            html: format!(
                "<body><h1>No. {number}</h1><b class='price'>{number}.50</b><i>{number}.99</i>"
            ),
            truth: Values::from([("price".to_owned(), vec![format!("{number}.50")])]),
        };
        Site {
            name: "made".into(),
            pages: (10..20).map(page).collect(),
            mapping: None,
        }
    }

    /// A redesign that renames the class the mapping finds the price by.
    fn break_by_renamed_class() -> Break {
        let renaming = (0..50).map(|seed| Redesign::with_changes(seed, &[Change::Classes]));
        let breaks = renaming
            .map(|redesign| Break::find(&site(), &mapping("//b[@class='price']"), &redesign));
        let mut breaks = breaks.map(|found| found.unwrap().unwrap());
        breaks
            .find(|found| !found.fields.is_empty())
            .expect("a seed renames the class")
    }

    fn compare_repair(expression: Option<&str>, accepted: &[&str]) -> RepairOutcome {
        let repaired = Repaired {
            mapping: expression.map(mapping),
            accepted: accepted.iter().map(|field| (*field).to_owned()).collect(),
        };
        break_by_renamed_class()
            .compare_with_truth(&repaired)
            .unwrap()["price"]
    }

    #[test]
    fn a_repair_is_judged_by_what_it_reads() {
        assert_eq!(
            compare_repair(Some("//b"), &["price"]),
            RepairOutcome::Right
        );
        assert_eq!(
            compare_repair(Some("//h1/following-sibling::*[1]"), &["price"]),
            RepairOutcome::Right
        );
        assert_eq!(
            compare_repair(Some("//i"), &["price"]),
            RepairOutcome::Wrong
        );
        assert_eq!(
            compare_repair(Some("//u"), &["price"]),
            RepairOutcome::Wrong,
            "it reads nothing"
        );
        assert_eq!(compare_repair(Some("//b"), &[]), RepairOutcome::Refused);
        assert_eq!(compare_repair(None, &[]), RepairOutcome::Refused);
    }

    #[test]
    fn fields_that_a_redesign_does_not_change_are_not_broken() {
        let same = Redesign::with_changes(0, &[Change::Ids]);
        let found = Break::find(&site(), &mapping("//b"), &same)
            .unwrap()
            .unwrap();
        assert!(found.fields.is_empty());
        let wrong = Break::find(&site(), &mapping("//i"), &same).unwrap();
        assert!(
            wrong.is_none(),
            "a mapping that was never right is not judged"
        );
    }
}
