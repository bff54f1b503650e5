//! Writes prices, dates and telephone numbers in another form. The form is chosen once for the whole site, so all pages
//! write a value in the same way.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::choices::Choices;
use super::tree::{Tree, normalise_spaces};
use crate::MONTHS;

static PRICE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\$\s?(\d{1,3}(?:,\d{3})*)(\.\d\d)?$").expect("the expression is valid")
});
static PHONE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\(?(\d{3})\)?[-/. ]\s?(\d{3})[-. ](\d{4})$").expect("the expression is valid")
});
static DATE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^([A-Z][a-z]+) (\d{1,2}), (\d{4})$").expect("the expression is valid")
});

pub(super) fn rewrite_formats(tree: &mut Tree, choices: &Choices) {
    for node in tree.visible_texts() {
        let Some(text) = tree.text(node) else {
            continue;
        };
        let old = normalise_spaces(text);
        let new = rewrite_text(&old, choices);
        if new != old {
            tree.set_text(node, new);
        }
    }
}

/// Rewrites all prices, dates and telephone numbers in a text in the form of the new layout.
pub(super) fn rewrite_text(text: &str, choices: &Choices) -> String {
    let price = |found: &Captures<'_>| format_price(found, choices);
    let phone = |found: &Captures<'_>| format_phone(found, choices);
    let date = |found: &Captures<'_>| format_date(found, choices);
    let text = PRICE.replace(text, price);
    let text = PHONE.replace(&text, phone);
    DATE.replace(&text, date).into_owned()
}

fn format_price(found: &Captures<'_>, choices: &Choices) -> String {
    let cents = found.get(2).map_or(".00", |cents| cents.as_str());
    let digits = found[1].replace(',', "");
    match choices.number("prices") % 4 {
        0 => format!("${}{cents}", &found[1]),
        1 => format!("USD {}{cents}", &found[1]),
        2 => format!("{digits}{cents} $"),
        _ => found[0].to_owned(),
    }
}

fn format_phone(found: &Captures<'_>, choices: &Choices) -> String {
    let (area, exchange, line) = (&found[1], &found[2], &found[3]);
    match choices.number("phones") % 4 {
        0 => format!("({area}) {exchange}-{line}"),
        1 => format!("{area}.{exchange}.{line}"),
        2 => format!("+1 {area} {exchange} {line}"),
        _ => found[0].to_owned(),
    }
}

fn format_date(found: &Captures<'_>, choices: &Choices) -> String {
    let Some(month) = MONTHS.iter().position(|month| *month == &found[1]) else {
        return found[0].to_owned();
    };
    let (day, year) = (&found[2], &found[3]);
    match choices.number("dates") % 4 {
        0 => format!("{year}-{:02}-{day:0>2}", month + 1),
        1 => format!("{day} {} {year}", &found[1]),
        2 => format!("{} {day}, {year}", &found[1][..3]),
        _ => found[0].to_owned(),
    }
}
