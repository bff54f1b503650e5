//! The parts of a generated page that surround its values.

use super::thing::{Thing, escape_html};

/// The HTML of a whole page with this head and body, in a frame of navigation, banner and cards about other things.
pub fn wrap_in_page(thing: &Thing, head: &str, body: &str) -> String {
    let mut thing = Thing::new("frame", thing.number);
    let banner = match thing.draw_bool(40) {
        true => "<div class=\"banner\"><p>We use cookies</p><button>Accept</button></div>",
        false => "",
    };
    format!(
        "<!DOCTYPE html><html><head><meta charset=utf-8>{head}</head><body>{banner}\
         <header><a href=\"/\">Home</a><nav><ul><li><a href=\"/all\">All things</a></li>\
         <li><a href=\"/new\">New</a></li><li><a href=\"/about\">About us</a></li></ul></nav></header>\
         <main>{body}</main>{}\
         <footer><p>Questions? Call +49 800 555 1234</p><p>© 2024 Made Things</p></footer></body></html>",
        other_thing_cards(&thing)
    )
}

/// Cards about other things. Their values are of the same kinds as those of the page, so they mislead.
fn other_thing_cards(thing: &Thing) -> String {
    let cards = (0..3).map(|by| {
        let other = thing.other_thing(by);
        format!(
            "<li class=\"card\"><a href=\"/thing/{}\"><h3>{}</h3></a><span class=\"price\">{}</span>\
             <span class=\"maker\">{}</span></li>",
            other.slug(),
            escape_html(&other.name),
            other.english_price(),
            escape_html(&other.maker)
        )
    });
    format!(
        "<aside><h2>Others also looked at</h2><ul>{}</ul></aside>",
        cards.collect::<String>()
    )
}

/// The HTML of list items: each value between the texts `before` and `after`.
pub fn list_items(values: &[String], before: &str, after: &str) -> String {
    values
        .iter()
        .map(|value| format!("{before}{}{after}", escape_html(value)))
        .collect()
}

/// A sentence that differs from page to page. It contains values of other things.
pub fn misleading_sentence(thing: &Thing) -> String {
    let other = thing.other_thing(9);
    format!(
        "<p>A {} that was made to last. Like the {} of {}, it is built by hand, and costs less than {}.</p>",
        thing
            .name
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_lowercase(),
        escape_html(&other.name),
        escape_html(&other.maker),
        other.english_price()
    )
}
