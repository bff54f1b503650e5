//! Ranges: neither number of `120 - 140 g` is the value of a column of single numbers.
//!
//! A pattern that reads a number among other words reads one of them. If pages have ranges, such an extraction chain
//! gets a condition: the whole text must not be a range.

use std::sync::LazyLock;

use serde_json::json;

use crate::candidates::Candidate;
use crate::evaluate::Reading;
use crate::number_guard::is_one_number;
use crate::page_group::Group;
use crate::score::Label;

/// The most extraction chains that get the condition.
const MOST_CHAINS: usize = 200;

/// The share of known values that must be numbers.
const NUMBERS: f64 = 0.9;

/// How much lower the burden of an extraction chain with the condition is. The difference decides between two chains
/// that read the same.
const WORTH: f64 = 0.01;

/// Two numbers with a dash or such a word between them, perhaps with a unit or sign each.
static NOT_A_RANGE: LazyLock<String> = LazyLock::new(|| {
    let between = r"(?:[-\x{2013}\x{2014}]|to|till?|bis|\x{e0})";
    format!(r"^(?![\s\S]*\d\s*[^\d\s]{{0,8}}\s*{between}\s*[^\d\s]{{0,4}}\s*\d)")
});

/// An extraction chain that reads numbers of ranges, and the same chain with the condition.
pub(crate) struct ChainOutsideRanges {
    pub(crate) number: usize,
    pub(crate) safer: Candidate,
    /// What the chain with the condition reads on each page.
    pub(crate) readings: Vec<Reading>,
}

/// The likeliest extraction chains that read a number of a range on some page. Chains whose known values show that this
/// number is the value are left out.
pub(crate) fn chains_outside_ranges(
    group: &Group<'_>,
    candidates: &[Candidate],
    readings: &[Vec<Reading>],
    ranking: &[usize],
    labels: &[Label],
) -> Vec<ChainOutsideRanges> {
    let known: Vec<&str> = labels
        .iter()
        .flat_map(|label| &label.wanted)
        .map(|wanted| wanted.text.as_str())
        .collect();
    let numbers = known.iter().filter(|text| is_one_number(text)).count();
    if known.is_empty() || (numbers as f64) < NUMBERS * known.len() as f64 {
        return Vec::new();
    }
    let examined = ranking.iter().take(MOST_CHAINS);
    let conditional: Vec<(usize, Candidate)> = examined
        .filter_map(|&number| Some((number, with_condition(number, &candidates[number])?)))
        .collect();
    let (numbers, safer): (Vec<usize>, Vec<Candidate>) = conditional.into_iter().unzip();
    let read = group.read_all(&safer);
    let all = numbers.into_iter().zip(safer).zip(read);
    let all = all.map(|((number, safer), readings)| ChainOutsideRanges {
        number,
        safer,
        readings,
    });
    all.filter(|one| {
        let before = &readings[one.number];
        let is_right = |label: &&Label| label.credit(&before[label.page], false) >= 0.99;
        let mut right = labels.iter().filter(is_right);
        one.readings != *before
            && right.all(|label| label.credit(&one.readings[label.page], false) >= 0.99)
    })
    .collect()
}

/// The chain with the condition, before its first pattern; `None` if it has no pattern.
fn with_condition(number: usize, candidate: &Candidate) -> Option<Candidate> {
    let mut processors = candidate.processors.iter();
    let at = processors.position(|processor| processor["type"] == "regex")?;
    let mut safer = candidate.clone();
    safer.processors.insert(
        at,
        json!({"type": "validate", "parameters": {"pattern": *NOT_A_RANGE}}),
    );
    safer.burden -= WORTH;
    safer.without_condition = Some(number);
    Some(safer)
}
