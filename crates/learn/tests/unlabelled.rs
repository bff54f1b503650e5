//! Tests that pages without known values can be evidence against a chain: by truncated copies, by missing anchors, or
//! by values that a filter rejects.

use serde_json::Value;
use webfill_learn::{Learned, Page, learn};

use crate::made::{page, read, task};

const PAGES: usize = 40;
const KNOWN: usize = 6;

/// Generates pages. `html` gives the content of a page, and `truth` its true value, which is known only for the first
/// pages.
fn pages(html: impl Fn(usize) -> String, truth: impl Fn(usize) -> String) -> Vec<Page> {
    (0..PAGES)
        .map(|number| {
            let value = truth(number);
            let known: &[(&str, &[&str])] = match number < KNOWN {
                true => &[("field", &[&value])],
                false => &[],
            };
            page(&format!("item/{}", 1000 + number), html(number), known)
        })
        .collect()
}

/// Learns from the pages, and returns those whose value is read wrongly or not at all, each with the text that is read.
fn learn_and_find_misread(
    pages: &[Page],
    truth: impl Fn(usize) -> String,
) -> (Vec<String>, Learned) {
    let learned = learn(pages, &[], &task()).unwrap();
    let mapping = &learned.mappings[0].mapping;
    let misread = pages.iter().enumerate().filter_map(|(number, page)| {
        let value = read(mapping, page).remove("field");
        let is_right = value == Some(Value::from(truth(number)));
        (!is_right).then(|| format!("{number}: {value:?}"))
    });
    (misread.collect(), learned)
}

fn lamp_name(number: usize) -> String {
    match number < KNOWN {
        true => format!("Lamp {number}"),
        false => format!("Lamp {number} of brass and glass, with three arms"),
    }
}

#[test]
fn a_copy_that_is_cut_off_where_it_is_long_is_not_read() {
    for mark in ["...", "\u{2026}", " \u{2026}", " [...]"] {
        let cut = |number: usize| match lamp_name(number) {
            short if short.len() <= 20 => short,
            long => format!("{}{mark}", &long[..18]),
        };
        // The truncated copy is in the most stable place. The complete text is in a plain cell.
        let html = |number: usize| {
            format!(
                "<title>Shop</title><meta property=og:title content='{0}'><h1>{0}</h1>\
                 <table class=data><tr><td>{1}</td><td>No. {number}</td></tr></table>",
                cut(number),
                lamp_name(number)
            )
        };
        let (misread, learned) = learn_and_find_misread(&pages(html, lamp_name), lamp_name);
        assert!(misread.is_empty(), "{mark}: {misread:?} {learned:?}");
    }
}

#[test]
fn a_field_that_is_only_cut_off_elsewhere_is_not_read_there() {
    let cut = |number: usize| match number < KNOWN {
        true => lamp_name(number),
        false => format!("Lamp {number} of brass an..."),
    };
    let html =
        |number: usize| format!("<title>Shop</title><h1>{}</h1><p>{number}</p>", cut(number));
    let pages = pages(html, lamp_name);
    let learned = learn(&pages, &[], &task()).unwrap();
    let mapping = &learned.mappings[0].mapping;
    assert_eq!(read(mapping, &pages[2])["field"], lamp_name(2));
    assert_eq!(read(mapping, &pages[20]).get("field"), None, "{mapping:#}");
}

/// Nobody knows whether pages without the anchor have the field. So the chain reads nothing there, and its report gives
/// their number.
#[test]
fn an_anchor_that_stands_on_some_pages_only_reads_nothing_elsewhere_and_is_named() {
    let html = |number: usize| {
        // Only new pages have the label, and all pages with known values are new.
        let label = match number < KNOWN + 10 {
            true => "<div class=new><b>New:</b> <span>V</span></div>",
            false => "<div class=old><i></i> <span>V</span></div>",
        };
        let label = label.replace('V', &lamp_name(number));
        format!("<h1>Shop</h1><div class=head>{label}</div><p>No. {number}</p><p>End</p>")
    };
    let (misread, learned) = learn_and_find_misread(&pages(html, lamp_name), lamp_name);
    assert!(
        misread.iter().all(|one| one.ends_with("None")),
        "{misread:?}"
    );
    let why = &learned.mappings[0].fields[0].why;
    let reported = format!(
        "nothing is read on {} of {} other pages",
        misread.len(),
        PAGES - KNOWN
    );
    assert!(misread.is_empty() || why.ends_with(&reported), "{why}");
}

#[test]
fn no_filter_is_tighter_than_what_other_pages_show() {
    type Kind = (&'static str, fn(usize) -> String);
    let kinds: [Kind; 4] = [
        ("telephone numbers", |number| match number < KNOWN {
            true => format!("030 12345{number:02}"),
            false => format!("0341 9{number:03} - {}", number % 10),
        }),
        ("article numbers", |number| match number < KNOWN {
            true => format!("AB-10{number}"),
            false => format!("ABC-10{number}/{}", number % 7),
        }),
        ("mail addresses, and how else to write", |number| {
            match number < KNOWN {
                true => format!("ada{number}@a.example"),
                false if number % 3 == 0 => format!("by form no. {number}"),
                false => format!("ada{number}@b.example"),
            }
        }),
        ("prices", |number| match number < KNOWN {
            true => format!("{}.50", 10 + number),
            false => format!("1,{}.00", 100 + number),
        }),
    ];
    for (kind, value) in kinds {
        let html = |number: usize| {
            format!(
                "<h1>Item {number}</h1><dl><dt>Kind</dt><dd>thing {number}</dd><dt>Field</dt><dd>{}</dd></dl>",
                value(number)
            )
        };
        let (mut misread, learned) = learn_and_find_misread(&pages(html, value), value);
        // A text that is not a mail address may be dropped, because reading nothing is better than reading something
        // else.
        if kind.starts_with("mail") {
            misread.retain(|one| !one.ends_with("None"));
        }
        assert!(misread.is_empty(), "{kind}: {misread:?} {learned:?}");
    }
}

/// A text that ends in dots of a grammar, such as `[, ...]`, is complete. A chain that reads such texts is not
/// suspected of reading truncated copies.
#[test]
fn texts_that_end_in_the_dots_of_a_grammar_are_whole() {
    let synopsis = |number: usize| match number % 3 {
        0 => format!("DROP KIND{number} name [, ...]"),
        1 => format!("ALTER KIND{number} name ( option 'value' [, ... ] )"),
        _ => format!("kind{number} [option...]"),
    };
    // The known texts do not end in dots.
    let truth = |number: usize| match number < KNOWN {
        true => format!("SHOW KIND{number}"),
        false => synopsis(number),
    };
    let html = |number: usize| {
        format!(
            "<h1>KIND{number}</h1><pre class=synopsis>{}</pre><p>It does {number}.</p>",
            truth(number)
        )
    };
    let (misread, learned) = learn_and_find_misread(&pages(html, truth), truth);
    assert!(misread.is_empty(), "{misread:?} {learned:?}");
}

/// If only one record is known, a page that lacks the field's name is no evidence against the chain.
#[test]
fn one_known_record_suffices_for_a_named_field_that_many_pages_lack() {
    let colours = ["white", "olive", "dark blue", "red", "black"];
    let colour = |number: usize| colours[number % 5].to_owned() + &"!".repeat(number / 5);
    let has_it = |number: usize| number == 0 || number % 3 == 1;
    let pages: Vec<Page> = (0..12)
        .map(|number| {
            let mut rows = format!("<tr><th>Weight</th><td>{} kg</td></tr>", number + 3);
            if has_it(number) {
                rows += &format!("<tr><th>Colour</th><td>{}</td></tr>", colour(number));
            }
            rows += &format!("<tr><th>Maker</th><td>Maker {number}</td></tr>");
            let html = format!("<h1>Lamp {number}</h1><table>{rows}</table>");
            let value = colour(number);
            let known: &[(&str, &[&str])] = match number {
                0 => &[("field", &[&value])],
                _ => &[],
            };
            page(&format!("item/{number}"), html, known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let mapping = &learned.mappings[0];
    for (number, page) in pages.iter().enumerate() {
        let expected = has_it(number).then(|| Value::from(colour(number)));
        let value = read(&mapping.mapping, page).remove("field");
        assert_eq!(value, expected, "{number}: {:?}", mapping.fields);
    }
    assert!(mapping.draft, "one record makes a draft");
}

/// If the known values have one shape and a second chain reads each of them, this chain fills the pages without the
/// anchor of the first chain. On pages that have something else in its place, it reads nothing.
#[test]
fn pages_without_the_anchor_are_filled_by_a_second_chain_if_values_have_a_shape() {
    let mail = |number: usize| {
        format!(
            "{}{number}@{}.example",
            ["ada", "bob"][number % 2],
            ["a", "b", "c"][number % 3]
        )
    };
    let has_mail = |number: usize| number < KNOWN + 10 || !number.is_multiple_of(4);
    let html = |number: usize| {
        let value = match has_mail(number) {
            true => mail(number),
            false => format!("030 12345{number}"),
        };
        let contact = match number < KNOWN + 10 {
            true => format!("<dl><dt>Mail:</dt><dd><span class=contact>{value}</span></dd></dl>"),
            false => format!("<div class=box><p><span class=contact>{value}</span></p></div>"),
        };
        format!("<h1>Item {number}</h1><p>No. {number}</p>{contact}<p>End</p>")
    };
    let (misread, learned) = learn_and_find_misread(&pages(html, mail), mail);
    let expected: Vec<String> = (0..PAGES)
        .filter(|&number| !has_mail(number))
        .map(|number| format!("{number}: None"))
        .collect();
    assert_eq!(misread, expected, "{:?}", learned.mappings[0].fields);
    let why = &learned.mappings[0].fields[0].why;
    assert!(!why.contains("nothing is read"), "{why}");
}
