//! Tests dates on sites in ten languages. Records give dates in ISO 8601; pages write them as their readers do. All
//! dates must be learned, and the date of every page must be read. Ambiguous dates must not be read wrongly.

use serde_json::Value;
use webfill_learn::{Learned, Page, learn};

use crate::made::{page, read, task};

/// Languages: the code, the form of dates with `D`, `M` and `Y` for day, month and year, and the names of the months in
/// dates.
const LANGUAGES: &[(&str, &str, &str)] = &[
    (
        "en",
        "M D, Y",
        "January February March April May June July August September October November December",
    ),
    (
        "de",
        "D. M Y",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    ),
    (
        "fr",
        "D M Y",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    ),
    (
        "es",
        "D de M de Y",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    ),
    (
        "it",
        "D M Y",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    ),
    (
        "pt",
        "D de M de Y",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ),
    (
        "nl",
        "D M Y",
        "januari februari maart april mei juni juli augustus september oktober november december",
    ),
    (
        "pl",
        "D M Y r.",
        "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    ),
    ("ja", "Y年M月D日", "1 2 3 4 5 6 7 8 9 10 11 12"),
    ("zh", "Y年M月D日", "1 2 3 4 5 6 7 8 9 10 11 12"),
];

/// The layouts of pages: the name and the HTML, with `V` for the date and `N` for the number of the page.
const LAYOUTS: &[(&str, &str)] = &[
    (
        "a cell",
        "<table><tr><th>Item</th><td>No. N</td></tr><tr><th>Since</th><td>V</td></tr></table>",
    ),
    (
        "behind a label in one text",
        "<p class=meta>Since: V</p><p>Item N</p>",
    ),
    ("in a sentence", "<p class=meta>Ada, V (edition N)</p>"),
    ("with a time", "<h1>Item N</h1><p class=meta>V, 10:30</p>"),
];

/// Forms of dates with numbers only. Known values show the order of day and month.
const NUMERIC: &[&str] = &[
    "d.m.Y", "d/m/Y", "m/d/Y", "d-m-Y", "Y/m/d", "d.m.y", "m/d/y",
];

const PAGES: usize = 50;
const KNOWN: usize = 20;

fn day(number: usize) -> (usize, usize, usize) {
    (2015 + number % 9, 1 + number * 7 % 12, 1 + number * 11 % 28)
}

fn iso_date(number: usize) -> String {
    let (year, month, day) = day(number);
    format!("{year}-{month:02}-{day:02}")
}

fn write_date(form: &str, months: &[&str], number: usize) -> String {
    let (year, month, day) = day(number);
    let letter = |letter: char| match letter {
        'Y' => year.to_string(),
        'y' => format!("{:02}", year % 100),
        'M' => months[month - 1].to_owned(),
        'm' => format!("{month:02}"),
        'D' => day.to_string(),
        'd' => format!("{day:02}"),
        other => other.to_string(),
    };
    form.chars().map(letter).collect()
}

fn pages(layout: &str, text: impl Fn(usize) -> String) -> Vec<Page> {
    (0..PAGES)
        .map(|number| {
            let html = layout
                .replace('N', &(number + 40).to_string())
                .replace('V', &text(number));
            let iso = iso_date(number);
            let known: &[(&str, &[&str])] = match number < KNOWN {
                true => &[("field", &[&iso])],
                false => &[],
            };
            page(&format!("item/{}", 1000 + number), html, known)
        })
        .collect()
}

/// Learns from the pages. Returns how many known values were learned, and on how many pages the date is read correctly
/// and wrongly.
fn learn_and_count(pages: &[Page]) -> (usize, usize, usize, Learned) {
    let learned = learn(pages, &[], &task()).unwrap();
    let Some(one) = learned.mappings.first() else {
        return (0, 0, 0, learned);
    };
    let agree = one.fields.first().map_or(0, |field| field.agree.len());
    let (mut right, mut wrong) = (0, 0);
    for (number, page) in pages.iter().enumerate() {
        match read(&one.mapping, page).remove("field") {
            Some(Value::String(value)) if value == iso_date(number) => right += 1,
            Some(_) => wrong += 1,
            None => {}
        }
    }
    (agree, right, wrong, learned)
}

#[test]
fn dates_of_ten_languages_are_learned_and_fill_every_page() {
    let mut wrong = Vec::new();
    for (language, form, months) in LANGUAGES {
        let months: Vec<&str> = months.split(' ').collect();
        for (name, layout) in LAYOUTS {
            let (agree, right, _, learned) =
                learn_and_count(&pages(layout, |number| write_date(form, &months, number)));
            if (agree, right) != (KNOWN, PAGES) {
                let fields = learned.mappings.first().map(|one| &one.mapping["fields"]);
                wrong.push(format!(
                    "{language}, {name}: {agree} learned, {right} filled by {fields:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_order_of_dates_in_numbers_is_learned_from_known_values() {
    let mut wrong = Vec::new();
    for form in NUMERIC {
        for (name, layout) in &LAYOUTS[..3] {
            let (agree, right, _, learned) =
                learn_and_count(&pages(layout, |number| write_date(form, &[], number)));
            if (agree, right) != (KNOWN, PAGES) {
                let fields = learned.mappings.first().map(|one| &one.mapping["fields"]);
                wrong.push(format!(
                    "{form}, {name}: {agree} learned, {right} filled by {fields:?}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_order_that_no_known_value_shows_is_not_guessed() {
    // Day and month of each known date are the same number, so the order stays open.
    let same = |number: usize| 1 + number % 12;
    let pages: Vec<Page> = (0..10)
        .map(|number| {
            let html = format!(
                "<h1>Item {}</h1><dl><dt>Since</dt><dd>{2:02}/{1:02}/2020</dd></dl>",
                number + 40,
                same(number),
                if number < 6 { same(number) } else { 2 },
            );
            let iso = format!("2020-{0:02}-{0:02}", same(number));
            let known: &[(&str, &[&str])] = match number < 6 {
                true => &[("field", &[&iso])],
                false => &[],
            };
            page(&format!("item/{}", 1000 + number), html, known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let mapping = &learned.mappings[0].mapping;
    assert_eq!(read(mapping, &pages[3])["field"], "2020-04-04");
    assert_eq!(read(mapping, &pages[8]).get("field"), None, "{mapping:#}");
}

#[test]
fn pages_that_write_a_date_in_two_ways_give_one_form() {
    let months: Vec<&str> = LANGUAGES[1].2.split(' ').collect();
    let text = |number: usize| match number % 3 {
        0 => iso_date(number),
        _ => write_date("D. M Y", &months, number),
    };
    let (agree, right, wrong, learned) = learn_and_count(&pages(LAYOUTS[0].1, text));
    assert_eq!((agree, right, wrong), (KNOWN, PAGES, 0), "{learned:?}");
}
