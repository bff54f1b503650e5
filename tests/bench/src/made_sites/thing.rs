//! The things that generated sites describe.

use std::hash::{Hash, Hasher};

use fastrand::Rng;
use siphasher::sip::SipHasher13;

use crate::MONTHS;
use crate::sites::Values;

/// A thing. It has more values than any layout shows.
pub struct Thing {
    pub number: usize,
    pub name: String,
    pub maker: String,
    pub city: String,
    pub colour: String,
    /// The price in hundredths of the currency.
    pub price: u32,
    /// The date: year, month and day.
    pub date: (u32, u32, u32),
    pub phone: String,
    pub people: Vec<String>,
    pub tags: Vec<String>,
    pub chance: Rng,
}

const FIRST: [&str; 14] = [
    "Ada", "Björn", "Chiara", "Dmitri", "Émile", "Fatima", "Grace", "Hedy", "Ines", "Jürgen",
    "Kurt", "Lise", "Mary", "Noor",
];
const LAST: [&str; 13] = [
    "Lovelace",
    "Hopper",
    "Noether",
    "Meitner",
    "Curie",
    "Okafor",
    "Müller",
    "Sørensen",
    "O'Neill",
    "Tanaka",
    "Weiß",
    "Franklin",
    "de la Cruz",
];
const NOUNS: [&str; 12] = [
    "Lamp", "Chair", "Kettle", "Clock", "Drill", "Tent", "Camera", "Piano", "Scale", "Bicycle",
    "Stove", "Radio",
];
const CITIES: [&str; 11] = [
    "Köln", "Bergamo", "Lyon", "Porto", "Graz", "Leeds", "Turku", "Brno", "Aarhus", "Ghent",
    "Basel",
];
const COLOURS: [&str; 7] = [
    "red",
    "dark blue",
    "white",
    "black",
    "olive",
    "sand",
    "silver",
];
const TAGS: [&str; 12] = [
    "kitchen", "garden", "travel", "office", "vintage", "wood", "steel", "children", "outdoor",
    "light", "music", "repair",
];

impl Thing {
    pub fn new(site: &str, number: usize) -> Thing {
        let mut hasher = SipHasher13::new();
        (site, number).hash(&mut hasher);
        let mut chance = Rng::with_seed(hasher.finish());
        let name = format!(
            "{} {}",
            pick(&mut chance, &NOUNS),
            100 + number * 7 + chance.usize(..7)
        );
        let person = |chance: &mut Rng| format!("{} {}", pick(chance, &FIRST), pick(chance, &LAST));
        let mut people: Vec<String> = (0..chance.usize(1..5))
            .map(|_| person(&mut chance))
            .collect();
        people.sort();
        people.dedup();
        chance.shuffle(&mut people);
        let mut tags = TAGS.to_vec();
        chance.shuffle(&mut tags);
        let count = chance.usize(2..5);
        Thing {
            number,
            name,
            maker: format!("{} & Sons", pick(&mut chance, &LAST)),
            city: pick(&mut chance, &CITIES).to_owned(),
            colour: pick(&mut chance, &COLOURS).to_owned(),
            price: chance.u32(900..250_000),
            date: (chance.u32(1990..2024), chance.u32(1..13), chance.u32(1..29)),
            phone: format!(
                "+49 {} {}",
                chance.u32(200..999),
                chance.u32(100_000..9_999_999)
            ),
            people,
            tags: tags[..count].iter().map(|tag| (*tag).to_owned()).collect(),
            chance,
        }
    }

    /// Another thing, whose values the page also shows.
    pub fn other_thing(&self, by: usize) -> Thing {
        Thing::new("other", self.number * 31 + by)
    }

    pub fn slug(&self) -> String {
        let plain = self.name.to_lowercase().replace(' ', "-");
        format!("{plain}-{}", self.number)
    }

    /// The price as a record contains it, such as `1234.50`.
    pub fn plain_price(&self) -> String {
        format!("{}.{:02}", self.price / 100, self.price % 100)
    }

    pub fn english_price(&self) -> String {
        let whole = self.price / 100;
        match whole {
            1_000.. => format!(
                "${},{:03}.{:02}",
                whole / 1_000,
                whole % 1_000,
                self.price % 100
            ),
            _ => format!("${whole}.{:02}", self.price % 100),
        }
    }

    pub fn german_price(&self) -> String {
        let whole = self.price / 100;
        match whole {
            1_000.. => format!(
                "{}.{:03},{:02} €",
                whole / 1_000,
                whole % 1_000,
                self.price % 100
            ),
            _ => format!("{whole},{:02} €", self.price % 100),
        }
    }

    /// The date as a record contains it, such as `2024-01-31`.
    pub fn plain_date(&self) -> String {
        let (year, month, day) = self.date;
        format!("{year}-{month:02}-{day:02}")
    }

    pub fn german_date(&self) -> String {
        let (year, month, day) = self.date;
        format!("{day:02}.{month:02}.{year}")
    }

    pub fn english_date(&self) -> String {
        let (year, month, day) = self.date;
        format!("{} {day}, {year}", MONTHS[month as usize - 1])
    }

    /// Returns true with this probability, in percent. Each call draws a new random number.
    pub fn draw_bool(&mut self, percent: u32) -> bool {
        self.chance.u32(..100) < percent
    }

    pub fn shuffle_rows(&mut self, mut rows: Vec<String>) -> String {
        self.chance.shuffle(&mut rows);
        rows.concat()
    }
}

fn pick<'t>(chance: &mut Rng, texts: &[&'t str]) -> &'t str {
    texts[chance.usize(..texts.len())]
}

/// The true values of a page, by field. Fields without values are left out.
pub fn nonempty_values<const N: usize>(known: [(&str, Vec<String>); N]) -> Values {
    let known = known.into_iter().filter(|(_, values)| !values.is_empty());
    known
        .map(|(field, values)| (field.to_owned(), values))
        .collect()
}

/// Escapes a text for HTML.
pub fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}
