//! Chooses the pages whose texts are kept: a few for each mapping, so that repairs can use pages from before and after
//! a change.
//!
//! The *kind* of a page is the set of fields that it and its rows have. Of each kind, the first pages are kept, and
//! then one in [`ONE_IN`]. After a change of the layout, pages lack fields and so are of a new kind: they are kept
//! immediately, and do not replace the earlier ones. No mapping keeps more than a tenth of its pages for long.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use webfill_store::SampleText;
use webfill_wire::Outcome;

use crate::task_result::TaskResult;

/// How many of the first pages of each kind are kept.
const KEPT: u64 = 20;

/// After the first pages of a kind, one in this many is kept.
const ONE_IN: u64 = 50;

/// How many samples of a mapping the store keeps. Each kind of pages has a place among them, by a hash, so two kinds
/// rarely share a place.
const PLACES: u64 = 256;

/// How many pages of a mapping may be kept, in addition to a tenth of all its pages.
const ALLOWED: u64 = 60;

/// The most kinds, and the most mappings, that are remembered.
const MOST_REMEMBERED: usize = 10_000;

/// Texts beyond these sizes are not kept. The first limit is for the plain text, the second for the compressed one.
const MOST_TEXT_BYTES: usize = 1 << 20;
const MOST_KEPT_BYTES: usize = 128 << 10;

/// Chooses the pages whose texts are kept for repairs of mappings.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    /// The number of pages seen, by mapping and kind.
    kinds: HashMap<(String, u64), u64>,
    /// The number of pages seen and the number of pages kept, by mapping.
    mappings: HashMap<String, (u64, u64)>,
}

impl Sampler {
    /// Returns the text of a page that was just read, if it is to be kept.
    pub(crate) fn sample(&mut self, result: &TaskResult, text: &str) -> Option<SampleText> {
        let mapping = result.mapping.as_ref()?;
        if result.outcome != Outcome::Ok || text.len() > MOST_TEXT_BYTES {
            return None;
        }
        let names: Vec<String> = result
            .fields
            .keys()
            .cloned()
            .chain(fields_of_rows(result))
            .collect();
        let place = self.choose_place(mapping, names.iter())?;
        let text = zstd::bulk::compress(text.as_bytes(), 3).ok()?;
        (text.len() <= MOST_KEPT_BYTES).then_some(SampleText { place, text })
    }

    fn choose_place<'f>(
        &mut self,
        mapping: &str,
        fields: impl Iterator<Item = &'f String>,
    ) -> Option<String> {
        if self.kinds.len() >= MOST_REMEMBERED || self.mappings.len() >= MOST_REMEMBERED {
            *self = Sampler::default();
        }
        let mut hasher = DefaultHasher::new();
        let mut names: Vec<&String> = fields.collect();
        names.sort_unstable();
        names.hash(&mut hasher);
        let kind = hasher.finish() % PLACES;
        let of_kind = self.kinds.entry((mapping.to_owned(), kind)).or_default();
        let (pages, kept) = self.mappings.entry(mapping.to_owned()).or_default();
        *pages += 1;
        *of_kind += 1;
        let number = match *of_kind - 1 {
            first if first < KEPT => first,
            later if later.is_multiple_of(ONE_IN) => later / ONE_IN % KEPT,
            _ => return None,
        };
        if *kept >= ALLOWED + *pages / 10 {
            return None;
        }
        *kept += 1;
        Some(format!("page/{kind:03}/{number:02}"))
    }
}

/// The fields that at least one of the page's rows has, in the form `dataset[].field`, which no field of a page has.
fn fields_of_rows(result: &TaskResult) -> impl Iterator<Item = String> {
    let filled = result.row_counts.iter().flat_map(|counts| {
        let fields = counts.filled.iter().filter(|(_, rows)| **rows > 0);
        fields.map(|(field, _)| format!("{}[].{field}", counts.dataset))
    });
    let with_rows = result.row_counts.iter().filter(|counts| counts.rows > 0);
    with_rows
        .map(|counts| format!("{}[]", counts.dataset))
        .chain(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen_places(sampler: &mut Sampler, pages: usize, fields: &[String]) -> Vec<String> {
        let place = |_| sampler.choose_place("shop", fields.iter());
        (0..pages).filter_map(place).collect()
    }

    #[test]
    fn the_first_pages_of_a_kind_are_kept_and_few_after_them() {
        let mut sampler = Sampler::default();
        let (both, one) = ([String::from("a"), "b".into()], [String::from("a")]);
        let old = chosen_places(&mut sampler, 1_020, &both);
        assert_eq!(old.len(), 20 + 20);
        let new = chosen_places(&mut sampler, 30, &one);
        assert_eq!(new.len(), 20);
        assert!(new.iter().all(|place| !old.contains(place)));
    }

    #[test]
    fn many_kinds_keep_a_tenth_of_the_pages() {
        let mut sampler = Sampler::default();
        let kept: usize = (0..10_000)
            .map(|number| chosen_places(&mut sampler, 1, &[format!("field {number}")]).len())
            .sum();
        assert!(kept <= 60 + 1_000, "{kept}");
    }
}
