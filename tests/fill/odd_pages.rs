//! Tests pages that are odd in ordinary ways: something else is in the place of a value, or the value is written
//! differently. A missing value is better than a wrong one.

use webfill_tests::run::Run;
use webfill_tests::site::{Page, Reply, Web, page, status};
use webfill_tests::workplace::Workplace;

use super::made_web::{read_rows, true_values};

const THINGS: usize = 36;

/// Whether the row of a thing lacks its value. A third of the rows do.
fn is_gap(thing: usize) -> bool {
    thing % 3 == 1
}

/// Whether the page of a thing is odd (does not simply show the value). Half of the rows with gaps have such pages.
fn is_odd(thing: usize) -> bool {
    thing % 6 == 1
}

/// A number for each thing. All numbers are different, and they are in no order.
pub(super) fn unique_number(thing: usize) -> usize {
    10_000 + thing * 7_919 % 89_989
}

fn thing_name(thing: usize) -> String {
    format!("{} No. {thing}", true_values(thing)[1])
}

fn thing_title(thing: usize) -> String {
    format!("{} {}", true_values(thing)[0], unique_number(thing + 50))
}

pub(super) fn thing_html(thing: usize, value: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><title>Things</title></head><body><h1>{}</h1><table><tr><th>Kind</th><td>{}</td></tr>\
         <tr><th>Value</th><td>{value}</td></tr><tr><th>Seen</th><td>{}</td></tr></table></body></html>",
        thing_title(thing),
        true_values(thing)[3].replace('&', "&amp;"),
        true_values(thing)[2],
    )
}

/// The results of a run: the values that were filled into gaps, with their row numbers, and the lines of the file of
/// doubts.
pub(super) struct Filled {
    values: Vec<(usize, String)>,
    doubts: Vec<Vec<String>>,
}

/// Fills a table with one column. `known` returns the values of the column, and `serve` returns the bytes of the pages.
pub(super) fn fill_from_pages(
    known: impl Fn(usize) -> String,
    serve: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
) -> Filled {
    let (work, web) = (Workplace::new(), Web::start());
    web.site("things.example")
        .serve_otherwise(move |request| -> Reply {
            let thing = request.path.strip_prefix("/thing/");
            let Some(thing) = thing.and_then(|thing| thing.parse().ok()) else {
                return page("Nothing here").status(404).into();
            };
            let page: Page = status(200)
                .header("content-type", "text/html")
                .body(serve(thing));
            page.into()
        });
    let mut text = String::from("id;link;title;value\n");
    for thing in 0..THINGS {
        let known = if is_gap(thing) {
            String::new()
        } else {
            known(thing)
        };
        let title = thing_title(thing);
        text += &format!("t{thing};http://things.example/thing/{thing};{title};{known}\n");
    }
    work.write("things.csv", text);
    Run::new(["fill", "things.csv", "--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
    let written = std::fs::read_to_string(work.path("things.filled.csv")).unwrap();
    let written = written.lines().skip(1).enumerate();
    let values = written.filter(|(thing, _)| is_gap(*thing));
    let values = values.map(|(thing, line)| (thing, line.split(';').nth(3).unwrap().to_owned()));
    Filled {
        values: values.collect(),
        doubts: read_rows(&work, "things.doubts.csv"),
    }
}

impl Filled {
    /// Checks that every gap was filled with the expected value of its row, and that there are no doubts.
    pub(super) fn assert_filled(&self, case: &str, expected: impl Fn(usize) -> String) {
        for (thing, value) in &self.values {
            assert_eq!(*value, expected(*thing), "{case}: thing {thing}");
        }
        assert!(self.doubts.is_empty(), "{case}: {:?}", self.doubts);
    }
}

#[test]
fn a_text_in_place_of_a_value_is_no_value() {
    for text in ["n/a", "&mdash;", "Please log in"] {
        let value = move |thing| match is_odd(thing) {
            true => text.to_owned(),
            false => thing_name(thing),
        };
        let filled = fill_from_pages(thing_name, move |thing| {
            thing_html(thing, &value(thing)).into_bytes()
        });
        filled.assert_filled(text, |thing| match is_odd(thing) {
            true => String::new(),
            false => thing_name(thing),
        });
    }
}

#[test]
fn the_value_of_something_else_on_the_page_is_not_that_of_the_row() {
    // Each page also shows two related things with their makers. An odd page lacks its own maker.
    let page = |thing| {
        let own = match is_odd(thing) {
            true => String::new(),
            false => format!("<dt>Maker</dt><dd>{}</dd>", thing_name(thing)),
        };
        let related = [thing + 40, thing + 80].map(|other| {
            format!(
                "<h3>{}</h3><dl><dt>Maker</dt><dd>{}</dd></dl>",
                thing_title(other),
                thing_name(other)
            )
        });
        let text = format!(
            "<html><body><h1>{}</h1><dl><dt>Kind</dt><dd>thing</dd>{own}</dl>{}</body></html>",
            thing_title(thing),
            related.concat()
        );
        text.into_bytes()
    };
    fill_from_pages(thing_name, page).assert_filled("related", |thing| match is_odd(thing) {
        true => String::new(),
        false => thing_name(thing),
    });
}

/// The maker of a thing. Only few different makers exist.
fn true_maker(thing: usize) -> String {
    true_values(thing)[3].clone()
}

/// The content of a page that shows the maker of its thing in a row of a table. An odd page has no such row. Then
/// follows `others`, which is about other things.
fn page_with_maker_row(thing: usize, others: &str) -> String {
    let own = match is_odd(thing) {
        true => String::new(),
        false => row_of_maker(thing),
    };
    format!(
        "<h1>{}</h1><table><tr><th>Kind</th><td>thing</td></tr>{own}</table>{others}",
        thing_title(thing)
    )
}

fn row_of_maker(thing: usize) -> String {
    format!(
        "<tr><th>Maker</th><td>{}</td></tr>",
        true_maker(thing).replace('&', "&amp;")
    )
}

fn other_thing_card(thing: usize) -> String {
    format!(
        "<h3>{}</h3><table>{}</table>",
        thing_title(thing),
        row_of_maker(thing)
    )
}

fn product_json(thing: usize, has_maker: bool) -> String {
    let maker = match has_maker {
        true => format!(r#""maker":"{}","#, true_maker(thing)),
        false => String::new(),
    };
    format!(
        r#"{{"@type":"Product",{maker}"name":"{}"}}"#,
        thing_title(thing)
    )
}

/// The name of a layout, and a function that makes the page of a thing in this layout.
type Layout = (&'static str, fn(usize) -> String);

/// Layouts where other things appear under the same label, even on pages that lack their own value.
const LAYOUTS: [Layout; 7] = [
    ("boxes of related things", |thing| {
        let others = [thing + 5, thing + 17]
            .map(|other| format!("<div class=related>{}</div>", other_thing_card(other)));
        page_with_maker_row(thing, &others.concat())
    }),
    ("a list behind a heading", |thing| {
        let others: String = (0..thing % 4)
            .map(|other| other_thing_card(thing + other * 5 + 3))
            .collect();
        page_with_maker_row(thing, &format!("<h2>You may also like</h2>{others}"))
    }),
    ("a box in place of the value", |thing| {
        let other = format!("<div class=instead>{}</div>", other_thing_card(thing + 5));
        page_with_maker_row(thing, if is_odd(thing) { &other } else { "" })
    }),
    ("things that were seen before", |thing| {
        let seen = |thing| {
            format!(
                "<li><span class=maker>{}</span></li>",
                true_maker(thing).replace('&', "&amp;")
            )
        };
        let own = match is_odd(thing) {
            true => String::new(),
            false => seen(thing).replace("li>", "p>"),
        };
        let others: String = (0..thing % 4)
            .map(|other| seen(thing + other * 5 + 3))
            .collect();
        format!(
            "<main><h1>{}</h1>{own}</main><aside><ul>{others}</ul></aside>",
            thing_title(thing)
        )
    }),
    ("linked data of related things", |thing| {
        let mut objects = vec![product_json(thing, !is_odd(thing))];
        objects.extend((0..1 + thing % 3).map(|other| product_json(thing + other * 5 + 3, true)));
        let objects = objects.join(",");
        format!(
            "<h1>{}</h1><script type='application/ld+json'>{{\"@graph\":[{objects}]}}</script>",
            thing_title(thing)
        )
    }),
    ("a script with several objects", |thing| {
        let own = product_json(thing, !is_odd(thing));
        let others = [
            product_json(thing + 5, true),
            product_json(thing + 17, true),
        ]
        .join(",");
        format!(
            "<h1>{}</h1><script>var item = {own}; var related = [{others}];</script>",
            thing_title(thing)
        )
    }),
    ("breadcrumbs", |thing| {
        let own = match is_odd(thing) {
            true => String::new(),
            false => format!(
                "<li><a href=/m>{}</a></li>",
                true_maker(thing).replace('&', "&amp;")
            ),
        };
        format!(
            "<ul><li><a href=/>Home</a></li>{own}<li><a href=/t>Things</a></li></ul><h1>{}</h1>",
            thing_title(thing)
        )
    }),
];

#[test]
fn a_page_without_its_value_has_none_of_another_thing_in_a_column_of_few_values() {
    for (name, layout) in LAYOUTS {
        let page = move |thing| format!("<html><body>{}</body></html>", layout(thing)).into_bytes();
        fill_from_pages(true_maker, page).assert_filled(name, |thing| match is_odd(thing) {
            true => String::new(),
            false => true_maker(thing),
        });
    }
}

#[test]
fn a_list_that_is_not_all_on_its_page_is_not_filled() {
    let names = |thing: usize| -> Vec<String> {
        let all = 2 + usize::from(thing.is_multiple_of(3)) + usize::from(is_odd(thing)) * 2;
        (0..all)
            .map(|other| true_values(thing + other)[1].clone())
            .collect()
    };
    let page = move |thing: usize| {
        let mut items = names(thing);
        if items.len() > 3 {
            items.truncate(3);
            items.push(String::from("more\u{2026}"));
        }
        let items: String = items
            .iter()
            .map(|item| format!("<li>{item}</li>"))
            .collect();
        thing_html(thing, &format!("<ul>{items}</ul>")).into_bytes()
    };
    fill_from_pages(move |thing| names(thing).join(" | "), page).assert_filled("more", |thing| {
        match is_odd(thing) {
            true => String::new(),
            false => names(thing).join(" | "),
        }
    });
}

#[test]
fn letters_and_times_of_day_are_written_as_their_column_has_them() {
    let words = |thing: usize| {
        format!(
            "{} {}",
            true_values(thing)[1],
            ["Street", "Road", "Lane"][thing % 3]
        )
    };
    let capitals = move |thing: usize| thing_html(thing, &words(thing).to_uppercase()).into_bytes();
    fill_from_pages(words, capitals).assert_filled("capitals", words);
    // The pages are in capitals, so it is unknown which letters of these names are capitals. The gaps must stay open.
    let mixed = |thing: usize| {
        format!(
            "The {} of Mc{}",
            true_values(thing)[1],
            true_values(thing + 3)[1]
        )
    };
    let capitals = move |thing: usize| thing_html(thing, &mixed(thing).to_uppercase()).into_bytes();
    fill_from_pages(mixed, capitals).assert_filled("mixed", |_| String::new());
    let minutes = |thing: usize| (thing * 7 % 24, thing * 11 % 60);
    let long = move |thing: usize| format!("{:02}:{:02}", minutes(thing).0, minutes(thing).1);
    let short = move |thing: usize| {
        let (hour, minute) = minutes(thing);
        let half = if hour < 12 { "am" } else { "pm" };
        format!("{}:{minute:02} {half}", (hour + 11) % 12 + 1)
    };
    fill_from_pages(long, move |thing| {
        thing_html(thing, &short(thing)).into_bytes()
    })
    .assert_filled("24 hours", long);
    fill_from_pages(short, move |thing| {
        thing_html(thing, &long(thing)).into_bytes()
    })
    .assert_filled("12 hours", short);
}

#[test]
fn apostrophes_separate_groups_of_digits() {
    let plain = |thing: usize| (unique_number(thing) * 97).to_string();
    let grouped = move |thing: usize| {
        let digits = plain(thing);
        let (front, last) = digits.split_at(digits.len() - 3);
        let (first, middle) = front.split_at(front.len().saturating_sub(3));
        let groups = [first, middle, last]
            .into_iter()
            .filter(|group| !group.is_empty());
        groups.collect::<Vec<_>>().join("'")
    };
    let page = move |thing: usize| thing_html(thing, &grouped(thing)).into_bytes();
    fill_from_pages(plain, page).assert_filled("apostrophes", plain);
}

#[test]
fn one_page_under_many_urls_belongs_to_no_row() {
    let page = |thing| match thing % 4 {
        0 => thing_html(7, "Someone Else")
            .replace("<h1>", "<h1>Are you human? ")
            .into_bytes(),
        _ => thing_html(thing, &thing_name(thing)).into_bytes(),
    };
    fill_from_pages(thing_name, page).assert_filled("same", |thing| match thing % 4 {
        0 => String::new(),
        _ => thing_name(thing),
    });
}

#[test]
fn a_number_that_a_page_writes_without_sign_or_zeros_is_not_filled() {
    let signed = |thing: usize| match thing % 4 < 2 {
        true => format!("-{}", unique_number(thing)),
        false => unique_number(thing).to_string(),
    };
    let page = move |thing: usize| match thing % 4 < 2 {
        true => format!("({})", unique_number(thing)),
        false => unique_number(thing).to_string(),
    };
    let padded = |thing: usize| match thing.is_multiple_of(2) {
        true => format!("00{}", unique_number(thing) % 10_000 + 10_000),
        false => format!("1{:06}", unique_number(thing)),
    };
    let bare = move |thing: usize| padded(thing).trim_start_matches('0').to_owned();
    let signs = fill_from_pages(signed, move |thing| {
        thing_html(thing, &page(thing)).into_bytes()
    });
    let zeros = fill_from_pages(padded, move |thing| {
        thing_html(thing, &bare(thing)).into_bytes()
    });
    for (filled, known) in [
        (signs, &signed as &dyn Fn(usize) -> String),
        (zeros, &padded),
    ] {
        for (thing, value) in &filled.values {
            assert!(
                value.is_empty() || *value == known(*thing),
                "{thing}: {value}"
            );
        }
        assert!(filled.doubts.is_empty(), "{:?}", filled.doubts);
    }
}

#[test]
fn numbers_and_times_are_written_as_their_column_has_them() {
    let cents = |thing: usize| format!("{},{}", unique_number(thing), thing % 9 + 11);
    let euros = move |thing: usize| format!("\u{20ac}{}.{}", unique_number(thing), thing % 9 + 11);
    let page = move |thing: usize| thing_html(thing, &euros(thing)).into_bytes();
    fill_from_pages(cents, page).assert_filled("decimal comma", cents);
    let utc = |thing: usize| {
        format!(
            "2020-{:02}-{:02}T{:02}:05:00Z",
            thing % 12 + 1,
            thing % 28 + 1,
            thing % 20
        )
    };
    let zoned = |thing: usize| {
        format!(
            "2020-{:02}-{:02}T{:02}:05:00+02:00",
            thing % 12 + 1,
            thing % 28 + 1,
            thing % 20 + 2
        )
    };
    let page = move |thing: usize| thing_html(thing, &zoned(thing)).into_bytes();
    fill_from_pages(utc, page).assert_filled("zone", utc);
}

#[test]
fn a_page_may_declare_another_encoding_than_it_has() {
    let known = |thing: usize| format!("B\u{f6}ll \u{20ac} {thing}");
    let declare = |text: String, charset: &str| {
        let declared = format!("<head><meta charset={charset}>");
        text.replace("<head>", &declared).into_bytes()
    };
    let page = move |thing: usize| declare(thing_html(thing, &known(thing)), "iso-8859-1");
    fill_from_pages(known, page).assert_filled("UTF-8 as ISO-8859-1", known);
    let known = |thing: usize| format!("B\u{f6}ll {thing}");
    let page = move |thing: usize| {
        let text = declare(thing_html(thing, &known(thing)), "utf-8");
        let text = String::from_utf8(text).unwrap();
        // Reads each byte as an ISO-8859-1 character.
        text.chars().map(|c| c as u8).collect()
    };
    fill_from_pages(known, page).assert_filled("ISO-8859-1 as UTF-8", known);
}

#[test]
fn a_list_of_which_the_first_few_are_shown_is_not_filled() {
    let names = |thing: usize| -> Vec<String> {
        let all = 1 + thing % 5;
        (0..all)
            .map(|other| true_values(thing + other)[1].clone())
            .collect()
    };
    let page = move |thing: usize| {
        let items = names(thing).into_iter().take(3);
        let items: String = items.map(|item| format!("<li>{item}</li>")).collect();
        thing_html(thing, &format!("<ul>{items}</ul>")).into_bytes()
    };
    let filled = fill_from_pages(move |thing| names(thing).join(" | "), page);
    for (thing, value) in &filled.values {
        assert!(
            value.is_empty() || *value == names(*thing).join(" | "),
            "{thing}: {value}"
        );
    }
}

#[test]
fn ticks_options_and_parsed_json_are_read() {
    let known = |thing: usize| (thing * 7 % 5 > 2).to_string();
    let sign = move |thing: usize| {
        if known(thing) == "true" {
            "\u{2713}"
        } else {
            "\u{2717}"
        }
    };
    fill_from_pages(known, move |thing| {
        thing_html(thing, sign(thing)).into_bytes()
    })
    .assert_filled("ticks", known);
    let options = ["Small", "Medium", "Large"];
    let known = move |thing: usize| options[thing * 7 % 5 % 3].to_owned();
    let page = move |thing: usize| {
        let option = |option: &str| match option == known(thing) {
            true => format!("<option selected>{option}</option>"),
            false => format!("<option>{option}</option>"),
        };
        thing_html(
            thing,
            &format!("<select>{}</select>", options.map(option).concat()),
        )
        .into_bytes()
    };
    fill_from_pages(known, page).assert_filled("options", known);
    let page = |thing: usize| {
        let json =
            serde_json::json!({"thing": {"title": thing_title(thing), "value": thing_name(thing)}})
                .to_string();
        let text = serde_json::Value::from(json).to_string();
        format!("<html><title>Things</title><div id=app></div><script>window.state = JSON.parse({text});</script>").into_bytes()
    };
    fill_from_pages(thing_name, page).assert_filled("JSON.parse", thing_name);
}

/// How the table writes the value of a thing, and how its page does.
type Writing = (&'static str, fn(usize) -> String, fn(usize) -> String);

/// Values that pages write with other marks, spaces and letters than the table does.
const WRITINGS: [Writing; 6] = [
    (
        "a space before a unit",
        |thing| format!("{} g", unique_number(thing)),
        |thing| {
            let (thousands, rest) = (unique_number(thing) / 1_000, unique_number(thing) % 1_000);
            format!("{thousands}&#8239;{rest:03}&nbsp;g")
        },
    ),
    (
        "no space before a unit",
        |thing| format!("{}g", 10 * unique_number(thing)),
        |thing| {
            format!(
                "{}.{:02} kg",
                unique_number(thing) / 100,
                unique_number(thing) % 100
            )
        },
    ),
    (
        "an apostrophe",
        |thing| format!("O'{}", thing_name(thing)),
        |thing| format!("O&rsquo;{}", thing_name(thing)),
    ),
    (
        "a letter with its accent apart",
        |thing| format!("Zo\u{eb} {}", thing_name(thing)),
        |thing| format!("Zoe&#776; {}", thing_name(thing)),
    ),
    (
        "a hyphen that the table lacks",
        |thing| format!("AB{}", unique_number(thing)),
        |thing| format!("AB-{}", unique_number(thing)),
    ),
    (
        "spaces around a slash",
        |thing| format!("{}/{}", thing_name(thing), thing_name(thing + 7)),
        |thing| format!("{} / {}", thing_name(thing), thing_name(thing + 7)),
    ),
];

#[test]
fn marks_spaces_and_accents_are_written_as_their_column_has_them() {
    for (case, known, written) in WRITINGS {
        let page = move |thing: usize| thing_html(thing, &written(thing)).into_bytes();
        fill_from_pages(known, page).assert_filled(case, known);
    }
}
