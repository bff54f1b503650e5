//! Judges how likely the values on pages are right. It passes all readings and all known values to `webfill_truth`,
//! with the verdict of each known value on the chain that read its page. `deciding.rs` then decides the cells.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use webfill_learn::common_form;
use webfill_mapping::MappingIndex;
use webfill_truth::{Chosen, Claim, Doubt, Evidence, FieldShape, Judgement, Known, Presence};

use super::deciding::{Cell, Decider, State};
use super::mappings::Mappings;
use super::pages::{Pages, rows_of_targets};
use super::placeholders;
use super::reading::{FieldReading, Reading, Readings, agrees, contains_value, is_misspelt};
use super::shortened_lists;
use super::table::{Refused, Table};

/// The decided cells, and the judgement that decided them.
pub struct Verdict {
    pub cells: Vec<Cell>,
    pub judgement: Judgement,
    /// The numbers that identify sites in the judgement.
    sites: BTreeMap<String, u32>,
}

/// A made-up value that no page has. It stands for the unknown value that a chain misreads on a page, if the chain was
/// learned without this page.
const MISREAD: &str = "\0";

/// Numbers values. Equal values, also in different forms, get the same number.
#[derive(Default)]
pub(super) struct ValueNumbers {
    /// The numbers by the normalised form of the values.
    numbers: HashMap<String, u32>,
    /// The same numbers by text, which saves normalising a text again.
    by_text: HashMap<String, u32>,
    texts: Vec<String>,
}

impl ValueNumbers {
    fn intern_form(&mut self, form: String, text: &str) -> u32 {
        let next = self.texts.len() as u32;
        let number = *self.numbers.entry(form).or_insert(next);
        if number == next {
            self.texts.push(text.to_owned());
        }
        number
    }

    fn intern(&mut self, text: &str) -> u32 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let number = self.intern_form(common_form(text), text);
        self.by_text.insert(text.to_owned(), number);
        number
    }

    /// The number of a value that was read. If it means the same as a known value, it gets that value's number.
    pub(super) fn intern_read(&mut self, read: &str, known: &[String]) -> u32 {
        let same = known
            .iter()
            .find(|known| webfill_learn::is_same_value(known, read));
        match same {
            Some(known) => self.intern(known),
            None => self.intern(read),
        }
    }
}

/// Whether the row's pages confirm its known values of one field.
#[derive(Default)]
struct KnownVerdict {
    /// Whether any chain that read these pages was chosen by these values.
    is_learned: bool,
    /// For each known value, whether a page has it, and the share of other rows' values that the page has by chance.
    presences: Vec<(Presence, f32)>,
}

impl KnownVerdict {
    fn compare(&mut self, known: &[String], read: &FieldReading) {
        self.presences.resize(known.len(), (Presence::Unknown, 0.0));
        let is_misspelt = is_misspelt(known, &read.values);
        for (value, (presence, chance)) in known.iter().zip(&mut self.presences) {
            let unread = read.unread.iter().find(|unread| unread.value == *value);
            // A chain that reads too much or too little of the value does not show that the table is wrong.
            let is_partly_same = |read: &String| webfill_learn::is_partly_same(value, read);
            let stands = match unread {
                Some(_) if read.values.iter().any(is_partly_same) => Some(true),
                Some(unread) => unread.stands,
                None => contains_value(value, &read.values).then_some(true),
            };
            *presence = match (stands, *presence) {
                (Some(true), _) | (_, Presence::OnPage) => Presence::OnPage,
                (None, presence) => presence,
                (_, Presence::Misspelt) => Presence::Misspelt,
                _ if is_misspelt => Presence::Misspelt,
                _ => Presence::Absent,
            };
            *chance = chance.max(unread.map_or(0.0, |unread| unread.chance));
        }
    }

    /// Whether a page has the known value, and the probability that it is there by chance. The first is unknown if the
    /// value was compared with no page.
    fn presence_of(&self, place: usize) -> (Presence, f32) {
        let presence = self.presences.get(place).copied();
        presence.unwrap_or((Presence::Unknown, 0.0))
    }
}

/// The readings of all pages that belong to a row.
fn readings_of<'r>(
    table: &Table,
    pages: &Pages<'_>,
    readings: &'r Readings,
    row: usize,
    targets: &BTreeMap<&str, BTreeSet<u32>>,
) -> Vec<(&'r str, &'r Reading)> {
    let mut found: BTreeMap<&str, &Reading> = BTreeMap::new();
    let mut waiting: Vec<(String, u8)> = table.rows[row]
        .links
        .iter()
        .map(|&link| (table.links[link as usize].url.clone(), 0))
        .collect();
    while let Some((url, depth)) = waiting.pop() {
        let Some((target, _)) = pages.target(&url) else {
            continue;
        };
        // Skip a page that several rows link to, because it belongs to none of them, and a page that another row links
        // to.
        let is_of_others = |rows: &BTreeSet<u32>| rows.len() > 1 || !rows.contains(&(row as u32));
        if targets.get(target).is_some_and(is_of_others) {
            continue;
        }
        let Some((url, reading)) = readings.get_key_value(target) else {
            continue;
        };
        if found.insert(url, reading).is_none() && depth == 0 {
            waiting.extend(reading.links.iter().map(|link| (link.clone(), 1)));
        }
    }
    found.into_iter().collect()
}

pub fn decide_values(
    table: &Table,
    pages: &Pages<'_>,
    mappings: &Mappings,
    readings: &Readings,
    precision: f64,
) -> Verdict {
    let fields = table.fields.len();
    let targets = rows_of_targets(table, pages);
    let mut values = ValueNumbers::default();
    let misread = values.intern_form(MISREAD.to_owned(), MISREAD);
    let mut sites: BTreeMap<String, u32> = BTreeMap::new();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut anchors: BTreeMap<&str, u8> = BTreeMap::new();
    let (mut claims, mut known) = (Vec::new(), Vec::new());
    let mut of_rows = Vec::with_capacity(table.rows.len());
    let mut shapes = vec![FieldShape::Single; fields];
    for (field, shape) in table.fields.iter().zip(&mut shapes) {
        if field.has_several() {
            *shape = FieldShape::Several;
        }
    }
    for (at, row) in table.rows.iter().enumerate() {
        let read = readings_of(table, pages, readings, at, &targets);
        // The verdict on the row's known values, for each field.
        let mut of_known: Vec<KnownVerdict> =
            (0..fields).map(|_| KnownVerdict::default()).collect();
        for (url, reading) in &read {
            let site = intern_site(&mut sites, url);
            let next = numbers.len() as u32;
            let page = *numbers.entry(url).or_insert(next);
            for one in &reading.fields {
                let name = &table.fields[one.field].name;
                if mappings
                    .proposed_confidence(reading.mapping, name)
                    .is_some()
                {
                    continue;
                }
                let item = (at * fields + one.field) as u32;
                let known = &row.known_values(one.field);
                let mut test = verdict_on_chain(mappings, table, url, reading, one);
                if test == ChainVerdict::Misread
                    && agrees(known, &one.values)
                    && is_decided_by_one_page(mappings, table, reading, one)
                {
                    test = ChainVerdict::Learned;
                }
                if !known.is_empty() {
                    let of_known = &mut of_known[one.field];
                    of_known.is_learned |= test == ChainVerdict::Learned;
                    of_known.compare(known, one);
                }
                let origin = mappings.origin(reading.mapping);
                let anchor =
                    origin.and_then(|origin| origin.fields.get(&table.fields[one.field].name));
                let anchor = anchor.map_or("", |field| field.anchor.as_str());
                let next = anchors.len() as u8;
                let anchor = *anchors.entry(anchor).or_insert(next);
                let is_misread = test == ChainVerdict::Misread && agrees(known, &one.values);
                let layout = mappings.position(reading.mapping);
                let rule = (layout * fields as u32 + one.field as u32) * 4 + one.chain as u32;
                let read = one.values.iter();
                let mut read: Vec<u32> =
                    read.map(|value| values.intern_read(value, known)).collect();
                if is_misread {
                    read = vec![misread];
                }
                read.sort_unstable();
                read.dedup();
                // If several values were read for a field with single values, it is unknown which one is right.
                if shapes[one.field] == FieldShape::Single && read.len() > 1 {
                    continue;
                }
                claims.extend(read.into_iter().map(|value| Claim {
                    item,
                    field: one.field as u32,
                    value,
                    page,
                    site,
                    layout,
                    rule,
                    // An alternative chain has another kind of anchor than the first chain, so the number for its anchor
                    // must differ, too.
                    anchor: anchor.saturating_add(64 * one.chain as u8),
                }));
            }
        }
        for (field, of_known) in of_known.into_iter().enumerate() {
            for (place, value) in row.known_values(field).iter().enumerate() {
                let (presence, chance) = of_known.presence_of(place);
                known.push(Known {
                    item: (at * fields + field) as u32,
                    value: values.intern(value),
                    held_out: !of_known.is_learned,
                    presence,
                    chance,
                });
            }
        }
        of_rows.push(read);
    }
    let mut places: HashMap<String, u32> = HashMap::new();
    let chosen: Vec<Chosen> = mappings
        .set
        .indexes()
        .flat_map(|mapping| chosen_chains(table, mappings, mapping, &mut places))
        .collect();
    let texts: Vec<&str> = values.texts.iter().map(String::as_str).collect();
    let judgement = webfill_truth::estimate(&Evidence {
        fields: &shapes,
        claims: &claims,
        known: &known,
        texts: &texts,
        chosen: &chosen,
    });
    // The most certain doubt about each cell.
    let doubted: HashMap<u32, &Doubt> = judgement
        .doubts
        .iter()
        .rev()
        .map(|doubt| (doubt.item, doubt))
        .collect();
    let mut cells = Vec::new();
    let mut deciding = Decider {
        table,
        pages,
        mappings,
        targets: &targets,
        judgement: &judgement,
        values: &mut values,
        precision,
        doubted: &doubted,
        permitted: HashMap::new(),
        looks: HashMap::new(),
    };
    for (at, read) in of_rows.iter().enumerate() {
        for field in 0..fields {
            cells.extend(deciding.decide(at, field, read));
        }
    }
    placeholders::withdraw_placeholders(table, &mut cells);
    shortened_lists::withdraw_shortened_lists(table, &mut cells);
    Verdict {
        cells,
        judgement,
        sites,
    }
}

fn intern_site(sites: &mut BTreeMap<String, u32>, url: &str) -> u32 {
    let site = webfill_urls::Url::parse(url).map(|url| webfill_urls::site(&url));
    let next = sites.len() as u32;
    *sites.entry(site.unwrap_or_default()).or_insert(next)
}

/// The evidence for the choice of the chains of a learned mapping.
fn chosen_chains(
    table: &Table,
    mappings: &Mappings,
    mapping: MappingIndex,
    places: &mut HashMap<String, u32>,
) -> Vec<Chosen> {
    let Some(origin) = mappings.origin(mapping) else {
        return Vec::new();
    };
    let fields = table.fields.iter().zip(0..);
    let chosen = fields.filter_map(|(field, number)| {
        let of_field = origin.fields.get(&field.name)?;
        if of_field.proposed.is_some() {
            return None;
        }
        // Only the first processor shows the place on the page; the others depend on the form of the values.
        let chain = mappings.chain(mappings.set.name(mapping), &field.name, 0);
        let next = places.len() as u32;
        let place = chain.get(0).map(|first| {
            let place = places.entry(first.to_string());
            *place.or_insert(next)
        });
        Some(Chosen {
            layout: mappings.position(mapping),
            field: number,
            reads: of_field.reads,
            misses: of_field.misses,
            agreement: of_field.agreement,
            place,
        })
    });
    chosen.collect()
}

/// What a known value shows about the chain that read its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChainVerdict {
    /// The chain was chosen without this value.
    Unseen,
    /// The chain was chosen with this value, and was not tested without it.
    Learned,
    /// A chain that was found without the value reads it.
    Confirmed,
    /// A chain that was found without the value does not read it.
    Misread,
}

fn verdict_on_chain(
    mappings: &Mappings,
    table: &Table,
    url: &str,
    reading: &Reading,
    one: &FieldReading,
) -> ChainVerdict {
    let Some(origin) = mappings.origin(reading.mapping) else {
        return ChainVerdict::Unseen;
    };
    let field = origin.fields.get(&table.fields[one.field].name);
    match field.and_then(|field| field.without_page.get(url)) {
        Some(true) => ChainVerdict::Confirmed,
        Some(false) => ChainVerdict::Misread,
        None if origin.pages.iter().any(|page| page == url) => ChainVerdict::Learned,
        None => ChainVerdict::Unseen,
    }
}

/// Whether a chain was learned from at least four pages and, learned without one of them, misreads only that page. Such
/// a page may be the only one that shows which chain is right, so its misreading says little about other pages.
fn is_decided_by_one_page(
    mappings: &Mappings,
    table: &Table,
    reading: &Reading,
    one: &FieldReading,
) -> bool {
    const CONFIRMED: usize = 3;
    let origin = mappings.origin(reading.mapping);
    let field = origin.and_then(|origin| origin.fields.get(&table.fields[one.field].name));
    field.is_some_and(|field| {
        let confirmed = field.without_page.values().filter(|is_read| **is_read);
        let confirmed = confirmed.count();
        confirmed >= CONFIRMED && field.without_page.len() == confirmed + 1
    })
}

impl Verdict {
    /// The name of the site that has this number in the judgement.
    pub fn site_name(&self, number: u32) -> Option<&str> {
        let mut sites = self.sites.iter();
        let found = sites.find(|(_, one)| **one == number);
        found.map(|(name, _)| name.as_str())
    }

    /// Notes in the cells which values were not written, and why.
    pub fn note_refused(&mut self, table: &Table, refused: &Refused) {
        for cell in &mut self.cells {
            let row = table.rows[cell.row as usize].number;
            let Some(reason) = refused.get(&(row, table.fields[cell.field].column)) else {
                continue;
            };
            cell.refusal = Some(reason.clone());
            if cell.state == State::Filled {
                cell.state = State::Refused;
            }
        }
    }

    /// The sites and fields whose values are probably right often enough, so that fetching pages for them is
    /// worthwhile.
    pub fn fields_worth_fetching(
        &self,
        mappings: &Mappings,
        precision: f64,
    ) -> BTreeSet<(String, usize)> {
        let mut worth = BTreeSet::new();
        let names: BTreeMap<u32, &str> = self
            .sites
            .iter()
            .map(|(name, number)| (*number, name.as_str()))
            .collect();
        for one in &self.judgement.precisions {
            let index = mappings
                .set
                .indexes()
                .find(|index| mappings.position(*index) == one.layout);
            let is_of_person = index.is_some_and(|index| mappings.origin(index).is_none());
            if (one.interval.estimate >= precision || is_of_person)
                && let Some(site) = names.get(&one.site)
            {
                worth.insert(((*site).to_owned(), one.field as usize));
            }
        }
        worth
    }
}
