//! Measures which kinds of anchors survive a redesign. Rules that are right on the pages before the redesign are
//! applied to the pages after it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use webfill_bench::redesign::{Redesign, visible_text};
use webfill_bench::sites::{Failure, Site, Values, build_engine, extract};
use webfill_urls::Url;

use crate::anchors::{Anchor, Kind, common_texts, find_anchors};

/// The number of pages that rules are made from. All pages are used to judge the rules.
const TEACHERS: usize = 4;

/// A rule is only used if it is right on at least this share of the old pages.
const RIGHT_BEFORE: f64 = 0.9;

/// The most rules that are tried for a field.
const MOST_RULES: usize = 1_000;

/// The best rule for a field among those with one kind of anchor.
#[derive(Debug, Clone)]
pub struct Rule {
    pub field: String,
    pub kind: Kind,
    pub chain: Value,
}

/// The results of rules on new pages: how often they read the right value, none, or a wrong one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    pub right: usize,
    pub empty: usize,
    pub wrong: usize,
}

impl Count {
    pub fn all(&self) -> usize {
        self.right + self.empty + self.wrong
    }

    pub fn share(&self, of: usize) -> f64 {
        of as f64 / self.all().max(1) as f64
    }

    fn note(&mut self, read: Option<&String>, truth: &[String]) {
        match read {
            None => self.empty += 1,
            Some(read) if truth.contains(read) => self.right += 1,
            Some(_) => self.wrong += 1,
        }
    }
}

/// For each field and kind of anchor, the rule that is right on the most pages of the site. It must be right on nearly
/// all of them.
pub fn rules_of(site: &Site) -> Result<Vec<Rule>, Failure> {
    let common = common_texts(site.pages.iter().map(|page| page.html.as_str()));
    let fields: BTreeSet<&String> = site
        .pages
        .iter()
        .flat_map(|page| page.truth.keys())
        .collect();
    let mut rules = Vec::new();
    for field in fields {
        let known = |values: &Values| values.get(field).cloned().unwrap_or_default();
        let taught = site
            .pages
            .iter()
            .filter(|page| !known(&page.truth).is_empty());
        let mut tried: BTreeSet<Anchor> = BTreeSet::new();
        for page in taught.take(TEACHERS) {
            tried.extend(find_anchors(&page.html, &known(&page.truth), &common));
        }
        let tried: Vec<Anchor> = tried.into_iter().take(MOST_RULES).collect();
        let scores = score_anchors(site, field, &tried)?;
        let mut best: BTreeMap<Kind, (f64, &Anchor)> = BTreeMap::new();
        for (anchor, score) in tried.iter().zip(scores) {
            let before = best
                .get(&anchor.kind)
                .map_or(RIGHT_BEFORE, |(score, _)| *score);
            // Of several equally good rules, the first is taken, which is usually the shortest.
            if score > before || score >= RIGHT_BEFORE && !best.contains_key(&anchor.kind) {
                best.insert(anchor.kind, (score, anchor));
            }
        }
        rules.extend(best.into_iter().map(|(kind, (_, anchor))| Rule {
            field: field.clone(),
            kind,
            chain: anchor.chain(),
        }));
    }
    Ok(rules)
}

/// For each rule, the share of the field's pages where the rule reads the right value.
fn score_anchors(site: &Site, field: &str, tried: &[Anchor]) -> Result<Vec<f64>, Failure> {
    let chains: Vec<Value> = tried.iter().map(Anchor::chain).collect();
    let mut counts = vec![Count::default(); tried.len()];
    for page in &site.pages {
        let truth = page.truth.get(field).filter(|values| !values.is_empty());
        let Some(truth) = truth else { continue };
        let read = read_values(&chains, &page.url, &page.html)?;
        for (count, read) in counts.iter_mut().zip(&read) {
            count.note(read.as_ref(), truth);
        }
    }
    Ok(counts
        .iter()
        .map(|count| count.share(count.right))
        .collect())
}

/// The first value that each chain reads on a page.
pub fn read_values(
    chains: &[Value],
    url: &Url,
    html: &str,
) -> Result<Vec<Option<String>>, Failure> {
    let fields = chains.iter().enumerate();
    let fields: Vec<Value> = fields
        .map(|(number, chain)| json!({"name": format!("rule_{number}"), "processors": chain}))
        .collect();
    let mapping = json!({
        "name": "rules",
        "url_patterns": [{"type": "regex", "pattern": "^https?://"}],
        "fields": fields,
    });
    let mut values = extract(&build_engine(&mapping)?, url, html);
    let first = |number| {
        values
            .remove(&format!("rule_{number}"))
            .and_then(|values| values.into_iter().next())
    };
    Ok((0..chains.len()).map(first).collect())
}

/// Applies rules to the redesigned pages of a site, and counts the results.
pub fn count_survivals(
    site: &Site,
    rules: &[Rule],
    redesign: &Redesign,
    counts: &mut BTreeMap<Kind, Count>,
) -> Result<(), Failure> {
    let chains: Vec<Value> = rules.iter().map(|rule| rule.chain.clone()).collect();
    for page in &site.pages {
        let html = redesign.apply(&page.html);
        let seen = visible_text(&html);
        let read = read_values(&chains, &page.url, &html)?;
        for (rule, read) in rules.iter().zip(&read) {
            let Some(truth) = page.truth.get(&rule.field) else {
                continue;
            };
            let truth = new_truth(truth, redesign, &seen);
            if !truth.is_empty() {
                counts
                    .entry(rule.kind)
                    .or_default()
                    .note(read.as_ref(), &truth);
            }
        }
    }
    Ok(())
}

/// The values as the redesigned page should show them; empty if any of them is missing on the new page.
fn new_truth(old: &[String], redesign: &Redesign, seen: &str) -> Vec<String> {
    let mut truth = Vec::new();
    for value in old {
        let new = redesign.rewrite_value(value);
        let forms = [value.clone(), new];
        let mut on_page = forms
            .into_iter()
            .filter(|form| seen.contains(form.as_str()))
            .peekable();
        if on_page.peek().is_none() {
            return Vec::new();
        }
        truth.extend(on_page);
    }
    truth
}
