//! The template of a site, drawn by chance, and the things that its pages describe.

mod page;

use fastrand::Rng;

use super::kinds::{Kind, Part, Vertical};
use crate::MONTHS;

const FIRST: &[&str] = &[
    "Alice", "Brian", "Carla", "David", "Elena", "Frank", "Grace", "Henry", "Irene", "Jacob",
    "Karen", "Louis", "Maria", "Nora", "Oscar", "Paula", "Quinn", "Rosa", "Simon", "Tessa", "Umar",
    "Vera", "Walter", "Xenia", "Yusuf", "Zoe",
];
const LAST: &[&str] = &[
    "Adams", "Baker", "Chen", "Dawson", "Ellis", "Foster", "Garcia", "Hughes", "Ivanov", "Jensen",
    "Keller", "Lopez", "Moreau", "Novak", "Olsen", "Price", "Quist", "Rossi", "Silva", "Turner",
    "Ueda", "Vargas", "Wong", "Young", "Zimmer", "O'Hara", "van Dyke",
];
const STREETS: &[&str] = &[
    "Main St",
    "Oak Ave",
    "Elm St",
    "Sunset Blvd",
    "Market St",
    "Lake Dr",
    "Hill Rd",
    "Park Ave",
    "Mill Ln",
    "River Rd",
];
const PLAIN: &[&str] = &[
    "c1", "txt", "row", "fl", "col-2", "b", "box", "inner", "s2", "line", "blk", "x1",
];
/// Where a page shows a part (a field or misleading content).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Within the block that lists labels and values.
    Specs,
    /// Outside of the block, with a label before it.
    Alone,
    /// Outside of the block, without a label. Only its class names it.
    Bare,
}

/// The form of the block that lists labels and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    TableHeads,
    TableCells,
    Definitions,
    BoldItems,
    Pairs,
    Lines,
    Breaks,
    Columns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Class names describe the content.
    Speaking,
    /// Class names describe the content in the style of components: `item__price`.
    Component,
    Plain,
    None,
}

struct Shown {
    part: Part,
    label: String,
    class: String,
    place: Place,
    /// The share of pages that have this part.
    share: f64,
}

/// How the pages of a site show the values of things.
pub struct Template {
    site: String,
    heading: &'static str,
    title: u8,
    block: Block,
    shown: Vec<Shown>,
    names: Names,
    days: u8,
    money: u8,
    phones: u8,
    microdata: bool,
    linked: bool,
    metadata: bool,
    related: usize,
    reviews: usize,
    /// The site takes its words from this range of each list of words.
    words: (usize, usize),
    section: Option<&'static str>,
}

/// A thing that a page describes: the values of each part that the site shows.
pub struct Thing(Vec<Vec<String>>);

fn pick_one<'w, T: ?Sized>(words: &[&'w T], chance: &mut Rng) -> &'w T {
    words[chance.usize(..words.len())]
}

impl Template {
    pub fn draw(vertical: &Vertical, chance: &mut Rng) -> Template {
        let blocks = [
            Block::TableHeads,
            Block::TableCells,
            Block::Definitions,
            Block::BoldItems,
            Block::Pairs,
            Block::Lines,
            Block::Breaks,
            Block::Columns,
        ];
        let names = match chance.u8(..10) {
            0..=3 => Names::Speaking,
            4..=5 => Names::Component,
            6..=8 => Names::Plain,
            _ => Names::None,
        };
        let cases = chance.u8(..4);
        let colon = chance.bool();
        let mut shown = Vec::new();
        let fields = vertical.fields.iter().enumerate();
        let mut beside: Vec<Part> = vertical.beside.to_vec();
        chance.shuffle(&mut beside);
        beside.truncate(4 + chance.usize(..5));
        let of_fields = fields.map(|(number, part)| (number, *part));
        for (number, part) in of_fields.chain(beside.into_iter().map(|part| (99, part))) {
            // Some fields are left out, because some real sites lack them.
            if number != 0 && number != 99 && chance.f64() < 0.1 {
                continue;
            }
            let label = match cases {
                0 => pick_one(part.labels, chance).to_uppercase(),
                1 => pick_one(part.labels, chance).to_lowercase(),
                _ => pick_one(part.labels, chance).to_owned(),
            };
            let word = words_of(pick_one(part.labels, chance)).join(match names {
                Names::Component => "-",
                _ => "_",
            });
            let class = match names {
                Names::Speaking => word,
                Names::Component => format!("item__{word}"),
                Names::Plain => pick_one(PLAIN, chance).to_owned(),
                Names::None => String::new(),
            };
            let place = match chance.u8(..10) {
                0..=6 => Place::Specs,
                7..=8 => Place::Alone,
                _ if names == Names::None => Place::Alone,
                _ => Place::Bare,
            };
            shown.push(Shown {
                part,
                label: if colon { format!("{label}:") } else { label },
                class,
                place,
                share: if number == 0 {
                    1.0
                } else {
                    0.75 + chance.f64() * 0.25
                },
            });
        }
        // The name of the thing is the heading, so it stays first. The order of the other parts is random for each
        // site.
        chance.shuffle(&mut shown[1..]);
        let low = chance.usize(..40);
        Template {
            site: format!(
                "{} {}",
                pick_one(LAST, chance),
                pick_one(&["Guide", "World", "Finder", "Direct", "Hub"], chance)
            ),
            heading: pick_one(&["h1", "h1", "h1", "h2", "div", "span"], chance),
            title: chance.u8(..4),
            block: blocks[chance.usize(..blocks.len())],
            shown,
            names,
            days: chance.u8(..4),
            money: chance.u8(..3),
            phones: chance.u8(..3),
            microdata: chance.f64() < 0.2,
            linked: chance.f64() < 0.3,
            metadata: chance.f64() < 0.4,
            related: if chance.bool() {
                2 + chance.usize(..4)
            } else {
                0
            },
            reviews: if chance.bool() {
                1 + chance.usize(..4)
            } else {
                0
            },
            words: (low, 60 + chance.usize(..40)),
            section: [
                None,
                Some("Details"),
                Some("Specifications"),
                Some("At a glance"),
                Some("Facts"),
            ][chance.usize(..5)],
        }
    }

    /// A word from the site's range within a list of words.
    fn pick_known<'w>(&self, words: &'w [&'w str], chance: &mut Rng) -> &'w str {
        if words.len() < 8 {
            return pick_one(words, chance);
        }
        let (low, high) = self.words;
        let (low, high) = (words.len() * low / 100, (words.len() * high / 100).max(4));
        words[low + chance.usize(..(high.max(low + 3) - low).min(words.len() - low))]
    }

    fn draw_value(&self, kind: Kind, chance: &mut Rng) -> Vec<String> {
        let value = match kind {
            Kind::Name(first, second) => {
                let (first, second) = (
                    self.pick_known(first, chance),
                    self.pick_known(second, chance),
                );
                match chance.u8(..4) {
                    0 => format!("The {first} {second}"),
                    1 => format!("{first} {second} {}", 2 + chance.u8(..8)),
                    _ => format!("{first} {second}"),
                }
            }
            Kind::Person => {
                let (first, last) = (
                    self.pick_known(FIRST, chance),
                    self.pick_known(LAST, chance),
                );
                match chance.u8(..5) {
                    0 => format!("{first} {}. {last}", char::from(b'A' + chance.u8(..26))),
                    _ => format!("{first} {last}"),
                }
            }
            Kind::OneOf(words) => self.pick_known(words, chance).to_owned(),
            Kind::SomeOf(words) => {
                let count = 1 + chance.usize(..4);
                let mut some: Vec<String> = Vec::new();
                for _ in 0..count {
                    let word = self.pick_known(words, chance).to_owned();
                    if !some.contains(&word) {
                        some.push(word);
                    }
                }
                return some;
            }
            Kind::Money(from, to) => {
                let cents = chance.u32(from..to);
                let whole = group_digits(cents / 100);
                let cents = match from > 1_000_000 {
                    true => String::new(),
                    false => format!(".{:02}", cents % 100),
                };
                match self.money {
                    0 | 1 => format!("${whole}{cents}"),
                    _ => format!("{whole}{cents} USD"),
                }
            }
            Kind::Day => {
                let (year, month, day) = (
                    1995 + chance.u32(..25),
                    chance.usize(..12),
                    1 + chance.u32(..28),
                );
                match self.days {
                    0 => format!("{} {day}, {year}", MONTHS[month]),
                    1 => format!("{year}-{:02}-{day:02}", month + 1),
                    2 => format!("{day} {} {year}", MONTHS[month]),
                    _ => format!("{} {day}, {year}", &MONTHS[month][..3]),
                }
            }
            Kind::Number(from, to, unit) => format!("{}{unit}", chance.u32(from..to)),
            Kind::Phone => {
                let (area, office, line) = (
                    chance.u32(201..989),
                    chance.u32(200..999),
                    chance.u32(1_000..9_999),
                );
                match self.phones {
                    0 => format!("({area}) {office}-{line}"),
                    1 => format!("{area}-{office}-{line}"),
                    _ => format!("{area}.{office}.{line}"),
                }
            }
            Kind::Isbn => format!("978{:010}", chance.u64(1_000_000..9_999_999_999)),
            Kind::Address => format!(
                "{} {}",
                chance.u32(1..9_900),
                self.pick_known(STREETS, chance)
            ),
            Kind::Website => format!(
                "www.{}{}.edu",
                self.pick_known(LAST, chance)
                    .to_lowercase()
                    .replace(['\'', ' '], ""),
                chance.u8(..90)
            ),
            Kind::Height => format!("{}-{}", 5 + chance.u8(..3), chance.u8(..12)),
            Kind::Duration => match chance.u32(10..190) {
                minutes @ ..60 => format!("{minutes} min"),
                minutes => format!("{} h {} min", minutes / 60, minutes % 60),
            },
        };
        vec![value]
    }
}

impl Thing {
    pub fn draw(_: &Vertical, template: &Template, chance: &mut Rng) -> Thing {
        let values = template
            .shown
            .iter()
            .map(|shown| match chance.f64() < shown.share {
                true => template.draw_value(shown.part.kind, chance),
                false => Vec::new(),
            });
        Thing(values.collect())
    }
}

fn group_digits(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn words_of(label: &str) -> Vec<String> {
    let words = label.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}
