//! Layouts with values inside longer texts, or between other texts.

use super::frame::{misleading_sentence, wrap_in_page};
use super::thing::{Thing, escape_html, nonempty_values};
use crate::sites::Values;

/// Values that share one text with their label, such as `Maker: Smith`.
pub fn format_with_prefixes(thing: &mut Thing) -> (String, Values) {
    let row = |label: &str, value: &str| format!("<li>{label}: {}</li>", escape_html(value));
    let mut rows = vec![
        row("Maker", &thing.maker),
        row("Colour", &thing.colour),
        row("Price", &thing.english_price()),
        row("City", &thing.city),
    ];
    if thing.draw_bool(50) {
        rows.push(row("Note", "sold without batteries"));
    }
    let rows = thing.shuffle_rows(rows);
    let body = format!(
        "<h1>{}</h1><ul class=\"facts\">{rows}</ul>{}",
        escape_html(&thing.name),
        misleading_sentence(thing)
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("colour", vec![thing.colour.clone()]),
        ("price", vec![thing.english_price()]),
        ("city", vec![thing.city.clone()]),
    ]);
    (wrap_in_page(thing, "<title>Things</title>", &body), known)
}

/// Values inside sentences.
pub fn format_as_sentences(thing: &mut Thing) -> (String, Values) {
    let first = match thing.draw_bool(50) {
        true => "<p>Welcome to our museum.</p>",
        false => "",
    };
    let employs = thing.number * 13 % 900 + 12;
    let body = format!(
        "<h1>{} | Museum of Things</h1>{first}<p class=\"lead\">It was designed in {} by {} in {} and has a weight of \
         {employs} grams.</p>{}",
        escape_html(&thing.name),
        thing.date.0,
        escape_html(&thing.people[0]),
        thing.city,
        misleading_sentence(thing)
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("year", vec![thing.date.0.to_string()]),
        ("designer", vec![thing.people[0].clone()]),
        ("city", vec![thing.city.clone()]),
        ("grams", vec![employs.to_string()]),
    ]);
    (wrap_in_page(thing, "<title>Museum</title>", &body), known)
}

/// A German imprint: bold labels, and lines that end with `br`. Some lines are missing.
pub fn format_with_line_breaks(thing: &mut Thing) -> (String, Values) {
    let fax = match thing.draw_bool(50) {
        true => format!("<b>Fax:</b> {}<br>", thing.other_thing(2).phone),
        false => String::new(),
    };
    let street = format!("Hauptstraße {}", thing.number * 3 + 1);
    let body = format!(
        "<h3>Anbieter</h3><p>{}<br>{street}<br>{} {}<br><br>{fax}<b>Telefon:</b> {}<br><b>E-Mail:</b> \
         <a href=\"mailto:info@{}.example\">info@{}.example</a><br><b>Inhaber:</b> {}</p>",
        escape_html(&thing.maker),
        50_000 + thing.number * 17,
        thing.city,
        thing.phone,
        thing.slug(),
        thing.slug(),
        escape_html(&thing.people[0]),
    );
    let known = nonempty_values([
        ("maker", vec![thing.maker.clone()]),
        ("street", vec![street]),
        ("city", vec![thing.city.clone()]),
        ("phone", vec![thing.phone.replace([' ', '+'], "")]),
        ("mail", vec![format!("info@{}.example", thing.slug())]),
        ("owner", vec![thing.people[0].clone()]),
    ]);
    (
        wrap_in_page(thing, "<title>Impressum</title>", &body),
        known,
    )
}

/// Several values in one text, with separators between them.
pub fn format_with_separators(thing: &mut Thing) -> (String, Values) {
    let body = format!(
        "<h1>{}</h1><div class=\"byline\">by {}</div><div class=\"line\">{} | {} | {}</div>\
         <p class=\"tags\"><strong>Tags:</strong> {}</p>",
        escape_html(&thing.name),
        escape_html(&thing.people.join("; ")),
        escape_html(&thing.maker),
        thing.city,
        thing.date.0,
        thing.tags.join(", ")
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("people", thing.people.clone()),
        ("maker", vec![thing.maker.clone()]),
        ("city", vec![thing.city.clone()]),
        ("year", vec![thing.date.0.to_string()]),
        ("tags", thing.tags.clone()),
    ]);
    (wrap_in_page(thing, "<title>Things</title>", &body), known)
}

/// Labels in elements, each followed by its value as plain text.
pub fn format_with_spans(thing: &mut Thing) -> (String, Values) {
    let row = |label: &str, value: &str| {
        format!(
            "<p><span class=\"key\">{label}</span> {}</p>",
            escape_html(value)
        )
    };
    let mut rows = vec![
        row("Maker –", &thing.maker),
        row("Colour –", &thing.colour),
        row("Price –", &format!("{} incl. VAT", thing.english_price())),
    ];
    if thing.draw_bool(50) {
        rows.push(row("Hint –", "hand wash only"));
    }
    let rows = thing.shuffle_rows(rows);
    let body = format!(
        "<section id=\"thing\"><h1>Buy {} now</h1>{rows}</section>{}",
        escape_html(&thing.name),
        misleading_sentence(thing)
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("colour", vec![thing.colour.clone()]),
        ("price", vec![thing.plain_price()]),
    ]);
    (wrap_in_page(thing, "<title>Shop</title>", &body), known)
}

/// Dates with the month in German, and numbers with units.
pub fn format_with_long_date(thing: &mut Thing) -> (String, Values) {
    const MONTHS: [&str; 12] = [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ];
    let (year, month, day) = thing.date;
    let date = format!("{day}. {} {year}", MONTHS[month as usize - 1]);
    let weight = thing.number * 37 + 140;
    let body = format!(
        "<h1>{}</h1><div class=\"info\"><div><i>Veröffentlicht am</i><b>{date}</b></div><div><i>Gewicht</i>\
         <b>{weight} g</b></div><div><i>Preis</i><b>ab {}</b></div></div>",
        escape_html(&thing.name),
        thing.german_price(),
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("date", vec![date]),
        ("weight", vec![weight.to_string()]),
        ("price", vec![thing.plain_price()]),
    ]);
    (wrap_in_page(thing, "<title>Dinge</title>", &body), known)
}
