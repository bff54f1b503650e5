//! Rewords labels: "Price:" becomes "Our price" or "Cost". A label is a text that ends with a colon, or a word that
//! sites use as a label. It is reworded in the same way on all pages.

use super::choices::Choices;
use super::tree::{Tree, normalise_spaces};

/// The most characters of a label.
const LONGEST: usize = 40;

/// Groups of labels with the same meaning.
const SYNONYMS: &[&[&str]] = &[
    &[
        "price",
        "our price",
        "cost",
        "sale price",
        "list price",
        "msrp",
        "you pay",
    ],
    &["author", "by", "written by", "authors"],
    &["publisher", "published by", "imprint"],
    &[
        "publication date",
        "published",
        "release date",
        "date posted",
        "posted",
        "released",
    ],
    &["isbn-13", "isbn", "ean"],
    &["manufacturer", "brand", "make", "maker"],
    &[
        "model",
        "model number",
        "item model number",
        "part number",
        "mpn",
    ],
    &["company", "employer", "organisation", "organization"],
    &["location", "place", "where", "city"],
    &["phone", "telephone", "tel", "call", "phone number"],
    &["address", "street address", "find us"],
    &["website", "web site", "homepage", "url"],
    &["director", "directed by", "directors"],
    &["genre", "genres", "category", "categories"],
    &["cuisine", "food", "type of food", "cuisines"],
    &["height", "ht", "size"],
    &["weight", "wt"],
    &["team", "club", "plays for"],
    &["engine", "motor", "engine type"],
    &["fuel economy", "mileage", "mpg", "epa mileage estimates"],
    &["type", "kind", "sort"],
    &["description", "about", "overview", "details", "summary"],
    &["parameters", "options", "arguments"],
    &["examples", "example", "usage"],
    &["see also", "related", "more"],
    &["source code", "source", "code"],
    &["synopsis", "syntax", "signature"],
];

pub(super) fn reword_labels(tree: &mut Tree, choices: &Choices) {
    for node in tree.visible_texts() {
        let Some(text) = tree.text(node) else {
            continue;
        };
        if let Some(new) = reword_text(&normalise_spaces(text), choices) {
            let (before, after) = surrounding_spaces(text);
            let new = format!("{before}{new}{after}");
            tree.set_text(node, new);
        }
    }
}

/// The white space before and after a text.
fn surrounding_spaces(text: &str) -> (&str, &str) {
    let before = text.len() - text.trim_start().len();
    let after = text.trim_end().len().max(before);
    (&text[..before], &text[after..])
}

fn reword_text(text: &str, choices: &Choices) -> Option<String> {
    let words = text.trim_end_matches(':').trim();
    let has_colon = text.ends_with(':');
    let folded = words.to_lowercase();
    let synonyms = SYNONYMS.iter().find(|all| all.contains(&folded.as_str()));
    let is_label = has_colon || synonyms.is_some();
    if !is_label || words.is_empty() || text.chars().count() > LONGEST {
        return None;
    }
    let what = format!("label {folded}");
    let new = match (synonyms, choices.number(&what) % 10) {
        (_, 0..4) => words.to_owned(),
        (Some(&all), 4..8) => capitalise(choices.pick::<&str>(&what, all)),
        (Some(_), 8) => format!("Our {folded}"),
        (_, 4..7) => capitalise(&folded),
        _ => words.to_uppercase(),
    };
    // Whether labels end with a colon is chosen once for the whole site.
    let colon = match choices.number("colons") % 3 {
        0 => "",
        1 => ":",
        _ if has_colon => ":",
        _ => "",
    };
    Some(format!("{new}{colon}"))
}

fn capitalise(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}
