//! The signatures of blocks: data in `signatures.json`, compiled in and read once.

use std::sync::LazyLock;

use serde::Deserialize;

use super::evidence::Evidence;
use super::inspected::Inspected;
use super::target::TargetCondition;
use super::{Grade, Sign};

/// All signatures, with the version of their list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signatures {
    /// Incremented with each change of the list.
    pub version: u32,
    pub signatures: Vec<Signature>,
}

/// A rule that recognises one kind of block.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The signature's name. It never changes, because logs and stored outcomes contain it.
    pub id: String,
    pub grade: Grade,
    when: Conditions,
    /// The source of the facts about this block, such as the documentation of a vendor.
    pub source: String,
    /// Why this is a block, and why its healthy counterpart is not.
    pub why: String,
    /// The name of a page in the folder of samples that this signature recognises.
    pub sample: String,
    /// The name of a healthy page, in the same folder, that resembles the sample.
    pub healthy: String,
}

/// The conditions on a response. All given conditions must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Conditions {
    /// The status is one of these.
    statuses: Vec<u16>,
    header: Option<HeaderCondition>,
    /// The condition on the address that a `Location` header or a refresh within the page leads to.
    target: Option<TargetCondition>,
    /// The title, in lower case, is one of these. `*` stands for anything.
    titles: Vec<String>,
    /// The page's source contains one of these strings. Every page that is not large is searched for them, so keep them
    /// few.
    markers: Vec<String>,
    /// The page shows fewer characters than this.
    shows_below: Option<usize>,
    /// The page's source contains one of these strings.
    any_text: Vec<String>,
    /// The page's source contains all of these strings.
    all_texts: Vec<String>,
    /// The visible content of the page contains one of these strings, in lower case.
    words: Vec<String>,
    /// Properties and actions that the page must have.
    features: Vec<Feature>,
    /// Properties and actions that the page must not have.
    without: Vec<Feature>,
}

/// A header with one of some values, whatever their case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderCondition {
    name: String,
    values: Vec<String>,
}

/// A property or an action of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Feature {
    ReloadsItself,
    RefreshesItself,
    Captcha,
    Fields,
    ExternalScript,
}

static BUILT_IN: LazyLock<Signatures> = LazyLock::new(|| {
    serde_json::from_str(include_str!("signatures.json"))
        .expect("the signatures that are compiled in are valid, which a test checks")
});

impl Signatures {
    /// The signatures that are compiled in.
    pub fn built_in() -> &'static Signatures {
        &BUILT_IN
    }

    /// Judges a response by all signatures. Returns the first sign of the strongest grade.
    pub fn find_block(&'static self, inspected: &Inspected<'_>) -> Option<Sign> {
        let of_grade = |grade| {
            let mut candidates = self.signatures.iter().filter(move |one| one.grade == grade);
            candidates.find_map(|signature| signature.match_response(inspected))
        };
        of_grade(Grade::Certain).or_else(|| of_grade(Grade::Structural))
    }

    /// The largest number of characters in any signature's condition.
    pub(super) fn most_characters(&self) -> usize {
        let limits = self
            .signatures
            .iter()
            .filter_map(|one| one.when.shows_below);
        limits.max().unwrap_or_default()
    }
}

impl Signature {
    fn match_response(&'static self, inspected: &Inspected<'_>) -> Option<Sign> {
        let mut evidence = Evidence::default();
        self.when.all_hold(inspected, &mut evidence).then(|| Sign {
            signature: &self.id,
            grade: self.grade,
            evidence: evidence.into_text(),
        })
    }
}

impl Conditions {
    /// Whether all conditions hold. The cheap ones come first, so a healthy page's text is not searched.
    fn all_hold(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        self.status_holds(inspected, evidence)
            && self.header_holds(inspected, evidence)
            && self.target_holds(inspected, evidence)
            && self.title_holds(inspected, evidence)
            && self.markers_hold(inspected, evidence)
            && self.length_holds(inspected, evidence)
            && self.texts_hold(inspected, evidence)
            && self.features_hold(inspected, evidence)
    }

    fn status_holds(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        let status = inspected.response.status;
        if self.statuses.is_empty() {
            return true;
        }
        let is_met = self.statuses.contains(&status);
        if is_met {
            evidence.add(format!("status {status}"));
        }
        is_met
    }

    fn header_holds(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        let Some(wanted) = &self.header else {
            return true;
        };
        let values = inspected.response.headers.get_all(wanted.name.as_str());
        let mut values = values.iter().filter_map(|value| value.to_str().ok());
        let matching = values.find_map(|value| {
            let mut expected = wanted.values.iter();
            expected.find(|expected| expected.eq_ignore_ascii_case(value.trim()))
        });
        if let Some(value) = matching {
            evidence.add(format!("{}: {value}", wanted.name));
        }
        matching.is_some()
    }

    fn target_holds(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        let Some(wanted) = &self.target else {
            return true;
        };
        let target = inspected
            .targets()
            .iter()
            .find(|target| wanted.matches(target));
        if let Some(target) = target {
            evidence.add_target(target);
        }
        target.is_some()
    }

    fn title_holds(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        if self.titles.is_empty() {
            return true;
        }
        let title = inspected.title();
        let matching = self
            .titles
            .iter()
            .find(|wanted| matches_title(title, wanted));
        if let Some(wanted) = matching {
            evidence.add(format!("title \"{wanted}\""));
        }
        matching.is_some()
    }

    fn markers_hold(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        any_of(&self.markers, evidence, |marker| {
            inspected.has_marker(marker)
        })
    }

    fn length_holds(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        let Some(limit) = self.shows_below else {
            return true;
        };
        let is_met = inspected.has_less_text_than(limit);
        if is_met {
            evidence.add(format!("fewer than {limit} visible characters"));
        }
        is_met
    }

    fn texts_hold(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        self.all_texts.iter().all(|text| inspected.contains(text))
            && any_of(&self.any_text, evidence, |text| inspected.contains(text))
            && any_of(&self.words, evidence, |word| {
                inspected.full_scan().text.contains(word)
            })
    }

    fn features_hold(&self, inspected: &Inspected<'_>, evidence: &mut Evidence) -> bool {
        for feature in &self.features {
            evidence.add(feature.description());
        }
        self.features
            .iter()
            .all(|feature| feature.is_present(inspected))
            && !self
                .without
                .iter()
                .any(|feature| feature.is_present(inspected))
    }
}

fn any_of(wanted: &[String], evidence: &mut Evidence, is_met: impl Fn(&str) -> bool) -> bool {
    if wanted.is_empty() {
        return true;
    }
    let matching = wanted.iter().find(|wanted| is_met(wanted));
    if let Some(text) = matching {
        evidence.add(format!("\"{text}\""));
    }
    matching.is_some()
}

/// Whether a title matches `wanted`, where one `*` may stand for anything.
fn matches_title(title: &str, wanted: &str) -> bool {
    match wanted.split_once('*') {
        None => title == wanted,
        Some((before, after)) => {
            title.len() >= before.len() + after.len()
                && title.starts_with(before)
                && title.ends_with(after)
        }
    }
}

impl Feature {
    fn is_present(self, inspected: &Inspected<'_>) -> bool {
        let features = inspected.full_scan().features;
        match self {
            Feature::ReloadsItself => features.reloads_itself,
            Feature::RefreshesItself => inspected.refreshes_itself(),
            Feature::Captcha => features.has_captcha,
            Feature::Fields => features.has_fields,
            Feature::ExternalScript => features.has_external_script,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Feature::ReloadsItself => "a script that loads the page again",
            Feature::RefreshesItself => "a refresh of the page itself",
            Feature::Captcha => "a captcha",
            Feature::Fields => "fields to fill in",
            Feature::ExternalScript => "a script from outside",
        }
    }
}

#[cfg(test)]
mod tests;
