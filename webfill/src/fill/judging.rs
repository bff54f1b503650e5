//! Decides what is filled: gives all that was read and all that is known to `webfill_truth`, and states for each cell
//! what came of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use webfill_learn::{Looks, common_form};
use webfill_mapping::MappingIndex;
use webfill_truth::{
    Chosen, Claim, Doubt, Evidence, FieldShape, ItemJudgement, Judgement, Known, Presence,
};
use webfill_wire::Outcome;

use super::mappings::Mappings;
use super::pages::{Pages, rows_of_targets};
use super::reading::{FieldReading, Reading, Readings, agrees, is_among, is_misspelt};
use super::table::{Refused, Row, Table};

/// The result for a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// A gap that has a value now.
    Filled,
    /// The value of the table stands on its page.
    Known,
    /// The page has another value than the table.
    Contradicted,
    /// A gap: its pages have several values, and none is sure enough.
    Conflicting,
    /// A gap: nothing was read on its pages.
    NotOnPage,
    /// A gap: none of its pages was fetched.
    Unreachable,
    /// A gap: robots.txt disallows its pages.
    Robots,
    /// A gap: what was read is not sure enough, or its pages were not fetched because nothing sure was expected.
    BelowPrecision,
    /// A gap: what was read is sure, and does not fit the column.
    Refused,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Filled => "filled",
            State::Known => "known",
            State::Contradicted => "contradicted",
            State::Conflicting => "conflicting",
            State::NotOnPage => "not on the page",
            State::Unreachable => "page unreachable",
            State::Robots => "refused by robots",
            State::BelowPrecision => "below precision",
            State::Refused => "refused",
        }
    }
}

/// The result for a cell, and its source.
#[derive(Debug)]
pub struct Cell {
    pub row: u32,
    pub field: usize,
    pub state: State,
    /// The read text, as the page has it.
    pub values: Vec<String>,
    /// How likely these are right; of a contradicted one, that the table is wrong.
    pub confidence: f64,
    /// The page that they are from; of a gap that stays, a page that was asked.
    pub url: Option<String>,
    /// Why they were not written.
    pub refusal: Option<String>,
    /// Nothing is known of the field on the site: other sites have taught what it is.
    pub is_proposed: bool,
}

/// See the module.
pub struct Verdict {
    pub cells: Vec<Cell>,
    pub judgement: Judgement,
    /// The numbers that the judgement has for sites.
    sites: BTreeMap<String, u32>,
}

/// Of less likely proposals people are asked, whatever precision is wanted.
pub const LEAST_UNASKED: f64 = 0.95;

/// Known values that show what those of a field look like, and their bytes.
const MOST_LOOKS: usize = 10_000;
const MOST_LOOKS_BYTES: usize = 32 << 20;

/// How likely a proposed value is right that looks like no known one, or stands on a page that contradicts its row.
const UNLIKE: f64 = 0.3;

/// How likely a value is right, at most, where another part of its page has another one that is as likely meant.
const DISPUTED: f64 = 0.5;

/// A value that no page has: it stands for what a chain without the page would have read.
const MISREAD: &str = "\0";

/// Numbers for values, equal for equal ones.
#[derive(Default)]
struct Values {
    /// By form.
    numbers: HashMap<String, u32>,
    /// The same by text: a form takes longer.
    by_text: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Values {
    fn number(&mut self, form: String, text: &str) -> u32 {
        let next = self.texts.len() as u32;
        let number = *self.numbers.entry(form).or_insert(next);
        if number == next {
            self.texts.push(text.to_owned());
        }
        number
    }

    fn of(&mut self, text: &str) -> u32 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let number = self.number(common_form(text), text);
        self.by_text.insert(text.to_owned(), number);
        number
    }

    /// That of a known value, if it is one of these.
    fn of_read(&mut self, read: &str, known: &[String]) -> u32 {
        let same = known
            .iter()
            .find(|known| webfill_learn::is_same_value(known, read));
        match same {
            Some(known) => self.of(known),
            None => self.of(read),
        }
    }
}

/// The verdict of a row's pages on its known values of a field.
#[derive(Default)]
struct OfKnown {
    /// Whether chains were chosen by them.
    is_learned: bool,
    /// By the place of the value: whether it stands on a page, and the share of other values that do.
    presences: Vec<(Presence, f32)>,
}

impl OfKnown {
    fn compare(&mut self, known: &[String], read: &FieldReading) {
        self.presences.resize(known.len(), (Presence::Unknown, 0.0));
        let is_misspelt = is_misspelt(known, &read.values);
        for (value, (presence, chance)) in known.iter().zip(&mut self.presences) {
            let unread = read.unread.iter().find(|unread| unread.value == *value);
            let stands = match unread {
                Some(unread) => unread.stands,
                None => is_among(value, &read.values).then_some(true),
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

    /// Nothing is known of a value that no page was compared with.
    fn of(&self, place: usize) -> (Presence, f32) {
        let presence = self.presences.get(place).copied();
        presence.unwrap_or((Presence::Unknown, 0.0))
    }
}

/// The pages of a row that were read.
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
        // The page of several rows is of none of them, and that of another row is not of this one.
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

pub fn judge(
    table: &Table,
    pages: &Pages<'_>,
    mappings: &Mappings,
    readings: &Readings,
    precision: f64,
) -> Verdict {
    let fields = table.fields.len();
    let targets = rows_of_targets(table, pages);
    let mut values = Values::default();
    let misread = values.number(MISREAD.to_owned(), MISREAD);
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
        // By field: whether the known values were not used for the chains, and where they stand.
        let mut of_known: Vec<OfKnown> = (0..fields).map(|_| OfKnown::default()).collect();
        for (url, reading) in &read {
            let site = site_of(&mut sites, url);
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
                let known = &row.known(one.field);
                let mut test = tested(mappings, table, url, reading, one);
                if test == Test::Misread
                    && agrees(known, &one.values)
                    && decided_alone(mappings, table, reading, one)
                {
                    test = Test::Learned;
                }
                if !known.is_empty() {
                    let of_known = &mut of_known[one.field];
                    of_known.is_learned |= test == Test::Learned;
                    of_known.compare(known, one);
                }
                let origin = mappings.origin(reading.mapping);
                let anchor =
                    origin.and_then(|origin| origin.fields.get(&table.fields[one.field].name));
                let anchor = anchor.map_or("", |field| field.anchor.as_str());
                let next = anchors.len() as u8;
                let anchor = *anchors.entry(anchor).or_insert(next);
                let is_misread = test == Test::Misread && agrees(known, &one.values);
                let layout = mappings.number(reading.mapping);
                let rule = (layout * fields as u32 + one.field as u32) * 4 + one.chain as u32;
                let read = one.values.iter();
                let mut read: Vec<u32> = read.map(|value| values.of_read(value, known)).collect();
                if is_misread {
                    read = vec![misread];
                }
                read.sort_unstable();
                read.dedup();
                // Several values where there is one: nobody knows which.
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
                    // Alternatives hold on to other things than the first chain.
                    anchor: anchor.saturating_add(64 * one.chain as u8),
                }));
            }
        }
        for (field, of_known) in of_known.into_iter().enumerate() {
            for (place, value) in row.known(field).iter().enumerate() {
                let (presence, chance) = of_known.of(place);
                known.push(Known {
                    item: (at * fields + field) as u32,
                    value: values.of(value),
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
        .flat_map(|mapping| chosen(table, mappings, mapping, &mut places))
        .collect();
    let texts: Vec<&str> = values.texts.iter().map(String::as_str).collect();
    let judgement = webfill_truth::judge(&Evidence {
        fields: &shapes,
        claims: &claims,
        known: &known,
        texts: &texts,
        chosen: &chosen,
    });
    // The surest of each item.
    let doubted: HashMap<u32, &Doubt> = judgement
        .doubts
        .iter()
        .rev()
        .map(|doubt| (doubt.item, doubt))
        .collect();
    let mut cells = Vec::new();
    let mut deciding = Deciding {
        table,
        pages,
        mappings,
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
    Verdict {
        cells,
        judgement,
        sites,
    }
}

fn site_of(sites: &mut BTreeMap<String, u32>, url: &str) -> u32 {
    let site = webfill_urls::Url::parse(url).map(|url| webfill_urls::site(&url));
    let next = sites.len() as u32;
    *sites.entry(site.unwrap_or_default()).or_insert(next)
}

/// How the chains of a learned mapping were chosen.
fn chosen(
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
        // The processors after the first depend on the form of the values.
        let chain = mappings.chain(mappings.set.name(mapping), &field.name, 0);
        let next = places.len() as u32;
        let place = chain.get(0).map(|first| {
            let place = places.entry(first.to_string());
            *place.or_insert(next)
        });
        Some(Chosen {
            layout: mappings.number(mapping),
            field: number,
            reads: of_field.reads,
            misses: of_field.misses,
            agreement: of_field.agreement,
            place,
        })
    });
    chosen.collect()
}

/// The verdict of a known value on a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    /// The chain was chosen without it.
    Unseen,
    /// The chain was chosen with it, and nothing else is known.
    Learned,
    /// One that was found without it reads it.
    Confirmed,
    /// One that was found without it does not read it.
    Misread,
}

fn tested(
    mappings: &Mappings,
    table: &Table,
    url: &str,
    reading: &Reading,
    one: &FieldReading,
) -> Test {
    let Some(origin) = mappings.origin(reading.mapping) else {
        return Test::Unseen;
    };
    let field = origin.fields.get(&table.fields[one.field].name);
    match field.and_then(|field| field.without_page.get(url)) {
        Some(true) => Test::Confirmed,
        Some(false) => Test::Misread,
        None if origin.pages.iter().any(|page| page == url) => Test::Learned,
        None => Test::Unseen,
    }
}

/// Whether only one page of those that a chain was learned from is misread without itself, of four or more. It may be
/// the only one that shows which of several chains is right: this says little about pages that were not learned from.
fn decided_alone(
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

struct Deciding<'d> {
    table: &'d Table,
    pages: &'d Pages<'d>,
    mappings: &'d Mappings,
    judgement: &'d Judgement,
    values: &'d mut Values,
    precision: f64,
    doubted: &'d HashMap<u32, &'d Doubt>,
    /// By the number of the layout and the field: whether it is precise enough to be filled from.
    permitted: HashMap<(u32, usize), bool>,
    /// By field, of those that were proposed: what known values look like.
    looks: HashMap<usize, Looks>,
}

/// The reading of a page for a cell.
struct Read<'r> {
    url: &'r str,
    mapping: MappingIndex,
    chain: usize,
    values: Vec<String>,
    is_disputed: bool,
}

/// Whether a page contradicts most of what is known of the row: it may be that of another one.
fn is_foreign(row: &Row, reading: &Reading) -> bool {
    let (mut same, mut others) = (0, 0);
    for one in &reading.fields {
        let known = row.known(one.field);
        if !known.is_empty() {
            match agrees(&known, &one.values) {
                true => same += 1,
                false => others += 1,
            }
        }
    }
    others > same
}

impl Deciding<'_> {
    /// `None` for a known value of which no page says anything.
    fn decide(&mut self, at: usize, field: usize, read: &[(&str, &Reading)]) -> Option<Cell> {
        let table = self.table;
        let row = &table.rows[at];
        let known = &row.known(field);
        let item = (at * table.fields.len() + field) as u32;
        let cell = |state, values: &[String], confidence, url: Option<&str>| Cell {
            row: at as u32,
            field,
            state,
            values: values.to_vec(),
            confidence,
            url: url.map(str::to_owned),
            refusal: None,
            is_proposed: false,
        };
        // Those with several values, where the column has one, say nothing.
        let (mut readings, mut unclear, mut proposed) = (Vec::new(), None, Vec::new());
        for (url, reading) in read {
            for one in reading.fields.iter().filter(|one| one.field == field) {
                let name = &table.fields[field].name;
                let origin = self.mappings.origin(reading.mapping);
                let origin = origin.and_then(|origin| origin.fields.get(name));
                let is_disputed = origin.is_some_and(|field| field.disputed.contains(*url));
                let mut read = Read {
                    url,
                    mapping: reading.mapping,
                    chain: one.chain,
                    values: one.values.clone(),
                    is_disputed: one.chain == 0 && is_disputed,
                };
                if !table.fields[field].has_several() {
                    if self.numbers(&read.values, known).len() > 1 {
                        unclear.get_or_insert(read);
                        continue;
                    }
                    read.values.truncate(1);
                }
                match self.mappings.proposed_confidence(read.mapping, name) {
                    Some(_) if is_foreign(row, reading) => proposed.push((UNLIKE, read)),
                    Some(confidence) => proposed.push((confidence, read)),
                    None => readings.push(read),
                }
            }
        }
        if !known.is_empty() {
            let doubt = self.doubted.get(&item).copied();
            let surely = doubt.map_or(0.0, |doubt| doubt.surely);
            let (same, others): (Vec<&Read<'_>>, Vec<&Read<'_>>) = readings
                .iter()
                .partition(|read| agrees(known, &read.values));
            // The values that were judged to be true instead.
            let instead = doubt.and_then(|doubt| doubt.instead);
            let has_instead = |read: &&&Read<'_>| {
                instead.is_some_and(|instead| self.numbers(&read.values, known).contains(&instead))
            };
            let other = others.iter().find(has_instead).or(others.first());
            return match (same.first(), other) {
                (None, None) => None,
                (None, Some(other)) => Some(cell(
                    State::Contradicted,
                    &other.values,
                    surely,
                    Some(other.url),
                )),
                (Some(_), Some(other)) if surely >= Judgement::DOUBTED => Some(cell(
                    State::Contradicted,
                    &other.values,
                    surely,
                    Some(other.url),
                )),
                (Some(same), _) => Some(cell(
                    State::Known,
                    &same.values,
                    1.0 - surely,
                    Some(same.url),
                )),
            };
        }
        if readings.is_empty()
            && unclear.is_none()
            && let Some(cell) = self.decide_proposed(field, &proposed, &cell)
        {
            return Some(cell);
        }
        let judgement = self.judgement;
        let Some(judged) = judgement.item(item).filter(|_| !readings.is_empty()) else {
            if let Some(read) = unclear {
                return Some(cell(State::Conflicting, &read.values, 0.0, Some(read.url)));
            }
            let (state, url) = self.why_not(row.links.iter().copied());
            let state = state?;
            return Some(cell(state, &[], 0.0, url.as_deref()));
        };
        let chosen: BTreeSet<u32> = judged.chosen.iter().map(|value| value.value).collect();
        let best = readings.iter().max_by_key(|read| {
            let numbers = self.numbers(&read.values, &[]);
            let shared = numbers.intersection(&chosen).count();
            (
                shared,
                std::cmp::Reverse(read.chain),
                std::cmp::Reverse(numbers.len()),
            )
        })?;
        // Its own page speaks against it, and no other one for it.
        let is_disputed = best.is_disputed && judged.chosen.iter().any(|value| value.sites < 2);
        let confidence = match is_disputed {
            true => judged.confidence.min(DISPUTED),
            false => judged.confidence,
        };
        // A written list stands on one page, whole.
        let is_sure = confidence >= self.precision && self.numbers(&best.values, &[]) == chosen;
        let state = match judged.rejected.is_empty() {
            _ if is_sure && self.may_fill(field, judged, &readings, &chosen) => State::Filled,
            false if !is_sure => State::Conflicting,
            _ if is_disputed => State::Conflicting,
            _ => State::BelowPrecision,
        };
        Some(cell(state, &best.values, confidence, Some(best.url)))
    }

    /// The proposal of other sites, if they agree.
    fn decide_proposed<F>(
        &mut self,
        field: usize,
        proposed: &[(f64, Read<'_>)],
        cell: &F,
    ) -> Option<Cell>
    where
        F: Fn(State, &[String], f64, Option<&str>) -> Cell,
    {
        let (confidence, best) = proposed.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let numbers = self.numbers(&best.values, &[]);
        let mut agree = true;
        for (_, other) in proposed {
            agree &= self.numbers(&other.values, &[]) == numbers;
        }
        let table = self.table;
        let looks = self.looks.entry(field).or_insert_with(|| {
            let known = table.rows.iter().flat_map(|row| row.known(field));
            let mut bytes = 0;
            let is_within = |value: &String| {
                bytes += value.len();
                bytes <= MOST_LOOKS_BYTES
            };
            let known: Vec<String> = known.take(MOST_LOOKS).take_while(is_within).collect();
            Looks::of(known.iter().map(String::as_str))
        });
        let is_like_known = best.values.iter().all(|value| looks.fit(value));
        let confidence = if is_like_known { *confidence } else { UNLIKE };
        let state = match agree {
            false => State::Conflicting,
            true if confidence >= self.precision.max(LEAST_UNASKED) => State::Filled,
            true => State::BelowPrecision,
        };
        let mut cell = cell(state, &best.values, confidence, Some(best.url));
        cell.is_proposed = true;
        Some(cell)
    }

    fn numbers(&mut self, read: &[String], known: &[String]) -> BTreeSet<u32> {
        let values = &mut *self.values;
        read.iter()
            .map(|value| values.of_read(value, known))
            .collect()
    }

    /// Whether a layout that was measured to be precise reads these values, a person's mapping does, or several sites
    /// agree.
    fn may_fill(
        &mut self,
        field: usize,
        judged: &ItemJudgement,
        readings: &[Read<'_>],
        chosen: &BTreeSet<u32>,
    ) -> bool {
        if judged.chosen.iter().all(|value| value.sites > 1) {
            return true;
        }
        for read in readings {
            if self.numbers(&read.values, &[]) != *chosen {
                continue;
            }
            let layout = self.mappings.number(read.mapping);
            let (judgement, precision) = (self.judgement, self.precision);
            let decide = || judgement.may_fill(layout, field as u32, precision).fill;
            let is_permitted = *self.permitted.entry((layout, field)).or_insert_with(decide);
            if is_permitted || self.mappings.origin(read.mapping).is_none() {
                return true;
            }
        }
        false
    }

    /// Why nothing was read of a gap; `None` for a row without links.
    fn why_not(&self, links: impl Iterator<Item = u32>) -> (Option<State>, Option<String>) {
        let (mut state, mut of) = (None, None);
        for link in links {
            let url = &self.table.links[link as usize].url;
            let (at, found) = match self.pages.target(url) {
                None if self.pages.is_unanswered(url) => (url.as_str(), State::Unreachable),
                None => (url.as_str(), State::BelowPrecision),
                Some((at, page)) => (
                    at,
                    match page.outcome {
                        Outcome::Ok | Outcome::NotModified | Outcome::ExtractError => {
                            State::NotOnPage
                        }
                        Outcome::Disallowed | Outcome::RobotsUnreachable => State::Robots,
                        _ => State::Unreachable,
                    },
                ),
            };
            // A page that was fetched says more than one that was not.
            if state.is_none_or(|state| found < state) {
                (state, of) = (Some(found), Some(at.to_owned()));
            }
        }
        (state, of)
    }
}

impl Verdict {
    /// The name of a site that the judgement has by its number.
    pub fn site_name(&self, number: u32) -> Option<&str> {
        let mut sites = self.sites.iter();
        let found = sites.find(|(_, one)| **one == number);
        found.map(|(name, _)| name.as_str())
    }

    /// Notes what was not written.
    pub fn note_refused(&mut self, table: &Table, refused: &Refused) {
        for cell in &mut self.cells {
            let row = table.rows[cell.row as usize].number;
            let reason = refused.get(&(row, table.fields[cell.field].column));
            cell.refusal = reason.cloned();
            if reason.is_some() && cell.state == State::Filled {
                cell.state = State::Refused;
            }
        }
    }

    /// The fields of each site whose values are expected to be right often enough to fetch pages for.
    pub fn worth_fetching(&self, mappings: &Mappings, precision: f64) -> BTreeSet<(String, usize)> {
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
                .find(|index| mappings.number(*index) == one.layout);
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
