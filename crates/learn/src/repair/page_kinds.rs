//! Repairs a field whose value stands in different places on two kinds of pages: a manual writes a function in one way
//! and a program in another. No single chain reads both, so each kind gets a chain of its own, learned from its pages
//! alone. The mapping tries the second one where the first reads nothing.

use super::{ENOUGH, FieldRepair, refusal_reason};
use crate::evaluate::Reading;
use crate::field::{LearnedField, learn_field_again};
use crate::former::FormerSteps;
use crate::page_group::Group;
use crate::report;
use crate::score::Label;
use crate::types::{FieldReport, Limits};

/// Repairs the field with one chain for each kind of pages. Pages where the best chain of `found` does not read the
/// earlier value may be of a second kind. `None` if there are no two kinds, or if one of them cannot be repaired with
/// certainty.
pub(super) fn repair_by_page_kind(
    field: &str,
    found: &LearnedField,
    group: &Group<'_>,
    pointed: &[(usize, usize)],
    former: &FormerSteps,
    limits: &Limits,
) -> Option<FieldRepair> {
    let (first, second) = labels_by_kind(found)?;
    let learn = |own: &[Label], others: &[Label]| {
        let labels = own.iter().chain(others).cloned().collect();
        let found = learn_field_again(group, labels, pointed, found.multiple, former, limits);
        let report = report::field_report(field, &found, group);
        let is_certain = refusal_reason(&found, &report, former).is_none();
        let is_kept_apart = reads_nothing_else(&found, others);
        (is_certain && is_kept_apart).then_some(report)
    };
    let first_report = learn(&first, &empty_labels(&second))?;
    let second_report = learn(&second, &empty_labels(&first))?;
    let report = join_reports(first_report, second_report);
    Some(FieldRepair {
        field: field.to_owned(),
        broken: true,
        accepted: true,
        why: report.why.clone(),
        learned: Some(report),
    })
}

/// The labels of the pages where the best chain reads the earlier value, and those of the other pages. Pages that had no
/// value belong to both.
fn labels_by_kind(found: &LearnedField) -> Option<(Vec<Label>, Vec<Label>)> {
    let readings = &found.readings[*found.ranking.first()?];
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for label in &found.labels {
        if label.wanted.is_empty() {
            first.push(label.clone());
            second.push(label.clone());
        } else if label.credit(&readings[label.page], found.multiple) > 0.0 {
            first.push(label.clone());
        } else {
            second.push(label.clone());
        }
    }
    let is_enough = |labels: &[Label]| {
        let known = labels.iter().filter(|label| !label.wanted.is_empty());
        known.count() >= ENOUGH
    };
    (is_enough(&first) && is_enough(&second)).then_some((first, second))
}

/// For each page of the other kind, a label that says that the chain of this kind has no value there.
fn empty_labels(others: &[Label]) -> Vec<Label> {
    let known = others.iter().filter(|label| !label.wanted.is_empty());
    let empty = |label: &Label| Label {
        page: label.page,
        was_empty: true,
        ..Label::default()
    };
    known.map(empty).collect()
}

/// Whether the best chain reads nothing on these pages, so that it does not get in the way of the other kind's chain.
fn reads_nothing_else(found: &LearnedField, others: &[Label]) -> bool {
    let Some(&best) = found.ranking.first() else {
        return false;
    };
    let reading = |label: &Label| -> &Reading { &found.readings[best][label.page] };
    others.iter().all(|label| reading(label).values.is_empty())
}

/// One report on both chains. The second chain is an alternative to the first.
fn join_reports(first: FieldReport, second: FieldReport) -> FieldReport {
    let known = |report: &FieldReport| (report.agree.len() + report.disagree.len()) as f64;
    let (of_first, of_second) = (known(&first), known(&second));
    let confidence = (first.confidence * of_first + second.confidence * of_second)
        / (of_first + of_second).max(1.0);
    let mut joined = first;
    // Further chains of the first kind could read something else on pages of the second one.
    joined.alternatives = second.processors.into_iter().collect();
    joined.confidence = confidence;
    joined.agree.extend(second.agree);
    joined.disagree.extend(second.disagree);
    joined.doubted.extend(second.doubted);
    joined.without_page.extend(second.without_page);
    joined.why = format!(
        "two kinds of pages have the value in different places: {}; and {}",
        joined.why, second.why
    );
    joined
}
