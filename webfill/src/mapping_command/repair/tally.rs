//! Compares the new chains of a field with its former chains. The score of chains is the number of pages that they read
//! correctly, minus the number that they read wrongly.

use serde_json::Value;

use super::evidence::{Evidence, Values};
use super::merge::join_chains;
use super::reading::{Readings, are_same};

/// Combines the new and the former chains of a field into one list, in the order they are tried in.
pub type Order = fn(&[Value], &[Value]) -> Vec<Value>;

/// All ways to combine new and former chains. If several are equally good, the earliest one is chosen.
pub const ORDERS: [Order; 3] = [
    |new, former| join_chains(new, former),
    |new, former| join_chains(former, new),
    |new, _| new.to_vec(),
];

/// The position in [`ORDERS`] of the order that drops the former chains.
const WITHOUT_FORMER: usize = 2;

/// The values read on all pages by the former mapping, and by the repaired mapping in each of [`ORDERS`].
pub struct Trials {
    pub former: Readings,
    pub orders: Vec<Readings>,
}

/// The number of pages where the known value of a field is read, and the number where another value is read. Pages
/// without a value count as neither.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    right: usize,
    wrong: usize,
}

impl Tally {
    fn add(&mut self, known: Option<&Vec<String>>, read: Option<&Vec<String>>) {
        match (known, read) {
            (Some(known), Some(read)) if are_same(known, read) => self.right += 1,
            (Some(_), Some(_)) => self.wrong += 1,
            _ => {}
        }
    }

    fn score(self) -> i64 {
        let count = |pages: usize| i64::try_from(pages).unwrap_or(i64::MAX);
        count(self.right) - count(self.wrong)
    }
}

/// The tallies of the former mapping and of each order. Pages that any of them could not read completely do not count.
struct Tallies {
    former: Tally,
    orders: Vec<Tally>,
}

impl Trials {
    /// The order with the best score. If it does not read more current pages correctly than the former chains, the
    /// error says why the field is not repaired.
    pub fn best_order(&self, field: &str, evidence: &Evidence) -> Result<Order, String> {
        let now = self.tallies(
            evidence.known_values_of_current_pages(field),
            field,
            |readings| &readings.now,
        );
        // On pages from before the change, the values that the former mapping reads count as right.
        let were = self.former.before.iter();
        let were = were.map(|read| read.as_ref().and_then(|read| read.get(field)).cloned());
        let before = self.tallies(were, field, |readings| &readings.before);
        let balance = |order: usize| now.orders[order].score() + before.orders[order].score();
        let preferred = match now.former.wrong {
            0 => [0, 1, WITHOUT_FORMER],
            // Former chains read wrong values, and would do so wherever the new chains read nothing. So prefer the
            // order without them.
            _ => [WITHOUT_FORMER, 0, 1],
        };
        let mut best = preferred[0];
        for order in preferred {
            if balance(order) > balance(best) {
                best = order;
            }
        }
        let (new, former) = (now.orders[best], now.former);
        let is_better = new.right > former.right
            && new.score() > former.score()
            && balance(best) > former.score() + before.former.score();
        match is_better {
            true => Ok(ORDERS[best]),
            false => Err(format!(
                "the new chains read it correctly on {} pages and wrongly on {}, the former ones on {} and {}",
                new.right, new.wrong, former.right, former.wrong
            )),
        }
    }

    fn tallies(
        &self,
        labels: impl Iterator<Item = Option<Vec<String>>>,
        field: &str,
        of_time: fn(&Readings) -> &[Option<Values>],
    ) -> Tallies {
        let mut tallies = Tallies {
            former: Tally::default(),
            orders: vec![Tally::default(); self.orders.len()],
        };
        for (page, label) in labels.enumerate() {
            let read = |readings| of_time(readings)[page].as_ref();
            let orders: Option<Vec<&Values>> = self.orders.iter().map(read).collect();
            let (Some(former), Some(orders)) = (read(&self.former), orders) else {
                continue;
            };
            tallies.former.add(label.as_ref(), former.get(field));
            for (tally, values) in tallies.orders.iter_mut().zip(orders) {
                tally.add(label.as_ref(), values.get(field));
            }
        }
        tallies
    }
}

#[cfg(test)]
mod tests {
    use webfill_mapping::PageKind;
    use webfill_urls::Url;

    use super::*;
    use crate::mapping_command::learn::gathered::GatheredPage;

    const KNOWN: [&str; 4] = ["a", "b", "c", "d"];

    /// Test evidence: current pages with the known values `KNOWN`.
    fn test_evidence() -> Evidence {
        let mut evidence = Evidence::default();
        for value in KNOWN {
            let url = Url::parse(&format!("https://shop.example/{value}")).unwrap();
            let known = Values::from([("price".to_owned(), vec![value.to_owned()])]);
            evidence.known.insert(url.to_string(), known);
            evidence.now.push(GatheredPage {
                url,
                asked: Vec::new(),
                kind: PageKind::Html,
                text: String::new(),
            });
        }
        evidence
    }

    /// Makes the readings of current pages, one for each character: `-` is a page without a value, `?` a page that
    /// could not be read completely.
    fn readings_from(values: &str) -> Readings {
        let page = |value: char| match value {
            '?' => None,
            '-' => Some(Values::new()),
            value => Some(Values::from([(
                "price".to_owned(),
                vec![value.to_string()],
            )])),
        };
        Readings {
            before: Vec::new(),
            now: values.chars().map(page).collect(),
        }
    }

    /// The position in [`ORDERS`] of the order that is chosen for these readings.
    fn chosen_order(former: &str, orders: [&str; 3]) -> Result<usize, String> {
        let trials = Trials {
            former: readings_from(former),
            orders: orders.map(readings_from).into(),
        };
        let (new, old) = ([Value::from("new")], [Value::from("old")]);
        let best = trials.best_order("price", &test_evidence())?;
        let place = |order: &Order| order(&new, &old) == best(&new, &old);
        Ok(ORDERS.iter().position(place).unwrap())
    }

    #[test]
    fn a_former_chain_that_reads_wrong_values_is_dropped() {
        assert_eq!(chosen_order("----", ["abcd", "abcd", "abcd"]), Ok(0));
        assert_eq!(chosen_order("x---", ["abcd", "xbcd", "abcd"]), Ok(2));
    }

    #[test]
    fn new_chains_that_read_no_more_pages_correctly_are_refused() {
        assert_eq!(chosen_order("ab--", ["abcd", "abcd", "ab--"]), Ok(0));
        let why = chosen_order("ab--", ["abxx", "abxx", "abxx"]).unwrap_err();
        assert!(
            why.contains("on 2 pages and wrongly on 2, the former ones on 2 and 0"),
            "{why}"
        );
        // The new chains read one more page correctly, but two wrongly.
        chosen_order("a---", ["abxx", "abxx", "abxx"]).unwrap_err();
        chosen_order("abcd", ["abcd", "abcd", "abcd"]).unwrap_err();
    }

    #[test]
    fn pages_that_were_not_read_completely_do_not_count() {
        assert_eq!(chosen_order("x--?", ["?bcd", "?bcd", "?bcd"]), Ok(0));
        chosen_order("x---", ["????", "????", "????"]).unwrap_err();
    }
}
