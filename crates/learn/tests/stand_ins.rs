//! Tests pages that lack a value, where another value takes its place (a stand-in). No mapping is learned from such
//! pages, because pages with the most known values are preferred. A chain must read the page's own value, or nothing.

use webfill_learn::{Page, learn};

use crate::made::{page, read, task};

const FIELDS: [(&str, &str); 4] = [
    ("author", "Author"),
    ("translator", "Translator"),
    ("year", "Year"),
    ("pages", "Pages"),
];

const FIRST_NAMES: [&str; 7] = ["Ada", "Mary", "Grace", "Emmy", "Hedy", "Rosa", "Jane"];
const LAST_NAMES: [&str; 5] = ["Lovelace", "Shelley", "Hopper", "Noether", "Parks"];

/// The values of a book, in the order of `FIELDS`.
fn book_values(number: usize) -> [String; 4] {
    let name = |number: usize| format!("{} {}", FIRST_NAMES[number % 7], LAST_NAMES[number % 5]);
    [
        name(number * 3),
        name(number * 2 + 8),
        (1900 + number * 7 % 120).to_string(),
        (100 + number * 37 % 900).to_string(),
    ]
}

/// The values that a page shows; `None` for a value that it lacks.
type Shown = Vec<Option<String>>;

struct Layout {
    name: &'static str,
    /// Makes the page of the first book. The page may compare it with the two other books.
    html: fn(&[Shown; 3]) -> String,
}

fn format_fields(shown: &Shown, form: impl Fn(&str, Option<&str>) -> String) -> String {
    let fields = FIELDS.iter().zip(shown);
    fields
        .map(|((_, label), value)| form(label, value.as_deref()))
        .collect()
}

fn format_shown_fields(shown: &Shown, form: impl Fn(&str, &str) -> String) -> String {
    format_fields(shown, |label, value| {
        value.map_or_else(String::new, |value| form(label, value))
    })
}

const LAYOUTS: [Layout; 13] = [
    Layout {
        name: "a term without its definition",
        html: |books| {
            let of_field = |label: &str, value: Option<&str>| {
                let value = value.map(|value| format!("<dd>{value}</dd>"));
                format!("<dt>{label}</dt>{}", value.unwrap_or_default())
            };
            format!("<dl>{}</dl>", format_fields(&books[0], of_field))
        },
    },
    Layout {
        name: "a heading without its paragraph",
        html: |books| {
            format_fields(&books[0], |label, value| {
                let value = value.map(|value| format!("<p>{value}</p>"));
                format!("<h3>{label}</h3>{}", value.unwrap_or_default())
            })
        },
    },
    Layout {
        name: "a line with nothing after its label",
        html: |books| {
            let line = |label: &str, value: Option<&str>| {
                format!("<b>{label}:</b> {}<br>", value.unwrap_or_default())
            };
            format!("<div class=facts>{}</div>", format_fields(&books[0], line))
        },
    },
    Layout {
        name: "lines of text",
        html: |books| {
            let lines =
                format_shown_fields(&books[0], |label, value| format!("{label}: {value}<br>"));
            format!("<div class=facts>{lines}</div>")
        },
    },
    Layout {
        name: "a row that is missing",
        html: |books| {
            let rows = format_shown_fields(&books[0], |label, value| {
                format!("<tr><th>{label}</th><td>{value}</td></tr>")
            });
            format!("<table>{rows}</table>")
        },
    },
    Layout {
        name: "a comparison in which cells move up",
        html: |books| {
            let rows = FIELDS.iter().enumerate().map(|(at, (_, label))| {
                let cells = books.iter().filter_map(|book| book[at].as_ref());
                let cells: String = cells.map(|value| format!("<td>{value}</td>")).collect();
                format!("<tr><th>{label}</th>{cells}</tr>")
            });
            let rows: String = rows.collect();
            format!("<table><tr><th></th><td>This</td><td>B</td><td>C</td></tr>{rows}</table>")
        },
    },
    Layout {
        name: "a header with fewer cells below it",
        html: |books| {
            let header = format_fields(&books[0], |label, _| format!("<th>{label}</th>"));
            let cells = format_shown_fields(&books[0], |_, value| format!("<td>{value}</td>"));
            format!("<table><tr>{header}</tr><tr>{cells}</tr></table>")
        },
    },
    Layout {
        name: "a header with an empty cell below it",
        html: |books| {
            let header = format_fields(&books[0], |label, _| format!("<th>{label}</th>"));
            let cells = format_fields(&books[0], |_, value| {
                format!("<td>{}</td>", value.unwrap_or_default())
            });
            format!("<table><tr>{header}</tr><tr>{cells}</tr></table>")
        },
    },
    Layout {
        name: "items without labels",
        html: |books| {
            let items = format_shown_fields(&books[0], |_, value| format!("<li>{value}</li>"));
            format!("<ul class=facts>{items}</ul>")
        },
    },
    Layout {
        name: "spans of one class",
        html: |books| {
            let spans = format_shown_fields(&books[0], |_, value| {
                format!("<span class=m>{value}</span> ")
            });
            format!("<p>{spans}</p>")
        },
    },
    Layout {
        name: "texts between marks",
        html: |books| {
            let texts: Vec<&str> = books[0].iter().flatten().map(String::as_str).collect();
            format!("<p class=line>{}</p>", texts.join(" / "))
        },
    },
    Layout {
        name: "icons before texts",
        html: |books| {
            let texts = format_shown_fields(&books[0], |label, value| {
                format!(
                    "<i class='icon icon-{}'></i> {value} ",
                    label.to_lowercase()
                )
            });
            format!("<div class=facts>{texts}</div>")
        },
    },
    Layout {
        name: "equal labels below two headings",
        html: |books| {
            let row = |label: &str, value: &Option<String>| {
                let value = value
                    .as_ref()
                    .map(|value| format!("<dt>{label}</dt><dd>{value}</dd>"));
                value.unwrap_or_default()
            };
            let [author, translator, year, pages] = &books[0][..] else {
                unreachable!()
            };
            format!(
                "<h3>Original</h3><dl>{}{}</dl><h3>Translation</h3><dl>{}{}</dl>",
                row("Person", author),
                row("Number", year),
                row("Person", translator),
                row("Number", pages)
            )
        },
    },
];

/// The page of a book, which lacks the value of the field with the index `lacks`.
fn page_lacking_field(layout: &Layout, number: usize, lacks: Option<usize>) -> Page {
    let all = |number: usize| -> Shown { book_values(number).map(Some).to_vec() };
    let mut books = [all(number), all(number + 50), all(number + 90)];
    if let Some(field) = lacks {
        books[0][field] = None;
    }
    let html = format!(
        "<nav><a href='/'>Home</a></nav><h1>Book {number}</h1>{}",
        (layout.html)(&books)
    );
    let known: Vec<(&str, Vec<&str>)> = match lacks {
        Some(_) => Vec::new(),
        None => FIELDS
            .iter()
            .zip(&books[0])
            .map(|((name, _), value)| (*name, value.iter().map(String::as_str).collect()))
            .collect(),
    };
    let known: Vec<(&str, &[&str])> = known
        .iter()
        .map(|(name, values)| (*name, values.as_slice()))
        .collect();
    page(&format!("book/{number}"), html, &known)
}

#[test]
fn nothing_stands_in_for_a_value_that_a_page_lacks() {
    let mut wrong = Vec::new();
    for layout in &LAYOUTS {
        let pages: Vec<Page> = (0..20)
            .map(|number| page_lacking_field(layout, number, None))
            .collect();
        let learned = learn(&pages, &[], &task()).unwrap();
        for number in 30..42 {
            let lacks = number % FIELDS.len();
            let read = read(
                &learned.mappings[0].mapping,
                &page_lacking_field(layout, number, Some(lacks)),
            );
            for (at, (name, _)) in FIELDS.iter().enumerate() {
                let value = read.get(*name).and_then(|value| value.as_str());
                let own = Some(book_values(number)[at].clone()).filter(|_| at != lacks);
                if value.is_some() && value.map(str::to_owned) != own {
                    wrong.push(format!(
                        "{}, {number}: {name} is {value:?}, not {own:?}",
                        layout.name
                    ));
                }
            }
        }
        let complete = read(
            &learned.mappings[0].mapping,
            &page_lacking_field(layout, 45, None),
        );
        let of_complete = FIELDS
            .iter()
            .zip(book_values(45))
            .filter(|((name, _), value)| {
                complete.get(*name).and_then(|read| read.as_str()) == Some(value.as_str())
            });
        if of_complete.count() < FIELDS.len() {
            wrong.push(format!("{}: of a complete page {complete:?}", layout.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A layout where the value has a label of its own, next to values that some pages lack.
struct Named {
    name: &'static str,
    field: &'static str,
    /// Makes the page of a book. The first flag says whether the page has the value, the second whether it has one
    /// thing more.
    html: fn(&[String; 4], bool, bool) -> String,
}

const NAMED: [Named; 2] = [
    Named {
        name: "a text after its label, alone in its paragraph",
        field: "translator",
        html: |book, has_own, has_more| {
            let line = |label: &str, value: &str| format!("<p><b>{label} –</b> {value}</p>");
            let own = line("Translator", &book[1]);
            let more = line("Hint", "sold without its cover");
            format!(
                "<section>{}{}{}{}</section>",
                line("Author", &book[0]),
                if has_own { &own } else { "" },
                if has_more { &more } else { "" },
                line("Pages", &book[3])
            )
        },
    },
    Named {
        name: "the second of several lines, before lines with labels",
        field: "translator",
        html: |book, has_own, has_more| {
            let own = format!("{}<br>", book[1]);
            format!(
                "<h3>People</h3><p>{}<br>{}Library {}<br><br>{}<b>Pages:</b> {}<br></p>",
                book[0],
                if has_own { &own } else { "" },
                book[2],
                if has_more {
                    "<b>Hint:</b> sold without its cover<br>"
                } else {
                    ""
                },
                book[3]
            )
        },
    },
];

#[test]
fn a_value_is_read_although_pages_lack_other_things() {
    let made = |named: &Named, number: usize, has_own: bool, is_known: bool| {
        let book = book_values(number);
        let html = format!(
            "<h1>Book {number}</h1>{}",
            (named.html)(&book, has_own, number.is_multiple_of(2))
        );
        let all: Vec<(&str, [&str; 1])> = FIELDS
            .iter()
            .zip(&book)
            .filter(|((field, _), _)| is_known && *field != "year")
            .map(|((field, _), value)| (*field, [value.as_str()]))
            .collect();
        let known: Vec<(&str, &[&str])> = all
            .iter()
            .map(|(field, value)| (*field, value.as_slice()))
            .collect();
        page(&format!("book/{number}"), html, &known)
    };
    for named in &NAMED {
        let pages: Vec<Page> = (0..10)
            .map(|number| made(named, number, true, number < 5))
            .collect();
        let learned = learn(&pages, &[], &task()).unwrap();
        let mapping = &learned.mappings[0].mapping;
        for number in 20..30 {
            let complete = read(mapping, &made(named, number, true, false));
            assert_eq!(
                complete[named.field],
                book_values(number)[1],
                "{}: {mapping}",
                named.name
            );
            let lacking = read(mapping, &made(named, number, false, false));
            assert_eq!(lacking.get(named.field), None, "{}: {mapping}", named.name);
        }
    }
}

#[test]
fn a_label_may_be_a_part_of_the_text_before_its_value() {
    let made = |number: usize, has_own: bool, is_known: bool| {
        let own = format!(
            "Rated {} by all of its readers",
            book_values(number)[0].to_lowercase()
        );
        // Pages have different numbers of other blocks.
        let more = "<div class=block><h4>Hint</h4> sold without its cover</div>".repeat(number % 3);
        let html = format!(
            "<h1>Book {number}</h1><section><div class=block><h4>Author</h4> {}</div>\
             <div class=block><h4>Rating (<a href='/r'>RBA</a>)</h4> {} <span><a href='/all'>See all</a></span></div>\
             {more}<div class=block><h4>Pages</h4> {}</div></section>",
            book_values(number)[0],
            if has_own { &own } else { "" },
            book_values(number)[3],
        );
        let known: &[(&str, &[&str])] = &[
            ("author", &[&book_values(number)[0]]),
            ("pages", &[&book_values(number)[3]]),
            ("rating", &[&own]),
        ];
        let known = if is_known { known } else { &[] };
        (page(&format!("book/{number}"), html, known), own)
    };
    let pages: Vec<Page> = (0..10)
        .map(|number| made(number, true, number < 3).0)
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let mapping = &learned.mappings[0].mapping;
    for number in 20..26 {
        let (complete, own) = made(number, true, false);
        assert_eq!(read(mapping, &complete)["rating"], own, "{mapping}");
        let (lacking, _) = made(number, false, false);
        assert_eq!(read(mapping, &lacking).get("rating"), None, "{mapping}");
    }
}
