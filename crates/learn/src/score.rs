//! Computes how likely it is that a candidate reads the field, given the known values of the pages. Some known values
//! may be wrong.
//!
//! A known value is right with probability p (Dalvi et al., VLDB 2011). A candidate's log likelihood grows by the same
//! amount for each page that it reads correctly. p is estimated from the best candidate, and used to estimate it again.
//! If known values do not decide, other evidence does: how often such anchors survive, how much of the extraction chain
//! depends on positions, and whether other candidates agree. Agreement is judged on pages without known values.

use std::collections::BTreeMap;

use crate::candidates::Candidate;
use crate::evaluate::Reading;
use crate::fold::{KnownValue, Spelling, is_cut_off};
use crate::survival::Anchor;

/// The known values of a field on one page.
#[derive(Debug, Clone, Default)]
pub(crate) struct Label {
    /// The number of the page within its group.
    pub(crate) page: usize,
    pub(crate) wanted: Vec<KnownValue>,
    /// For each known value, whether it is not found on the page. A misspelt value is not found.
    pub(crate) is_unseen: Vec<bool>,
    /// Whether the values were stated by a person, and so are certain.
    pub(crate) is_certain: bool,
    pub(crate) is_absent: bool,
    /// Whether the page had no value before the site changed, if a mapping is being repaired.
    pub(crate) was_empty: bool,
    pub(crate) rejected: Vec<KnownValue>,
}

impl Label {
    /// How far a reading agrees with the known values, from 0 to 1. For lists, it is the number of values that are both
    /// read and known, divided by the number of values that are either.
    pub(crate) fn credit(&self, reading: &Reading, multiple: bool) -> f64 {
        if !multiple {
            let first = reading.values.first();
            let right = first.is_some_and(|first| self.wanted.iter().any(|one| one.matches(first)));
            return f64::from(u8::from(right));
        }
        let found = self
            .wanted
            .iter()
            .filter(|one| reading.values.iter().any(|value| one.matches(value)))
            .count();
        let right = reading
            .values
            .iter()
            .filter(|value| self.wanted.iter().any(|one| one.matches(value)))
            .count();
        let all = reading.values.len() + self.wanted.len() - right.min(found);
        if all == 0 {
            0.0
        } else {
            right.min(found) as f64 / all as f64
        }
    }

    /// Like [`Label::credit`], but a reading that differs from the known value by a typing error counts nearly as much
    /// as an equal one. An extraction chain reads such a value by chance just as rarely as an equal one.
    fn credit_with_typos(&self, reading: &Reading, multiple: bool) -> f64 {
        let exact = self.credit(reading, multiple);
        if exact >= 0.99 || !self.is_unseen.contains(&true) {
            return exact;
        }
        if !multiple {
            let first = reading.values.first();
            let is_slip = first.is_some_and(|first| self.misspells(first));
            return if is_slip { MISSPELT } else { exact };
        }
        let wanted = self.wanted.iter().zip(&self.is_unseen);
        let found = wanted.filter(|(one, is_unseen)| {
            let is_it = |value| one.matches(value) || **is_unseen && one.is_misspelt(value);
            reading.values.iter().any(is_it)
        });
        let right = reading.values.iter().filter(|value| {
            self.wanted.iter().any(|one| one.matches(value)) || self.misspells(value)
        });
        let (found, right) = (found.count(), right.count());
        let all = reading.values.len() + self.wanted.len() - right.min(found);
        exact.max(MISSPELT * right.min(found) as f64 / all.max(1) as f64)
    }

    /// Whether the known values differ from a reading only by typing errors.
    pub(crate) fn is_misspelt(&self, reading: &Reading, multiple: bool) -> bool {
        self.credit(reading, multiple) < 0.99
            && self.credit_with_typos(reading, multiple) >= MISSPELT
    }

    /// Whether one of the known values is not on its page, and differs from `value` only by a typing error.
    fn misspells(&self, value: &Spelling) -> bool {
        let wanted = self.wanted.iter().zip(&self.is_unseen);
        let mut unseen = wanted.filter(|(_, is_unseen)| **is_unseen);
        unseen.any(|(one, _)| one.is_misspelt(value))
    }

    /// Whether a reading contradicts the statement of a person.
    fn contradicts(&self, reading: &Reading, multiple: bool) -> bool {
        let rejected = |one: &KnownValue| reading.values.iter().any(|value| one.matches(value));
        (self.is_absent && !reading.values.is_empty())
            || self.rejected.iter().any(rejected)
            || (self.is_certain && !self.wanted.is_empty() && self.credit(reading, multiple) < 1.0)
    }

    fn is_respelt(&self, reading: &Reading) -> bool {
        let is_it = |one: &KnownValue| reading.values.iter().any(|value| one.is_respelt(value));
        self.wanted.iter().any(is_it)
    }

    /// The number of read values that are not known.
    fn surplus(&self, reading: &Reading) -> usize {
        let known = |value| {
            self.wanted
                .iter()
                .any(|one: &KnownValue| one.matches(value))
                || self.misspells(value)
        };
        reading.values.iter().filter(|value| !known(value)).count()
    }
}

/// The credit of a reading that differs from the known value by a typing error.
pub(crate) const MISSPELT: f64 = 0.9;

/// The weight of a default vote, half for and half against a candidate, which is added for each page without known
/// values.
const DEFAULT_VOTE: f64 = 0.3;

/// The burden of an extraction chain that reads truncated texts although no known value is truncated. It is larger than
/// the usual difference between anchors.
const CUT_OFF: f64 = 8.0;

/// The factor that reduces the vote of an extraction chain that counts positions.
const COUNTING: f64 = 0.3;

/// The candidates of a field, with what they read, the known values, and how well they agree.
pub(crate) struct Scores<'a> {
    pub(crate) candidates: &'a [Candidate],
    /// The values that each candidate reads on each page: `[candidate][page]`.
    pub(crate) readings: &'a [Vec<Reading>],
    pub(crate) labels: &'a [Label],
    pub(crate) multiple: bool,
    /// How far each candidate reads the known values of each label, from 0 to 1: `[candidate][label]`.
    pub(crate) credits: Vec<Vec<f64>>,
    surplus: Vec<f64>,
    /// For each candidate, whether it reads most known values in another form than the record's.
    is_respelt: Vec<bool>,
    /// For each candidate, whether it reads truncated copies of values.
    is_cut_off: Vec<bool>,
    is_possible: Vec<bool>,
    agreement: Vec<f64>,
}

impl<'a> Scores<'a> {
    pub(crate) fn new(
        candidates: &'a [Candidate],
        readings: &'a [Vec<Reading>],
        labels: &'a [Label],
        multiple: bool,
    ) -> Scores<'a> {
        let credits = readings
            .iter()
            .map(|pages| label_credits(labels, pages, multiple))
            .collect();
        let surplus = readings
            .iter()
            .map(|pages| mean_surplus(labels, pages))
            .collect();
        let is_respelt = readings
            .iter()
            .map(|pages| {
                // More than half of the values must differ in form, because a few records may be written in another
                // form than the rest.
                let is_respelt = |label: &&Label| label.is_respelt(&pages[label.page]);
                let known = labels.iter().filter(|label| !label.wanted.is_empty());
                labels.iter().filter(is_respelt).count() * 2 > known.count()
            })
            .collect();
        let is_cut_off = readings
            .iter()
            .map(|pages| reads_truncated(labels, pages, multiple))
            .collect();
        let varies = are_varied(labels);
        let is_possible = readings
            .iter()
            .zip(candidates)
            .map(|(pages, candidate)| {
                let contradicts = |label: &Label| label.contradicts(&pages[label.page], multiple);
                let is_of_layout = varies && is_constant(pages, multiple);
                let is_other = fills_empty_pages(pages, labels);
                let is_wrong = is_of_layout || is_other || labels.iter().any(contradicts);
                !(candidate.is_unusable || is_wrong)
            })
            .collect();
        let mut scores = Scores {
            candidates,
            readings,
            labels,
            multiple,
            credits,
            surplus,
            is_respelt,
            is_cut_off,
            is_possible,
            agreement: vec![0.0; candidates.len()],
        };
        scores.agreement = scores.agreements();
        scores
    }

    /// The candidates, the likeliest first. The values of the label with the index `without` count as unknown.
    /// Candidates that read no known value are left out.
    pub(crate) fn ranking(&self, without: Option<usize>) -> Vec<usize> {
        let p = self.precision(0.7, without);
        let p = self.precision(p, without);
        let mut ranked: Vec<(usize, f64)> = (0..self.candidates.len())
            .filter(|&candidate| {
                self.is_possible[candidate] && self.credit_sum(candidate, without) > 0.0
            })
            .filter(|&candidate| self.is_found_without(candidate, without))
            .map(|candidate| (candidate, self.score(candidate, p, without, true)))
            .collect();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked.into_iter().map(|(candidate, _)| candidate).collect()
    }

    /// Whether the candidate would also be found if the page of this label were left out.
    fn is_found_without(&self, candidate: usize, without: Option<usize>) -> bool {
        let Some(without) = without else { return true };
        let page = self.labels[without].page;
        let found = &self.candidates[candidate].found_on;
        found.is_empty() || found.iter().any(|one| *one != page)
    }

    fn credit_sum(&self, candidate: usize, without: Option<usize>) -> f64 {
        let credits = self.credits[candidate].iter().enumerate();
        credits
            .filter(|(label, _)| Some(*label) != without)
            .map(|(_, credit)| credit)
            .sum()
    }

    /// An estimate of how often records are right: the share of known values that the best candidate reads, slightly
    /// reduced.
    fn precision(&self, p: f64, without: Option<usize>) -> f64 {
        let known = self.labels.iter().enumerate();
        let known = known
            .filter(|(at, label)| Some(*at) != without && !label.wanted.is_empty())
            .count();
        let possible = (0..self.candidates.len()).filter(|&one| self.is_possible[one]);
        let best = possible
            .map(|one| (one, self.score(one, p, without, true)))
            .max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)));
        let matches = best.map_or(0.0, |(best, _)| self.credit_sum(best, without));
        ((matches + 0.5) / (known as f64 + 1.0)).clamp(0.5, 0.97)
    }

    fn score(&self, candidate: usize, p: f64, without: Option<usize>, with_agreement: bool) -> f64 {
        /// A wrong candidate is assumed to read one of this many texts on a page by chance.
        const OTHERS: f64 = 8.0;
        let one = &self.candidates[candidate];
        let gain = (p / (1.0 - p) * OTHERS).ln();
        let surplus = self.surplus[candidate];
        let agreement = if with_agreement {
            self.agreement[candidate]
        } else {
            0.0
        };
        self.credit_sum(candidate, without) * gain + one.anchor.survival().ln()
            - one.burden
            - 0.6 * surplus.min(3.0) / 3.0
            - f64::from(u8::from(self.is_respelt[candidate]))
            - CUT_OFF * f64::from(u8::from(self.is_cut_off[candidate]))
            + 3.0 * agreement
    }

    /// The best candidate with each kind of anchor, judged only by known values.
    fn best_by_anchor_kind(&self) -> BTreeMap<Anchor, (usize, f64)> {
        let mut best: BTreeMap<Anchor, (usize, f64)> = BTreeMap::new();
        for candidate in (0..self.candidates.len()).filter(|&one| self.is_possible[one]) {
            if self.credit_sum(candidate, None) <= 0.0 {
                continue;
            }
            let score = self.score(candidate, 0.7, None, false);
            let entry = best
                .entry(self.candidates[candidate].anchor)
                .or_insert((candidate, score));
            if score > entry.1 {
                *entry = (candidate, score);
            }
        }
        best
    }

    /// For each candidate, the share of votes that agree with it. On each page, each kind of anchor has one vote.
    fn agreements(&self) -> Vec<f64> {
        let best = self.best_by_anchor_kind();
        let most = best
            .values()
            .map(|(one, _)| self.credit_sum(*one, None))
            .fold(0.0, f64::max);
        let voters: Vec<(usize, f64)> = best
            .iter()
            .map(|(anchor, (one, _))| (*anchor, *one, self.credit_sum(*one, None) / most))
            .filter(|(_, _, share)| *share > 0.6)
            .map(|(anchor, one, share)| {
                // Extraction chains that count positions fail together, so their votes count less.
                let counts = self.candidates[one].counts_positions();
                let trust = (1.0 - self.candidates[one].burden).max(0.1).powi(2);
                let trust = if counts { COUNTING * trust } else { trust };
                (one, share * share * anchor.survival() * trust)
            })
            .collect();
        let pages = self.readings.first().map_or(0, Vec::len);
        let labelled: Vec<bool> = (0..pages)
            .map(|page| {
                self.labels
                    .iter()
                    .any(|label| label.page == page && !label.wanted.is_empty())
            })
            .collect();
        let unlabelled = labelled
            .iter()
            .filter(|labelled| !**labelled)
            .count()
            .max(1) as f64;
        let votes: Vec<(usize, usize, f64)> = (0..pages)
            .filter(|&page| !labelled[page])
            .flat_map(|page| self.votes_on_page(&voters, page))
            .collect();
        let share = |candidate: usize| {
            let (mut agreed, mut all) = (0.0, 0.0);
            for (page, voter, weight) in &votes {
                agreed += weight * self.reading_similarity(candidate, *voter, *page);
                all += weight;
            }
            // A default vote, half in favour, is added, so that a few doubtful votes decide little.
            (agreed + 0.5 * DEFAULT_VOTE * unlabelled) / (all + DEFAULT_VOTE * unlabelled)
        };
        let mut shares: Vec<f64> = (0..self.candidates.len()).map(share).collect();
        // An extraction chain with a condition differs from others because these read foreign parts of pages. So its
        // share is at least that of the chain without the condition.
        for (one, candidate) in self.candidates.iter().enumerate() {
            let without = candidate
                .without_condition
                .map_or(0.0, |other| shares[other]);
            shares[one] = shares[one].max(without);
        }
        shares
    }

    /// The votes of a page: page, voter and weight. If two voters that count no positions agree on a value, the page has
    /// it, and voters that read nothing there do not vote.
    fn votes_on_page(&self, voters: &[(usize, f64)], page: usize) -> Vec<(usize, usize, f64)> {
        let speaks = |voter: usize| !self.readings[voter][page].values.is_empty();
        let named = voters.iter().map(|(voter, _)| *voter);
        let named = named.filter(|&one| speaks(one) && !self.candidates[one].counts_positions());
        let named: Vec<usize> = named.collect();
        let is_settled = named.iter().enumerate().any(|(at, &one)| {
            let mut others = named[..at].iter();
            others.any(|&other| self.reading_similarity(one, other, page) >= 0.99)
        });
        let voting = voters
            .iter()
            .filter(|(voter, _)| !is_settled || speaks(*voter));
        voting
            .map(|(voter, weight)| (page, *voter, *weight))
            .collect()
    }

    /// How far two candidates read the same on a page: 0 or 1, or a share between for lists.
    pub(crate) fn reading_similarity(&self, one: usize, other: usize, page: usize) -> f64 {
        let (one, other) = (
            &self.readings[one][page].values,
            &self.readings[other][page].values,
        );
        if !self.multiple {
            return f64::from(u8::from(one.first() == other.first()));
        }
        let shared = one.iter().filter(|value| other.contains(value)).count();
        let all = one.len() + other.len() - shared;
        if all == 0 {
            1.0
        } else {
            shared as f64 / all as f64
        }
    }
}

/// How far a chain reads the known values of each label. Typing errors are rare: a chain that reads nearly all values with
/// one reads the values in another form, such as `12g` for `12 g`.
fn label_credits(labels: &[Label], pages: &[Reading], multiple: bool) -> Vec<f64> {
    let credits = |credit: &dyn Fn(&Label) -> f64| labels.iter().map(credit).collect();
    let with_typos: Vec<f64> =
        credits(&|label| label.credit_with_typos(&pages[label.page], multiple));
    let is_right = |credit: &&f64| **credit >= 0.99;
    let right = with_typos.iter().filter(is_right).count();
    let misspelt = with_typos.iter().filter(|credit| **credit >= MISSPELT);
    match misspelt.count() > 4 * right {
        true => credits(&|label| label.credit(&pages[label.page], multiple)),
        false => with_typos,
    }
}

/// Whether an extraction chain reads truncated texts although no known value is truncated. Titles, descriptions and
/// breadcrumbs contain copies of values that are complete only if the value is short.
pub(crate) fn reads_truncated(labels: &[Label], pages: &[Reading], multiple: bool) -> bool {
    let most = if multiple { usize::MAX } else { 1 };
    let mut read = pages.iter().flat_map(|page| page.values.iter().take(most));
    let mut known = labels.iter().flat_map(|label| &label.wanted);
    read.any(|value| is_cut_off(&value.text)) && !known.any(|value| is_cut_off(&value.text))
}

/// The labels (known values of a page) that are not empty. If most of them have their values on the page, the others
/// are probably wrong and are left out. Otherwise, labels with their values on the page come first.
pub(crate) fn trusted_labels(labels: &[Label]) -> Vec<&Label> {
    let known = labels.iter().filter(|label| !label.wanted.is_empty());
    let is_seen = |label: &&Label| !label.is_unseen.contains(&true);
    let (mut seen, unseen): (Vec<&Label>, Vec<&Label>) = known.partition(is_seen);
    if seen.len() <= unseen.len() {
        seen.extend(unseen);
    }
    seen
}

/// Whether the known values of some page differ completely from those of the first page, by more than a typing error.
/// The first page is one that contains its values, if possible, because two misspellings of one value differ by two
/// errors.
fn are_varied(labels: &[Label]) -> bool {
    let mut known = trusted_labels(labels).into_iter();
    let Some(first) = known.next() else {
        return false;
    };
    let is_misspelt = |label: &Label, one: &KnownValue| {
        let unseen = label.is_unseen.contains(&true) || first.is_unseen.contains(&true);
        let one = Spelling::new(&one.text);
        unseen && first.wanted.iter().any(|other| other.is_misspelt(&one))
    };
    known.any(|label| {
        let mut wanted = label.wanted.iter();
        !wanted.any(|one| first.wanted.contains(one) || is_misspelt(label, one))
    })
}

/// Whether an extraction chain reads the same text on all pages, and these are at least three. Then the text is a part
/// of the layout. For a field with one value, only the first value of each page is compared.
fn is_constant(pages: &[Reading], multiple: bool) -> bool {
    let Some(first) = pages.first().filter(|first| !first.values.is_empty()) else {
        return false;
    };
    let is_same = |page: &Reading| match multiple {
        true => page == first,
        false => page.values.first() == first.values.first(),
    };
    pages.len() >= 3 && pages.iter().all(is_same)
}

/// For a repair: whether an extraction chain reads something on most pages that had no value before, and these are at
/// least three. Then it reads something else than the field.
fn fills_empty_pages(readings: &[Reading], labels: &[Label]) -> bool {
    let (filled, empty) = count_filled_and_empty(readings, labels);
    filled + empty >= 3 && filled > empty
}

/// For a repair: on how many pages that had no value before an extraction chain reads something, and on how many it
/// reads nothing.
pub(crate) fn count_filled_and_empty(readings: &[Reading], labels: &[Label]) -> (usize, usize) {
    let empty = labels.iter().filter(|label| label.was_empty);
    let (filled, empty): (Vec<&Label>, Vec<&Label>) =
        empty.partition(|label| !readings[label.page].values.is_empty());
    (filled.len(), empty.len())
}

fn mean_surplus(labels: &[Label], pages: &[Reading]) -> f64 {
    let known: Vec<&Label> = labels
        .iter()
        .filter(|label| !label.wanted.is_empty())
        .collect();
    let surplus: usize = known
        .iter()
        .map(|label| label.surplus(&pages[label.page]))
        .sum();
    surplus as f64 / known.len().max(1) as f64
}
