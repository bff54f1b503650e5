//! The index of all claims. They are sorted and grouped: each item (a field of a row) has the readings of each site.

use std::collections::HashMap;

use crate::cells::Cell;
use crate::elsewhere::Elsewhere;
use crate::evidence::{Claim, Evidence, FieldShape, Known, Presence};
use crate::profile::Profile;

/// How many patterns of agreement there are between extraction chains with different kinds of anchors; see
/// [`agreement_pattern`].
pub(crate) const PATTERNS: usize = 6;

/// A value that one site claims for one item, on all its pages and by all its extraction chains.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub value: u32,
    /// Indexes in [`Index::sites`] and [`Index::cells`].
    pub site: u32,
    pub cell: u32,
    pub pattern: u8,
    /// Whether this is a main value of the site. In a field with one truth, a site has one main value, and its other
    /// values are alternatives. In a list, all values are main values.
    pub leads: bool,
    /// How usual the value looks for its field; see [`Profile::fit_bucket`].
    pub fit: u8,
    /// One page with this reading (`page`), the number of such pages, and by how many kinds of anchors it was found.
    pub page: u32,
    pub pages: u32,
    pub anchors: u32,
}

/// One field of one row.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub number: u32,
    pub field: u32,
    /// The item's range in [`Index::readings`]. The readings of a site are consecutive.
    pub readings: std::ops::Range<usize>,
    /// The item's range in [`Index::known`].
    pub known: std::ops::Range<usize>,
    pub sites: u32,
}

#[derive(Debug)]
pub(crate) struct Index {
    pub shapes: Vec<FieldShape>,
    pub items: Vec<Item>,
    pub readings: Vec<Reading>,
    /// The known values of items with claims, sorted by item and value.
    pub known: Vec<Known>,
    /// The cells (a layout and a field), with their counts still 0.
    pub cells: Vec<Cell>,
    /// The number of each site as the caller gave it.
    pub sites: Vec<u32>,
    pub elsewhere: Elsewhere,
}

impl Index {
    pub fn new(evidence: &Evidence<'_>) -> Index {
        let mut claims: Vec<Claim> = evidence.claims.to_vec();
        claims.retain(|claim| (claim.field as usize) < evidence.fields.len());
        claims.sort_unstable_by_key(|claim| {
            (
                claim.item,
                claim.site,
                claim.value,
                claim.rule,
                claim.page,
                claim.anchor,
                claim.layout,
            )
        });
        claims.dedup();
        let mut known: Vec<Known> = evidence.known.to_vec();
        known.sort_by_key(|known| {
            (
                known.item,
                known.value,
                !known.held_out,
                known.presence == Presence::Unknown,
            )
        });
        known.dedup_by_key(|known| (known.item, known.value));

        let mut sites: Vec<u32> = claims.iter().map(|claim| claim.site).collect();
        sites.sort_unstable();
        sites.dedup();
        let (mut cells, cell_of) = build_cells(&claims, &sites);
        let mut families: HashMap<(u32, u32), u32> = HashMap::new();
        for chosen in evidence.chosen {
            if let Some(&cell) = cell_of.get(&(chosen.layout, chosen.field)) {
                let shape = evidence.fields[chosen.field as usize];
                cells[cell as usize].adjust_expected_kinds(shape, chosen);
                cells[cell as usize].family = chosen.place.map(|place| {
                    let next = families.len() as u32;
                    *families.entry((chosen.field, place)).or_insert(next)
                });
            }
        }
        let mut index = Index {
            shapes: evidence.fields.to_vec(),
            items: Vec::new(),
            readings: Vec::new(),
            known: Vec::new(),
            cells,
            sites,
            elsewhere: Elsewhere::default(),
        };
        let mut rest = known.as_slice();
        for of_item in claims.chunk_by(|a, b| a.item == b.item) {
            let number = of_item[0].item;
            let before = rest.partition_point(|known| known.item < number);
            rest = &rest[before..];
            let own = rest.partition_point(|known| known.item == number);
            let known_from = index.known.len();
            index.known.extend_from_slice(&rest[..own]);
            let from = index.readings.len();
            let mut sites = 0;
            for of_site in of_item.chunk_by(|a, b| a.site == b.site) {
                let site = index.sites.partition_point(|site| *site < of_site[0].site);
                let shape = index.shapes[of_site[0].field as usize];
                index
                    .readings
                    .extend(group_readings(of_site, site as u32, shape, &cell_of));
                sites += 1;
            }
            index.items.push(Item {
                number,
                field: of_item[0].field,
                readings: from..index.readings.len(),
                known: known_from..index.known.len(),
                sites,
            });
        }
        index.rate_value_forms(evidence.texts);
        let (items, readings, known) = (&index.items, &index.readings, &index.known);
        index.elsewhere = Elsewhere::new(items, readings, known, index.shapes.len());
        index
    }

    /// Sets how usual each value looks, compared with the field's other values, both known and claimed.
    fn rate_value_forms(&mut self, texts: &[&str]) {
        let text = |value: u32| texts.get(value as usize).copied();
        let mut profiles: Vec<Profile> = self.shapes.iter().map(|_| Profile::default()).collect();
        let mut cells: Vec<(u32, u32)> = Vec::new();
        for item in &self.items {
            let leading = self
                .readings_of(item)
                .iter()
                .filter(|reading| reading.leads);
            let claimed = leading.map(|reading| reading.value);
            let known = self.known_values(item).iter().map(|known| known.value);
            cells.extend(claimed.chain(known).map(|value| (item.field, value)));
        }
        cells.sort_unstable();
        for of_value in cells.chunk_by(|a, b| a == b) {
            let (field, value) = of_value[0];
            if let Some(text) = text(value) {
                profiles[field as usize].add(text, of_value.len());
            }
        }
        profiles.iter_mut().for_each(Profile::finish);
        for item in &self.items {
            for reading in &mut self.readings[item.readings.clone()] {
                reading.fit = text(reading.value)
                    .map_or(0, |text| profiles[item.field as usize].fit_bucket(text));
            }
        }
    }

    pub fn readings_of(&self, item: &Item) -> &[Reading] {
        &self.readings[item.readings.clone()]
    }

    pub fn known_values(&self, item: &Item) -> &[Known] {
        &self.known[item.known.clone()]
    }

    pub fn shape(&self, item: &Item) -> FieldShape {
        self.shapes[item.field as usize]
    }
}

type CellOf = HashMap<(u32, u32), u32>;

/// Makes a cell for each layout and field with claims. Also returns the index of each cell by layout and field.
fn build_cells(claims: &[Claim], sites: &[u32]) -> (Vec<Cell>, CellOf) {
    let mut keys: Vec<(u32, u32, u32)> = claims
        .iter()
        .map(|claim| (claim.layout, claim.field, claim.site))
        .collect();
    keys.sort_unstable();
    keys.dedup_by_key(|key| (key.0, key.1));
    let mut cells = Vec::with_capacity(keys.len());
    let mut cell_of = HashMap::with_capacity(keys.len());
    for (layout, field, site) in keys {
        cell_of.insert((layout, field), cells.len() as u32);
        let site = sites.partition_point(|other| *other < site);
        cells.push(Cell::new(site as u32, layout, field));
    }
    (cells, cell_of)
}

/// Groups the claims of one site about one item: one reading for each value, the main value first.
fn group_readings(
    claims: &[Claim],
    site: u32,
    shape: FieldShape,
    cell_of: &CellOf,
) -> Vec<Reading> {
    let kinds = count_distinct(claims.iter().map(|claim| u32::from(claim.anchor)));
    let mut found: Vec<(Reading, u32)> = Vec::new();
    for of_value in claims.chunk_by(|a, b| a.value == b.value) {
        let first = &of_value[0];
        let anchors = count_distinct(of_value.iter().map(|claim| u32::from(claim.anchor)));
        let reading = Reading {
            value: first.value,
            site,
            cell: cell_of[&(first.layout, first.field)],
            pattern: agreement_pattern(anchors, kinds - anchors),
            leads: shape == FieldShape::Several,
            fit: 0,
            page: first.page,
            pages: count_distinct(of_value.iter().map(|claim| claim.page)),
            anchors,
        };
        found.push((reading, first.rule));
    }
    if shape == FieldShape::Single {
        // Values are sorted by the number of kinds of anchors that read them, then by the number of pages, then by the
        // order of extraction chains in the mapping.
        found.sort_by_key(|(reading, rule)| {
            (
                u32::MAX - reading.anchors,
                u32::MAX - reading.pages,
                *rule,
                reading.value,
            )
        });
        found[0].0.leads = true;
    }
    found.into_iter().map(|(reading, _)| reading).collect()
}

/// The number of the pattern of agreement if `agree` kinds of anchors read a value, and `differ` kinds another value.
fn agreement_pattern(agree: u32, differ: u32) -> u8 {
    match (agree, differ) {
        (0 | 1, 0) => 0,
        (2, 0) => 1,
        (_, 0) => 2,
        _ if agree > differ => 3,
        _ if agree == differ => 4,
        _ => 5,
    }
}

fn count_distinct(numbers: impl Iterator<Item = u32>) -> u32 {
    let mut all: Vec<u32> = numbers.collect();
    all.sort_unstable();
    all.dedup();
    all.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_many_rows_does_not_make_others_unusual() {
        let claim = |item: u32, value: u32| Claim {
            item,
            field: 0,
            value,
            page: item,
            site: 0,
            layout: 0,
            rule: 0,
            anchor: 0,
        };
        let fits = |texts: &[&str]| -> Vec<u8> {
            let values = (0..30).map(|item| item.min(texts.len() as u32 - 1));
            let claims: Vec<Claim> = (0..)
                .zip(values)
                .map(|(item, value)| claim(item, value))
                .collect();
            let index = Index::new(&Evidence {
                fields: &[FieldShape::Single],
                claims: &claims,
                known: &[],
                texts,
                chosen: &[],
            });
            index.readings.iter().map(|reading| reading.fit).collect()
        };
        let makers = ["Panasonic", "Fuji", "Canon"];
        assert!(fits(&makers).iter().all(|fit| *fit == 0));
        let years: Vec<String> = (0..29).map(|age| (1990 + age).to_string()).collect();
        let mut texts: Vec<&str> = vec!["Panasonic"];
        texts.extend(years.iter().map(String::as_str));
        assert_eq!(fits(&texts)[0], 2);
    }
}
