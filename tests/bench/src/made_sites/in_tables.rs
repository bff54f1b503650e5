//! Layouts with values in tables, description lists, cards and lists.

use super::frame::{list_items, misleading_sentence, wrap_in_page};
use super::thing::{Thing, escape_html, nonempty_values};
use crate::sites::Values;

/// A table with a label and a value in each row. The order of rows varies, and some are missing.
pub fn format_as_rows(thing: &mut Thing) -> (String, Values) {
    let row = |label: &str, value: &str| {
        format!("<tr><th>{label}</th><td>{}</td></tr>", escape_html(value))
    };
    let colour = Some(thing.colour.clone()).filter(|_| thing.draw_bool(70));
    let mut rows = vec![
        row("Maker", &thing.maker),
        row("City", &thing.city),
        row("Price", &thing.english_price()),
        row("On sale since", &thing.english_date()),
    ];
    rows.extend(colour.iter().map(|colour| row("Colour", colour)));
    let rows = thing.shuffle_rows(rows);
    let body = format!(
        "<h1>{}</h1>{}<table class=\"specs\">{rows}</table>",
        escape_html(&thing.name),
        misleading_sentence(thing)
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("city", vec![thing.city.clone()]),
        ("price", vec![thing.english_price()]),
        ("date", vec![thing.plain_date()]),
        ("colour", colour.into_iter().collect()),
    ]);
    (
        wrap_in_page(
            thing,
            &format!("<title>{}</title>", escape_html(&thing.name)),
            &body,
        ),
        known,
    )
}

/// A table with the labels in its first row and the values in its second.
pub fn format_as_columns(thing: &mut Thing) -> (String, Values) {
    let body = format!(
        "<h1>Product data</h1><h2>{}</h2><table border=1><thead><tr><td>Maker</td><td>Colour</td><td>Made in</td>\
         <td>Price</td></tr></thead><tbody><tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr></tbody></table>\
         <table border=1><thead><tr><td>Person</td><td>Since</td></tr></thead><tbody>{}</tbody></table>",
        escape_html(&thing.name),
        escape_html(&thing.maker),
        thing.colour,
        thing.city,
        thing.english_price(),
        thing
            .people
            .iter()
            .map(|person| format!(
                "<tr><td>{}</td><td>{}</td></tr>",
                escape_html(person),
                thing.date.0
            ))
            .collect::<String>(),
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("colour", vec![thing.colour.clone()]),
        ("city", vec![thing.city.clone()]),
        ("price", vec![thing.english_price()]),
        ("people", thing.people.clone()),
    ]);
    (
        wrap_in_page(thing, "<title>Product data</title>", &body),
        known,
    )
}

/// A German description list. A label may have several values. Numbers and dates are in German notation; records have
/// them in plain form.
pub fn format_as_definitions(thing: &mut Thing) -> (String, Values) {
    let row = |label: &str, value: &str| format!("<dt>{label}</dt><dd>{}</dd>", escape_html(value));
    let rows = vec![
        row("Hersteller:", &thing.maker),
        row("Ort:", &thing.city),
        row("Preis:", &thing.german_price()),
        row("Erschienen:", &thing.german_date()),
        format!(
            "<dt>Schlagworte:</dt>{}",
            list_items(&thing.tags, "<dd>", "</dd>")
        ),
        row("Versand:", "3 bis 5 Tage"),
    ];
    let rows = thing.shuffle_rows(rows);
    let body = format!(
        "<h1 class=\"titel\">{}</h1><dl class=\"daten\">{rows}</dl>{}",
        escape_html(&thing.name),
        misleading_sentence(thing)
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("maker", vec![thing.maker.clone()]),
        ("city", vec![thing.city.clone()]),
        ("price", vec![thing.plain_price()]),
        ("date", vec![thing.plain_date()]),
        ("tags", thing.tags.clone()),
    ]);
    (
        wrap_in_page(
            thing,
            &format!("<title>{} – Katalog</title>", escape_html(&thing.name)),
            &body,
        ),
        known,
    )
}

/// Values on cards. The classes are utility classes: they describe the appearance of an element, not its meaning.
pub fn format_as_cards(thing: &mut Thing) -> (String, Values) {
    let card = |label: &str, value: &str| {
        format!(
            "<div class=\"p-4 rounded-lg shadow\"><div class=\"text-sm text-gray-500\">{label}</div>\
             <div class=\"mt-1 font-medium\">{}</div></div>",
            escape_html(value)
        )
    };
    let sale = match thing.draw_bool(30) {
        true => card("Was", &thing.other_thing(3).english_price()),
        false => String::new(),
    };
    let body = format!(
        "<div class=\"flex\"><div class=\"w-2/3\"><p class=\"text-2xl font-bold\">{}</p>{}{sale}{}{}</div>\
         <div class=\"w-1/3\">{}{}</div></div>",
        escape_html(&thing.name),
        misleading_sentence(thing),
        card("Price", &thing.english_price()),
        card("Maker", &thing.maker),
        card("Where", &thing.city),
        format_args!(
            "<div class=\"p-4\"><div class=\"text-sm text-gray-500\">People</div><div class=\"flex gap-2\">{}</div></div>",
            list_items(&thing.people, "<span class=\"rounded px-2\">", "</span>")
        ),
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("price", vec![thing.english_price()]),
        ("maker", vec![thing.maker.clone()]),
        ("city", vec![thing.city.clone()]),
        ("people", thing.people.clone()),
    ]);
    (wrap_in_page(thing, "<title>Things</title>", &body), known)
}

/// Values in lists that are nested in the items of another list.
pub fn format_as_nested_lists(thing: &mut Thing) -> (String, Values) {
    let list = |label: &str, values: &[String]| {
        format!(
            "<li>{label}<ul>{}</ul></li>",
            list_items(values, "<li>", "</li>")
        )
    };
    let rows = vec![
        list("People", &thing.people),
        list("Topics", &thing.tags),
        list("Made by", std::slice::from_ref(&thing.maker)),
        list("Shops", &[thing.city.clone(), thing.other_thing(5).city]),
    ];
    let rows = thing.shuffle_rows(rows);
    let body = format!(
        "<article><h2>{}</h2><ul class=\"tree\">{rows}</ul></article>",
        escape_html(&thing.name)
    );
    let known = nonempty_values([
        ("name", vec![thing.name.clone()]),
        ("people", thing.people.clone()),
        ("tags", thing.tags.clone()),
        ("maker", vec![thing.maker.clone()]),
    ]);
    (wrap_in_page(thing, "<title>Index</title>", &body), known)
}
