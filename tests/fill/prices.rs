//! Tests prices whose pages show them as people print them: with raised cents, beside a struck-out old price, and with
//! marks of notes.

use super::odd_pages::{fill_from_pages, thing_html, unique_number};

fn whole(thing: usize) -> usize {
    5 + unique_number(thing) % 900
}

fn cents(thing: usize) -> usize {
    thing * 7 % 89 + 11
}

fn price(thing: usize) -> String {
    format!("{}.{}", whole(thing), cents(thing))
}

fn old_price(thing: usize) -> String {
    format!(
        "${}.{}",
        whole(thing) + 20 + thing % 30,
        thing * 3 % 90 + 10
    )
}

fn assert_filled(name: &str, known: fn(usize) -> String, cell: fn(usize) -> String) {
    let serve = move |thing| thing_html(thing, &cell(thing)).into_bytes();
    fill_from_pages(known, serve).assert_filled(name, known);
}

#[test]
fn raised_cents_are_the_cents_of_their_price() {
    assert_filled("beside a currency", price, |thing| {
        format!("<b>$</b>{}<sup>{}</sup>", whole(thing), cents(thing))
    });
    assert_filled("before a currency", price, |thing| {
        format!("{}<sup>{}</sup> \u{20ac}", whole(thing), cents(thing))
    });
    assert_filled("by their class", price, |thing| {
        format!(
            "${}<span class=\"price-cents\">{}</span>",
            whole(thing),
            cents(thing)
        )
    });
    assert_filled("on some pages", price, |thing| match thing % 2 {
        0 => format!("${}<sup>{}</sup>", whole(thing), cents(thing)),
        _ => format!("${}", price(thing)),
    });
    let with_comma = |thing| price(thing).replace('.', ",");
    assert_filled("with a comma", with_comma, |thing| {
        format!("{}<sup>{}</sup> \u{20ac}", whole(thing), cents(thing))
    });
}

#[test]
fn a_struck_out_price_is_not_the_price() {
    assert_filled("before", price, |thing| match thing % 4 {
        3 => format!("${}", price(thing)),
        _ => format!("<del>{}</del> ${}", old_price(thing), price(thing)),
    });
    assert_filled("behind", price, |thing| match thing % 4 {
        3 => format!("${}", price(thing)),
        _ => format!("${} <s>{}</s>", price(thing), old_price(thing)),
    });
    assert_filled("by style", price, |thing| match thing % 4 {
        3 => format!("${}", price(thing)),
        _ => format!(
            "${} <span style=\"text-decoration: line-through\">{}</span>",
            price(thing),
            old_price(thing)
        ),
    });
    // A table of old prices gets these.
    let known = |thing| match thing % 4 {
        3 => String::new(),
        _ => old_price(thing)[1..].to_owned(),
    };
    assert_filled("old prices", known, |thing| match thing % 4 {
        3 => format!("${}", price(thing)),
        _ => format!("<del>{}</del> ${}", old_price(thing), price(thing)),
    });
}

#[test]
fn the_mark_of_a_note_is_no_part_of_a_number() {
    let known = |thing: usize| (unique_number(thing) + 1_000).to_string();
    assert_filled("notes", known, |thing| {
        let number = unique_number(thing) + 1_000;
        let number = format!("{},{:03}", number / 1_000, number % 1_000);
        match thing % 2 {
            0 => format!(
                "{number}<sup><a href=\"#fn{thing}\">{}</a></sup>",
                thing % 9 + 1
            ),
            _ => number,
        }
    });
}
