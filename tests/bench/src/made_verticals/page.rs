//! The template of a site, and its pages.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::kinds::{Kind, Part, Vertical};
use crate::MONTHS;
use crate::sites::Values;

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
const SAYINGS: &[&str] = &[
    "A favourite of many, and for good reasons.",
    "Please check with the seller before you decide.",
    "One of the better ones that we have seen this year.",
    "There is much to say about it, and little of it is bad.",
    "Details may differ from what is shown here.",
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

impl Template {
    /// Makes the page of a thing. Returns its HTML, and the true values of its fields.
    pub fn page(&self, vertical: &Vertical, thing: &Thing, chance: &mut Rng) -> (String, Values) {
        let mut truth = Values::new();
        for part in vertical.fields {
            truth.insert(part.column.to_owned(), Vec::new());
        }
        for (shown, values) in self.shown.iter().zip(&thing.0) {
            if !shown.part.column.is_empty() {
                truth.insert(shown.part.column.to_owned(), values.clone());
            }
        }
        let name = escape_html(&thing.0[0][0]);
        let title = match self.title {
            0 => format!("{name} - {}", self.site),
            1 => format!("{}: {name}", self.site),
            2 => name.clone(),
            _ => self.site.clone(),
        };
        let mut html =
            format!("<!DOCTYPE html><html><head><meta charset=utf-8><title>{title}</title>");
        if self.metadata {
            html += &format!(
                "<meta property=\"og:title\" content=\"{name}\"><meta name=description content=\"{name} at {}\">",
                self.site
            );
        }
        if self.linked {
            html += &self.linked_data(vertical, thing);
        }
        html += &format!(
            "</head><body><div id=top><a href=/>{}</a> <ul class=menu><li><a href=/new>New</a><li><a href=/best>Best</a><li><a href=/about>About us</a></ul></div>",
            self.site
        );
        let scope = match self.microdata {
            true => format!(
                " itemscope itemtype=\"https://schema.org/{}\"",
                vertical.schema
            ),
            false => String::new(),
        };
        html += &format!("<div id=main{scope}>");
        let (tag, property) = (self.heading, self.property_attribute(&self.shown[0]));
        let class = self.class_attribute(&self.shown[0].class);
        html += &format!("<div class=head><{tag}{class}{property}>{name}</{tag}></div>");
        let rest: Vec<(&Shown, &Vec<String>)> = self.shown.iter().zip(&thing.0).skip(1).collect();
        for (shown, values) in rest.iter().filter(|(shown, _)| shown.place != Place::Specs) {
            if !values.is_empty() {
                html += &self.format_separate_part(shown, values);
            }
        }
        html += &format!(
            "<p class=text>{} {}</p>",
            pick_one(SAYINGS, chance),
            pick_one(SAYINGS, chance)
        );
        if let Some(section) = self.section {
            html += &format!("<h3>{section}</h3>");
        }
        let specs: Vec<(&Shown, &Vec<String>)> = rest
            .into_iter()
            .filter(|(shown, _)| shown.place == Place::Specs)
            .collect();
        html += &self.format_specs(&specs);
        html += "</div>";
        html += &self.other_things_html(vertical, chance);
        html += &format!(
            "<div id=foot><p>&copy; 2026 {}. All rights reserved.</p><a href=/terms>Terms</a></div></body></html>",
            self.site
        );
        (html, truth)
    }

    fn class_attribute(&self, class: &str) -> String {
        match self.names {
            Names::None => String::new(),
            _ => format!(" class=\"{class}\""),
        }
    }

    fn property_attribute(&self, shown: &Shown) -> String {
        match self.microdata && !shown.part.property.is_empty() {
            true => format!(" itemprop=\"{}\"", shown.part.property),
            false => String::new(),
        }
    }

    fn format_part(&self, shown: &Shown, values: &[String]) -> String {
        let property = self.property_attribute(shown);
        let several = matches!(shown.part.kind, Kind::SomeOf(_));
        let values: Vec<String> = values.iter().map(|value| escape_html(value)).collect();
        match several || matches!(shown.part.kind, Kind::Person) {
            true => {
                let linked = values.iter().map(|value| {
                    format!(
                        "<a href=\"/find?q={}\"{property}>{value}</a>",
                        value.replace(' ', "+")
                    )
                });
                linked.collect::<Vec<_>>().join(", ")
            }
            false if property.is_empty() => values.join(", "),
            false => format!("<span{property}>{}</span>", values.join(", ")),
        }
    }

    fn format_separate_part(&self, shown: &Shown, values: &[String]) -> String {
        let class = self.class_attribute(&shown.class);
        let value = self.format_part(shown, values);
        match shown.place {
            Place::Bare => format!("<div{class}>{value}</div>"),
            _ => format!("<p{class}><span>{}</span> {value}</p>", shown.label),
        }
    }

    fn format_specs(&self, specs: &[(&Shown, &Vec<String>)]) -> String {
        let mut html = String::new();
        let (open, close) = match self.block {
            Block::TableHeads | Block::TableCells => ("<table>", "</table>"),
            Block::Definitions => ("<dl>", "</dl>"),
            Block::BoldItems => ("<ul>", "</ul>"),
            Block::Pairs | Block::Lines | Block::Breaks => ("<div>", "</div>"),
            Block::Columns => {
                let heads = specs
                    .iter()
                    .map(|(shown, _)| format!("<th>{}</th>", shown.label));
                let cells = specs
                    .iter()
                    .map(|(shown, values)| format!("<td>{}</td>", self.format_part(shown, values)));
                return format!(
                    "<table><tr>{}</tr><tr>{}</tr></table>",
                    heads.collect::<String>(),
                    cells.collect::<String>()
                );
            }
        };
        html += open;
        for (shown, values) in specs.iter().filter(|(_, values)| !values.is_empty()) {
            let (label, value) = (&shown.label, self.format_part(shown, values));
            let class = self.class_attribute(&shown.class);
            html += &match self.block {
                Block::TableHeads => format!("<tr><th>{label}</th><td{class}>{value}</td></tr>"),
                Block::TableCells => format!("<tr><td>{label}</td><td{class}>{value}</td></tr>"),
                Block::Definitions => format!("<dt>{label}</dt><dd{class}>{value}</dd>"),
                Block::BoldItems => format!("<li{class}><b>{label}</b> {value}</li>"),
                Block::Pairs => format!(
                    "<div class=pair><span class=l>{label}</span><span{class}>{value}</span></div>"
                ),
                Block::Lines => format!("<p{class}>{} {value}</p>", add_colon(label)),
                Block::Breaks | Block::Columns => {
                    format!("<strong>{}</strong> {value}<br>", add_colon(label))
                }
            };
        }
        html + close
    }

    fn linked_data(&self, vertical: &Vertical, thing: &Thing) -> String {
        let mut data = Map::new();
        data.insert("@context".into(), "https://schema.org".into());
        data.insert("@type".into(), vertical.schema.into());
        for (shown, values) in self.shown.iter().zip(&thing.0) {
            let property = shown.part.property;
            if property.is_empty() || values.is_empty() {
                continue;
            }
            let value: Value = match (shown.part.kind, values.as_slice()) {
                (Kind::Person, [name]) if property != "name" => {
                    json!({"@type": "Person", "name": name})
                }
                (_, [value]) => json!(value),
                (_, values) => json!(values),
            };
            data.insert(property.to_owned(), value);
        }
        format!(
            "<script type=\"application/ld+json\">{}</script>",
            Value::Object(data)
        )
    }

    /// Misleading content: other things of the same kind, and reviews.
    fn other_things_html(&self, vertical: &Vertical, chance: &mut Rng) -> String {
        let mut html = String::new();
        if self.related > 0 {
            html += "<div class=related><h3>You may also like</h3><ul>";
            for _ in 0..self.related {
                let parts = self
                    .shown
                    .iter()
                    .filter(|shown| !shown.part.column.is_empty());
                let some: Vec<String> = parts
                    .take(3)
                    .map(|shown| {
                        let class = self.class_attribute(&shown.class);
                        format!(
                            "<span{class}>{}</span>",
                            escape_html(&self.draw_value(shown.part.kind, chance).join(", "))
                        )
                    })
                    .collect();
                html += &format!("<li>{}</li>", some.join(" "));
            }
            html += "</ul></div>";
        }
        if self.reviews > 0 {
            html += "<div class=reviews><h3>Reviews</h3>";
            for _ in 0..self.reviews {
                html += &format!(
                    "<div class=review><b>{}</b> <i>{}</i><p>{}</p></div>",
                    escape_html(&self.draw_value(Kind::Person, chance)[0]),
                    self.draw_value(Kind::Day, chance)[0],
                    pick_one(SAYINGS, chance)
                );
            }
            html += "</div>";
        }
        let _ = vertical;
        html
    }
}

fn add_colon(label: &str) -> String {
    format!("{}:", label.trim_end_matches(':'))
}

fn words_of(label: &str) -> Vec<String> {
    let words = label.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
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

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}
