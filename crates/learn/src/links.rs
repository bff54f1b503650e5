//! Learns links to follow. A record's values may be on another page that the record's page links to.

use serde_json::{Value, json};
use webfill_urls::Url;

use crate::field::{LearnedField, learn_field};
use crate::fold::KnownValue;
use crate::page_group::Group;
use crate::places::{PlaceKind, Places};
use crate::score::Label;
use crate::types::{FieldReport, Limits, Page};

/// A link is learned only if at least this many pages have it.
const ENOUGH: usize = 2;

/// On this share of the pages, the link must be found by the extraction chain that is learned from the other pages.
const SURE: f64 = 0.9;

/// A group of pages, and what was learned about its fields.
pub(crate) struct LearnedGroup {
    /// The indexes of the group's pages.
    pub(crate) group: Vec<usize>,
    pub(crate) reports: Vec<FieldReport>,
}

/// Pairs of pages of the same record. The first should link to the second, and is in the group `from`. The second is in
/// another group, which yields a field that the first group lacks.
pub(crate) fn link_pairs(
    pages: &[Page],
    learnt: &[LearnedGroup],
    from: usize,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for &page in &learnt[from].group {
        let Some(record) = &pages[page].record else {
            continue;
        };
        for (_, other) in learnt.iter().enumerate().filter(|(at, _)| *at != from) {
            let of_record = |target: &&usize| pages[**target].record.as_ref() == Some(record);
            let targets = other.group.iter().filter(of_record);
            let better = targets.filter(|&&target| {
                let reads = |report: &&FieldReport| agrees_on_page(report, &pages[target]);
                let mut read = other.reports.iter().filter(reads);
                read.any(|there| {
                    let here = |report: &FieldReport| {
                        report.field == there.field && agrees_on_page(report, &pages[page])
                    };
                    !learnt[from].reports.iter().any(here)
                })
            });
            pairs.extend(better.map(|&target| (page, target)));
        }
    }
    pairs
}

fn agrees_on_page(report: &FieldReport, page: &Page) -> bool {
    report.processors.is_some() && report.agree.iter().any(|url| url == page.url.as_str())
}

/// Learns the `url_parsers` that select the links of these pairs. Empty if no extraction chain is reliable.
pub(crate) fn learn_parsers(
    group: &Group<'_>,
    chosen: &[usize],
    pages: &[Page],
    pairs: &[(usize, usize)],
    limits: &Limits,
) -> Vec<Value> {
    let mut labels: Vec<Label> = Vec::new();
    for (number, page) in chosen.iter().enumerate() {
        let targets = pairs.iter().filter(|(from, _)| from == page);
        let targets: Vec<&Url> = targets.map(|&(_, target)| &pages[target].url).collect();
        let wanted = hrefs(&group.pages[number], &targets);
        if !wanted.is_empty() {
            labels.push(Label {
                page: number,
                wanted,
                ..Label::default()
            });
        }
    }
    if labels.len() < ENOUGH {
        return Vec::new();
    }
    let found = learn_field(group, labels, &[], Some(false), limits);
    let chain = reliable_chain(&found).map(|chain| json!({"processors": chain}));
    chain.into_iter().collect()
}

/// The `href` attributes on a page that lead to one of `targets`, as the page writes them.
fn hrefs(places: &Places<'_>, targets: &[&Url]) -> Vec<KnownValue> {
    let mut found: Vec<KnownValue> = Vec::new();
    if targets.is_empty() {
        return found;
    }
    let base = places.document.base_href();
    let base = base.and_then(|href| places.page.url.join(href).ok());
    let base = base.as_ref().unwrap_or(&places.page.url);
    for place in &places.all {
        let PlaceKind::Attribute(_, "href") = place.at else {
            continue;
        };
        let Ok(mut url) = base.join(&place.text) else {
            continue;
        };
        url.set_fragment(None);
        if targets.contains(&&url) && !found.iter().any(|one| one.text == place.text) {
            found.extend(KnownValue::new(&place.text));
        }
    }
    found
}

/// The likeliest extraction chain that reads only the links to follow; `None` if it is not reliable.
fn reliable_chain(found: &LearnedField) -> Option<Vec<Value>> {
    let mean = found.left_out.iter().sum::<f64>() / found.left_out.len().max(1) as f64;
    let is_right = |one: usize| {
        found.labels.iter().all(|label| {
            let reading = &found.readings[one][label.page];
            label.credit(reading, true) >= 0.99
        })
    };
    let best = found.ranking.iter().copied().find(|&one| is_right(one))?;
    (mean >= SURE).then(|| found.candidates[best].processors.clone())
}
