//! Parts of a page that change without meaning, and so are ignored ([`Unsteady`]): two fetches moments apart differ in
//! these parts, or the parts move with the clock.
//!
//! Each part is identified by its *place* and its text, never by a number, so that a list above it may grow:
//!
//! - a [`Template`]: a block whose fixed words stay, such as a counter of visits;
//! - a *timed* text: a block where only times move, with the clock;
//! - a *free* block between two neighbours that stay, such as an advertisement between paragraphs;
//! - a *shuffled* place, whose blocks move to other rows or ranks;
//! - a *whole* place, where most blocks differ at each fetch. The *forms* that were seen there have no meaning on
//!   other pages of the site either.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blocks::{Block, group_by_place};
use crate::hash;
use crate::masks::{mask_relative_times, mask_times};
use crate::rows;
use crate::template::Template;

/// The most entries of each kind of unsteady part.
const MOST: usize = 200;

/// The most templates of one place, because each block of the place may have to be compared with all templates.
const MOST_OF_PLACE: usize = 32;

/// The most pairs of blocks of a page that are compared token by token.
const MOST_PAIRS: usize = 2_000;

/// The parts of a page or site that change without meaning, by kind; the module's head describes the kinds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unsteady {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    whole: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    templates: Vec<(u32, Template)>,
    /// Timed texts (only times in them move): the place, and the hash of the text without times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    timed: Vec<(u32, u64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    free: Vec<BlockPosition>,
    /// Forms (texts seen at a place whose texts differ at each fetch): the place, and the hash of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    forms: Vec<(u32, u64)>,
    /// Shuffled places: at each fetch, their blocks belong to other blocks, or have another rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shuffled: Vec<u32>,
}

/// The position of a block that may have any text: its place, and the hashes of its neighbours before and after it at
/// this place. A hash is 0 if there is no neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockPosition(u32, u64, u64);

impl BlockPosition {
    /// Whether two positions have the same place, and the same neighbour before or after them.
    pub(crate) fn is_near(self, other: BlockPosition) -> bool {
        let (
            BlockPosition(place, before, behind),
            BlockPosition(place_too, before_too, behind_too),
        ) = (self, other);
        place == place_too && (before == before_too || behind == behind_too)
    }
}

impl Unsteady {
    /// Compares two fetches of the same page, and returns the parts that differ.
    pub(crate) fn from_fetches(first: &[Block], second: &[Block]) -> Unsteady {
        let (one, other) = (group_by_place(first), group_by_place(second));
        let mut places: Vec<u32> = one.keys().chain(other.keys()).copied().collect();
        places.sort_unstable();
        places.dedup();
        let mut unsteady = Unsteady::default();
        let mut pairs_left = MOST_PAIRS;
        let nothing = Vec::new();
        for place in places {
            let of = |blocks: &BTreeMap<u32, Vec<&Block>>| -> Vec<String> {
                let blocks = blocks.get(&place).unwrap_or(&nothing);
                let texts = blocks.iter().map(|block| mask_relative_times(&block.text));
                texts.map(|text| text.into_owned()).collect()
            };
            unsteady.learn_place(place, &of(&one), &of(&other), &mut pairs_left);
        }
        let mut shuffled = rows::find_moved_rows(first, second, &[]).places;
        shuffled.truncate(MOST);
        unsteady.shuffled = shuffled;
        unsteady
    }

    fn learn_place(
        &mut self,
        place: u32,
        one: &[String],
        other: &[String],
        pairs_left: &mut usize,
    ) {
        let (mut gone, mut come) = (find_missing(one, other), find_missing(other, one));
        if gone.is_empty() && come.is_empty() {
            return;
        }
        let same = one.len() - gone.len();
        let paired = self.pair_similar(place, (one, &mut gone), (other, &mut come), pairs_left);
        let left = gone.len().max(come.len());
        if left == 0 {
            return;
        }
        if same + paired < left {
            if self.whole.len() < MOST {
                self.whole.push(place);
            }
            for text in one.iter().chain(other) {
                self.add_form(place, hash(text));
            }
            return;
        }
        for (texts, left) in [(one, gone), (other, come)] {
            for number in left {
                let between = self.block_position(place, texts, number);
                if !self.free.contains(&between) && self.free.len() < MOST {
                    self.free.push(between);
                }
            }
        }
    }

    /// Finds pairs of similar texts among `gone` and `come`, and records a timed text or a template for each pair.
    /// Removes paired texts from both lists. Returns the number of pairs.
    fn pair_similar(
        &mut self,
        place: u32,
        (one, gone): (&[String], &mut Vec<usize>),
        (other, come): (&[String], &mut Vec<usize>),
        pairs_left: &mut usize,
    ) -> usize {
        let before = gone.len();
        let times_of = |texts: &[String], numbers: &[usize]| -> Vec<String> {
            let texts = numbers.iter().map(|number| mask_times(&texts[*number]));
            texts.collect()
        };
        let mut timeless_others = times_of(other, come);
        gone.retain(|number| {
            let text = &one[*number];
            let rest = mask_times(text);
            if rest != *text
                && let Some(at) = timeless_others.iter().position(|other| *other == rest)
            {
                come.remove(at);
                timeless_others.remove(at);
                self.add_timed_hash(place, hash(&rest));
                return false;
            }
            for at in 0..come.len() {
                if *pairs_left == 0 {
                    return true;
                }
                *pairs_left -= 1;
                if let Some(template) = Template::from_forms(text, &other[come[at]]) {
                    come.remove(at);
                    timeless_others.remove(at);
                    self.add_template(place, template);
                    return false;
                }
            }
            true
        });
        before - gone.len()
    }

    pub(crate) fn add_template(&mut self, place: u32, template: Template) {
        let entry = (place, template);
        let of_place = self.templates.iter().filter(|(at, _)| *at == place);
        if self.templates.len() < MOST
            && of_place.count() < MOST_OF_PLACE
            && !self.templates.contains(&entry)
        {
            self.templates.push(entry);
        }
    }

    pub(crate) fn add_timed_hash(&mut self, place: u32, text: u64) {
        if self.timed.len() < MOST && !self.timed.contains(&(place, text)) {
            self.timed.push((place, text));
        }
    }

    pub(crate) fn add_form(&mut self, place: u32, text: u64) {
        if self.forms.len() < MOST && !self.forms.contains(&(place, text)) {
            self.forms.push((place, text));
        }
    }

    pub(crate) fn timed_hashes(&self) -> &[(u32, u64)] {
        &self.timed
    }

    pub(crate) fn forms(&self) -> &[(u32, u64)] {
        &self.forms
    }

    pub(crate) fn templates(&self) -> &[(u32, Template)] {
        &self.templates
    }

    /// Adds the unsteady parts that another pair of fetches has shown.
    pub(crate) fn merge(&mut self, more: &Unsteady) {
        for place in &more.whole {
            if self.whole.len() < MOST && !self.whole.contains(place) {
                self.whole.push(*place);
            }
        }
        for place in &more.shuffled {
            if self.shuffled.len() < MOST && !self.shuffled.contains(place) {
                self.shuffled.push(*place);
            }
        }
        for (place, template) in &more.templates {
            self.add_template(*place, template.clone());
        }
        for (place, text) in &more.timed {
            self.add_timed_hash(*place, *text);
        }
        for (place, text) in &more.forms {
            self.add_form(*place, *text);
        }
        for between in &more.free {
            if self.free.len() < MOST && !self.free.contains(between) {
                self.free.push(*between);
            }
        }
    }

    pub(crate) fn is_whole(&self, place: u32) -> bool {
        self.whole.contains(&place)
    }

    /// Whether a change of the block's row, rank or text has no meaning.
    pub(crate) fn is_unsteady(&self, block: &Block) -> bool {
        let place = block.place;
        let is_form = || {
            self.form_name(place, &mask_relative_times(&block.text))
                .is_some()
        };
        let has_free = || self.free.iter().any(|BlockPosition(at, ..)| *at == place);
        self.shuffled.contains(&place) || self.is_whole(place) || has_free() || is_form()
    }

    /// Whether the text was seen to come and go at this place without meaning, such as a banner.
    pub(crate) fn is_form(&self, place: u32, text: &str) -> bool {
        self.forms.contains(&(place, hash(text)))
    }

    pub(crate) fn free_positions(&self) -> &[BlockPosition] {
        &self.free
    }

    /// A common name for all forms of a block; `None` if the text is no known form of a block at this place.
    pub(crate) fn form_name(&self, place: u32, text: &str) -> Option<String> {
        let templates = self.templates.iter().filter(|(at, _)| *at == place);
        let number = templates
            .clone()
            .position(|(_, template)| template.matches(text));
        if let Some(number) = number {
            return Some(format!("⟨form {number} at {place}⟩"));
        }
        if self.forms.iter().any(|(at, _)| *at == place)
            && self.forms.contains(&(place, hash(text)))
        {
            return Some(format!("⟨form at {place}⟩"));
        }
        if !self.timed.iter().any(|(at, _)| *at == place) {
            return None;
        }
        let text = hash(&mask_times(text));
        let is_timed = self.timed.contains(&(place, text));
        is_timed.then(|| format!("⟨times {text:x} at {place}⟩"))
    }

    /// The position (place and neighbours) of the text with this number among the texts of a place.
    fn block_position(&self, place: u32, texts: &[String], number: usize) -> BlockPosition {
        let hash_of = |text: Option<&String>| {
            text.map_or(0, |text| {
                hash(self.form_name(place, text).as_deref().unwrap_or(text))
            })
        };
        let before = number.checked_sub(1).and_then(|before| texts.get(before));
        BlockPosition(place, hash_of(before), hash_of(texts.get(number + 1)))
    }

    /// The positions of differing blocks on their page. A block at a place without free blocks gets neighbours that
    /// match no others.
    pub(crate) fn block_positions(
        &self,
        differing: &[&Block],
        blocks: &[Block],
    ) -> Vec<BlockPosition> {
        let mut places: BTreeMap<u32, (Vec<&Block>, Vec<String>)> = BTreeMap::new();
        for BlockPosition(place, ..) in &self.free {
            places.entry(*place).or_default();
        }
        for block in blocks {
            if let Some((of_place, texts)) = places.get_mut(&block.place) {
                of_place.push(block);
                texts.push(mask_relative_times(&block.text).into_owned());
            }
        }
        let between = |block: &&Block| {
            let (of_place, texts) = places.get(&block.place)?;
            let number = of_place
                .iter()
                .position(|other| std::ptr::eq(*other, *block))?;
            Some(self.block_position(block.place, texts, number))
        };
        let nowhere = |block: &&Block| BlockPosition(block.place, u64::MAX, u64::MAX);
        let all = differing.iter();
        all.map(|block| between(block).unwrap_or_else(|| nowhere(block)))
            .collect()
    }
}

/// The indices of the texts that `others` does not contain, or contains less often.
fn find_missing(texts: &[String], others: &[String]) -> Vec<usize> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for text in others {
        *left.entry(text).or_default() += 1;
    }
    let is_missing = |(_, text): &(usize, &String)| match left.get_mut(text.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    let missing = texts.iter().enumerate().filter_map({
        let mut is_missing = is_missing;
        move |found| is_missing(&found).then_some(found.0)
    });
    missing.collect()
}
