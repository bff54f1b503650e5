//! Known values that are read for other rows. A wrong value often belongs to another row, because rows were mixed up.
//! If a page shows such a value beside its own, as shops show related things, a search of the page proves little. But
//! in a field whose values seldom occur twice, the value of another row is rarely right for this one, too.

use std::collections::HashSet;

use crate::evidence::Known;
use crate::index::{Item, Reading};

#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// The known values that no page of their own item has, but pages of other items have; each with its field.
    values: HashSet<(u32, u32)>,
    /// For each field, the share of items whose value is also read for another item.
    repeated: Vec<f64>,
}

impl Elsewhere {
    pub fn new(items: &[Item], readings: &[Reading], known: &[Known], fields: usize) -> Elsewhere {
        let mut read: Vec<(u32, u32)> = Vec::new();
        for item in items {
            let mut of_item: Vec<u32> = values_of(item, readings).collect();
            of_item.sort_unstable();
            of_item.dedup();
            read.extend(of_item.into_iter().map(|value| (item.field, value)));
        }
        read.sort_unstable();
        // An item is added to each field, half of it repeated: a few items do not show that values never occur twice.
        let mut counts = vec![(0.5, 1.0); fields];
        for of_value in read.chunk_by(|a, b| a == b) {
            let (repeated, all) = &mut counts[of_value[0].0 as usize];
            *all += of_value.len() as f64;
            if of_value.len() > 1 {
                *repeated += of_value.len() as f64;
            }
        }
        let mut values = HashSet::new();
        for item in items {
            let unread = known[item.known.clone()].iter().filter(|known| {
                let mut own = readings[item.readings.clone()].iter();
                own.all(|reading| reading.value != known.value)
            });
            let places = unread.map(|known| (item.field, known.value));
            values.extend(places.filter(|place| read.binary_search(place).is_ok()));
        }
        let repeated = counts.iter().map(|(repeated, all)| repeated / all);
        Elsewhere {
            values,
            repeated: repeated.collect(),
        }
    }

    /// Whether this known value, which its own item's pages do not have, is read for another item.
    pub fn has(&self, item: &Item, known: &Known) -> bool {
        self.values.contains(&(item.field, known.value))
    }

    /// The probability that a right value of this item is also read for another item.
    pub fn chance(&self, item: &Item) -> f64 {
        self.repeated[item.field as usize]
    }
}

/// The main values that pages have for an item.
fn values_of<'r>(item: &Item, readings: &'r [Reading]) -> impl Iterator<Item = u32> + use<'r> {
    let readings = readings[item.readings.clone()].iter();
    let leading = readings.filter(|reading| reading.leads);
    leading.map(|reading| reading.value)
}
