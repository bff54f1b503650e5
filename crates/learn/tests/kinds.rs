//! Tests kinds of values. Each kind has known values with pages that show them, and a last page that is not learned
//! from, with the value that must be read there. A wrong value is worse than none.

use serde_json::{Value, json};
use webfill_learn::{Learned, Page, learn};

use crate::made::{NAMES, page, read, task};

/// A kind of values. In its HTML, `V` stands for the value, and `N` for the number of the page.
struct Kind {
    name: &'static str,
    html: &'static str,
    /// Each value as the record writes it, and as its page writes it.
    values: &'static [(&'static str, &'static str)],
    /// The text of the page that is not learned from, and the value that must be read there.
    last: (&'static str, Option<&'static str>),
}

const ADDRESS: &str = "<h1>Item N</h1><p class=addr>Firm N<br>Main St N<br>V<br>Tel. 030 100N</p>";
const CELL: &str =
    "<table><tr><th>Given</th><td>x N</td></tr><tr><th>Code</th><td>V</td></tr></table>";

const COUNTS: &[(&str, &str)] = &[
    ("352", "352"),
    ("128", "128"),
    ("410", "410"),
    ("288", "288"),
    ("176", "176"),
    ("504", "504"),
    ("320", "320"),
    ("240", "240"),
    ("611", "611"),
    ("198", "198"),
    ("336", "336"),
    ("448", "448"),
    ("272", "272"),
];

const KINDS: &[Kind] = &[
    Kind {
        name: "a postcode before its town, none of the known ones begins with 0",
        html: ADDRESS,
        values: &[
            ("10115", "10115 Berlin"),
            ("20095", "20095 Hamburg"),
            ("50667", "50667 Köln"),
            ("80331", "80331 München"),
        ],
        last: ("01067 Dresden", Some("01067")),
    },
    Kind {
        name: "a postcode before its town, some of the known ones begin with 0",
        html: ADDRESS,
        values: &[
            ("10115", "10115 Berlin"),
            ("04109", "04109 Leipzig"),
            ("50667", "50667 Köln"),
            ("80331", "80331 München"),
        ],
        last: ("01067 Dresden", Some("01067")),
    },
    Kind {
        name: "a postcode behind its town",
        html: ADDRESS,
        values: &[
            ("94105", "San Francisco, CA 94105"),
            ("10001", "New York, NY 10001"),
            ("60601", "Chicago, IL 60601"),
        ],
        last: ("Boston, MA 02108", Some("02108")),
    },
    Kind {
        name: "article numbers with letters",
        html: "<p class=sku>Article no. V, in stock</p><p>N</p>",
        values: &[
            ("AB-1204", "AB-1204"),
            ("CD-7710", "CD-7710"),
            ("XY-3012", "XY-3012"),
        ],
        last: ("QQ-0042", Some("QQ-0042")),
    },
    Kind {
        name: "numbers of a house with zeros",
        html: CELL,
        values: &[("0012", "0012"), ("0107", "0107"), ("2210", "2210")],
        last: ("0900", Some("0900")),
    },
    Kind {
        name: "an edition that is a number by chance",
        html: CELL,
        values: &[("2019", "2019"), ("2020", "2020"), ("2021", "2021")],
        last: ("2022", Some("2022")),
    },
    Kind {
        name: "a version with a zero at its end",
        html: "<p class=v>Version V of the program N</p>",
        values: &[("1.20", "1.20"), ("2.10", "2.10"), ("3.40", "3.40")],
        last: ("4.50", Some("4.50")),
    },
    Kind {
        name: "counts of pages that have three digits by chance",
        html: CELL,
        values: COUNTS,
        last: ("96", Some("96")),
    },
    Kind {
        name: "counts of pages in a sentence",
        html: "<h1>Book N</h1><p class=size>Bound, V pages</p>",
        values: COUNTS,
        last: ("1096", Some("1096")),
    },
    Kind {
        name: "people of large towns, and a small one",
        html: CELL,
        values: &[
            ("3677472", "3677472"),
            ("1892122", "1892122"),
            ("1510378", "1510378"),
            ("1073096", "1073096"),
        ],
        last: ("950", Some("950")),
    },
    Kind {
        name: "an article number with one digit more",
        html: CELL,
        values: &[
            ("AB-120", "AB-120"),
            ("CD-771", "CD-771"),
            ("XY-301", "XY-301"),
            ("QQ-204", "QQ-204"),
            ("AC-555", "AC-555"),
            ("BD-918", "BD-918"),
            ("ZZ-667", "ZZ-667"),
        ],
        last: ("ABC-1042", Some("ABC-1042")),
    },
    Kind {
        name: "a date of which only the year is known",
        html: CELL,
        values: &[
            ("2020-01-05", "2020-01-05"),
            ("2021-11-15", "2021-11-15"),
            ("2019-07-31", "2019-07-31"),
        ],
        last: ("2022", Some("2022")),
    },
    Kind {
        name: "an ISBN",
        html: CELL,
        values: &[
            ("978-3-16-148410-0", "978-3-16-148410-0"),
            ("978-0-306-40615-7", "978-0-306-40615-7"),
            ("978-1-56619-909-4", "978-1-56619-909-4"),
        ],
        last: ("979-0-2600-0043-8", Some("979-0-2600-0043-8")),
    },
    Kind {
        name: "a telephone number, written with a plus",
        html: CELL,
        values: &[
            ("+49 30 1234567", "+49 30 1234567"),
            ("+49 89 7654321", "+49 89 7654321"),
            ("+49 40 2223334", "+49 40 2223334"),
        ],
        last: ("+49 221 998877", Some("+49 221 998877")),
    },
    Kind {
        name: "no telephone number on the page: what stands there is none",
        html: CELL,
        values: &[
            ("+49 30 1234567", "+49 30 1234567"),
            ("+49 89 7654321", "+49 89 7654321"),
            ("+49 40 2223334", "+49 40 2223334"),
        ],
        last: ("on request", None),
    },
    Kind {
        name: "two telephone numbers in the place of one",
        html: CELL,
        values: &[
            ("0301234567", "030 1234567"),
            ("0897654321", "089 7654321"),
            ("0402223334", "040 2223334"),
        ],
        last: ("030 1112223 / 030 1112224", None),
    },
    Kind {
        name: "no mail address on the page",
        html: CELL,
        values: &[
            ("ada@a.example", "ada@a.example"),
            ("mary@b.example", "mary@b.example"),
            ("emmy@c.example", "emmy@c.example"),
        ],
        last: ("030 1234567", None),
    },
    Kind {
        name: "a date in the record's own form",
        html: CELL,
        values: &[
            ("2020-01-05", "2020-01-05"),
            ("2021-11-15", "2021-11-15"),
            ("2019-07-31", "2019-07-31"),
        ],
        last: ("2022-02-03", Some("2022-02-03")),
    },
    Kind {
        name: "a date that the page writes otherwise",
        html: CELL,
        values: &[
            ("2020-01-05", "5 January 2020"),
            ("2021-11-15", "15 November 2021"),
            ("2019-07-31", "31 July 2019"),
        ],
        last: ("3 February 2022", Some("2022-02-03")),
    },
];

/// The pages with known values, followed by the last page.
fn pages(kind: &Kind) -> Vec<Page> {
    let shown = |number: usize, text: &str| {
        kind.html
            .replace('N', &(number + 1).to_string())
            .replace('V', text)
    };
    let known = kind.values.iter().enumerate();
    let mut pages: Vec<Page> = known
        .map(|(number, (known, text))| {
            let path = format!("item/{}", 1000 + number);
            page(&path, shown(number, text), &[("field", &[known])])
        })
        .collect();
    let last = kind.values.len();
    pages.push(page(
        &format!("item/{}", 1000 + last),
        shown(last, kind.last.0),
        &[],
    ));
    pages
}

/// Learns from all pages but the last one. Returns the value that is read on the last page, and the mapping.
fn learn_and_read_last(pages: &[Page]) -> (Option<Value>, Learned) {
    let (last, known) = pages.split_last().unwrap();
    let learned = learn(known, &[], &task()).unwrap();
    let mapping = learned.mappings.first().map(|one| &one.mapping);
    let value = mapping.and_then(|mapping| read(mapping, last).remove("field"));
    (value, learned)
}

#[test]
fn values_of_each_kind_are_read_as_they_are_or_not_at_all() {
    let mut wrong = Vec::new();
    for kind in KINDS {
        let (value, learned) = learn_and_read_last(&pages(kind));
        if value != kind.last.1.map(Value::from) {
            let chains = learned
                .mappings
                .first()
                .map(|one| one.mapping["fields"].clone());
            wrong.push(format!("{}: {value:?} by {chains:?}", kind.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_list_that_few_pages_show_is_not_cut_to_its_first_value() {
    let names = |number: usize| match number % 4 {
        0 => vec![format!("Ada {number}"), format!("Mary {number}")],
        _ => vec![format!("Emmy {number}")],
    };
    let html = |names: &[String]| {
        let items: String = names
            .iter()
            .map(|name| format!("<li>{name}</li>"))
            .collect();
        format!("<h1>A book</h1><ul class=authors>{items}</ul><p>End</p>")
    };
    let mut pages: Vec<Page> = (0..20)
        .map(|number| {
            let names = names(number);
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            page(
                &format!("book/{number}"),
                html(&names),
                &[("field", &known)],
            )
        })
        .collect();
    let last = ["Grace 1", "Rosa 1", "Hedy 1"].map(str::to_owned);
    pages.push(page("book/99", html(&last), &[]));
    let (value, learned) = learn_and_read_last(&pages);
    assert_eq!(value, Some(json!(last)), "{learned:?}");
    assert_eq!(learned.mappings[0].fields[0].agree.len(), 20);
}

#[test]
fn a_page_of_whose_values_one_is_read_counts_as_one_that_disagrees() {
    // The second author is in another place on each page, so that no chain reads both.
    let places = [
        "<i>V</i>",
        "<table><tr><td>V</table>",
        "<h4>V</h4>",
        "<pre>V</pre>",
        "<b>V</b>",
    ];
    let pages: Vec<Page> = (0..20)
        .map(|number| {
            let (first, second) = (format!("Ada {number}"), format!("Mary {number}"));
            let other = places[number / 4].replace('V', &second);
            let html = format!("<h1>Book</h1><p class=by>{first}</p><div>{other}</div>");
            let known: &[&str] = match number % 4 {
                0 => &[&first, &second],
                _ => &[&first],
            };
            page(&format!("book/{number}"), html, &[("field", known)])
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let field = &learned.mappings[0].fields[0];
    assert_eq!(
        (field.agree.len(), field.disagree.len()),
        (15, 5),
        "{field:?}"
    );
}

#[test]
fn a_field_that_is_likelier_wrong_than_right_is_left_out_and_named() {
    let html = |number: usize| {
        format!(
            "<h1>Item {number}</h1><dl><dt>Kind</dt><dd>thing {number}</dd></dl><p>free {}</p>",
            number * 7
        )
    };
    // Most pages do not show their known values.
    let pages: Vec<Page> = (0..10)
        .map(|number| {
            let kind = format!("thing {number}");
            let other = match number % 3 {
                0 => format!("free {}", number * 7),
                _ => format!("unknown {number}"),
            };
            let known: &[(&str, &[&str])] = &[("kind", &[&kind]), ("other", &[&other])];
            page(&format!("item/{number}"), html(number), known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let names: Vec<&str> = learned.mappings[0].mapping["fields"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|field| field["name"].as_str())
        .collect();
    assert_eq!(names, ["kind"]);
    let other = learned.mappings[0]
        .fields
        .iter()
        .find(|one| one.field == "other");
    let other = other.unwrap();
    assert!(
        other.confidence < 0.5 && other.processors.is_none(),
        "{other:?}"
    );
    assert!(other.why.starts_with("left out"), "{}", other.why);
}

#[test]
fn no_alternative_counts_positions_where_a_page_may_lack_the_field() {
    let html = |number: usize, mail: Option<&str>| {
        let mail = mail.map_or(String::new(), |mail| {
            format!("<dt class=m>E-mail</dt><dd class=mail>{mail}</dd>")
        });
        format!(
            "<h1>Firm {number}</h1><dl class=data><dt>City</dt><dd>Town {number}</dd>{mail}\
             <dt>Phone</dt><dd>030 12345{number:02}</dd></dl>"
        )
    };
    let pages: Vec<Page> = (0..12)
        .map(|number| {
            // The texts have no common shape, so a filter by shape cannot exclude wrong values.
            let mail = ["Ada at home", "desk 4", "x@y.example", "by post"][number % 4];
            let mail = format!("{mail} {number}");
            let text = html(number, Some(&mail));
            let known: &[(&str, &[&str])] = &[("field", &[&mail])];
            page(&format!("firm/{number}"), text, known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let mapping = &learned.mappings[0].mapping;
    for number in 20..30 {
        let without = page("firm/x", html(number, None), &[]);
        let value = read(mapping, &without).remove("field");
        assert_eq!(value, None, "{mapping:#}");
    }
}

#[test]
fn records_that_are_out_of_date_are_doubted_and_not_the_chain() {
    let html = |number: usize| {
        format!(
            "<h1>Item {number}</h1><table><tr><th>Maker:</th><td class=maker>Firm {}</td></tr></table><p>end</p>",
            number * 13
        )
    };
    for stale in [1, 2, 3] {
        let pages: Vec<Page> = (0..12)
            .map(|number| {
                let maker = match number < stale {
                    true => format!("Former {number}"),
                    false => format!("Firm {}", number * 13),
                };
                page(
                    &format!("item/{number}"),
                    html(number),
                    &[("field", &[&maker])],
                )
            })
            .collect();
        let learned = learn(&pages, &[], &task()).unwrap();
        let field = &learned.mappings[0].fields[0];
        assert_eq!(field.doubted.len(), stale, "{field:?}");
        assert!(
            field.disagree.is_empty() && field.confidence >= 0.9,
            "{field:?}"
        );
        assert!(!learned.mappings[0].draft);
    }
}

#[test]
fn records_that_were_mixed_up_are_doubted_and_the_mapping_is_a_draft() {
    let maker = |number: usize| format!("Firm {}", number * 13);
    let html = |number: usize| {
        format!(
            "<h1>Item {number}</h1><table><tr><th>Maker:</th><td class=maker>{}</td></tr></table><p>end</p>",
            maker(number)
        )
    };
    // Three of five records have the value of another record's page.
    let pages: Vec<Page> = (0..10)
        .map(|number| {
            let known = maker(if number < 3 { number + 4 } else { number });
            let known: &[(&str, &[&str])] = match number < 5 {
                true => &[("field", &[&known])],
                false => &[],
            };
            page(&format!("item/{number}"), html(number), known)
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let (mapping, field) = (&learned.mappings[0], &learned.mappings[0].fields[0]);
    assert_eq!(field.doubted.len(), 3, "{field:?}");
    assert!(mapping.draft && field.confidence <= 0.8, "{field:?}");
    assert_eq!(read(&mapping.mapping, &pages[8])["field"], json!(maker(8)));
}

/// A form of values: known values with the texts on their pages, and the same for a last page without a known value.
struct Form {
    name: &'static str,
    values: &'static [(&'static str, &'static str)],
    last: (&'static str, Option<&'static str>),
}

const FORMS: &[Form] = &[
    Form {
        name: "two numbers out of their words",
        values: &[
            ("27/36", "27 City / 36 Hwy"),
            ("19/26", "19 City / 26 Hwy"),
            ("22/31", "22 City / 31 Hwy"),
        ],
        last: ("16 City / 23 Hwy", Some("16/23")),
    },
    Form {
        name: "two numbers out of their words, which are other words on one page",
        values: &[
            ("27/36", "27 City / 36 Hwy"),
            ("19/26", "19 City / 26 Hwy"),
            ("22/31", "22 City / 31 Hwy"),
        ],
        last: ("not rated yet", None),
    },
    Form {
        name: "two numbers apart by a space: one number is not two",
        values: &[("27/36", "27 36"), ("19/26", "19 26"), ("22/31", "22 31")],
        last: ("2010", None),
    },
    Form {
        name: "amounts with a sign: what is no number gets none",
        values: &[("$12.50", "12.50"), ("$7.00", "7.00"), ("$9.25", "9.25")],
        last: ("Sold out", None),
    },
    Form {
        name: "feet and inches",
        values: &[
            ("6-5", "6 ft 5 in"),
            ("7-1", "7 ft 1 in"),
            ("5-11", "5 ft 11 in"),
        ],
        last: ("6 ft 10 in", Some("6-10")),
    },
    Form {
        name: "names turned around",
        values: &[
            ("Tolkien, J. R. R.", "J. R. R. Tolkien"),
            ("Lovelace, Ada", "Ada Lovelace"),
            ("Hopper, Grace", "Grace Hopper"),
        ],
        last: ("Mary Ann Evans", Some("Evans, Mary Ann")),
    },
    Form {
        name: "names turned back",
        values: &[
            ("J. R. R. Tolkien", "Tolkien, J. R. R."),
            ("Ada Lovelace", "Lovelace, Ada"),
            ("Grace Hopper", "Hopper, Grace"),
        ],
        last: ("Evans, Mary Ann", Some("Mary Ann Evans")),
    },
    Form {
        name: "days in the order of the records, one of which could be either",
        values: &[
            ("25.05.2010", "May 25, 2010"),
            ("03.04.2020", "April 3, 2020"),
            ("17.11.2014", "November 17, 2014"),
        ],
        last: ("February 1, 2022", Some("01.02.2022")),
    },
    Form {
        name: "days without zeros, the month first",
        values: &[
            ("5/25/2010", "2010-05-25"),
            ("4/13/2020", "2020-04-13"),
            ("11/17/2014", "2014-11-17"),
        ],
        last: ("2022-02-01", Some("2/1/2022")),
    },
    Form {
        name: "days with names of months, and May, which is also an abbreviation",
        values: &[
            ("May 25, 2010", "2010-05-25"),
            ("September 3, 2020", "2020-09-03"),
            ("November 17, 2014", "2014-11-17"),
        ],
        last: ("2022-02-01", Some("February 1, 2022")),
    },
    Form {
        name: "days with abbreviated months",
        values: &[
            ("25 May 2010", "5/25/2010"),
            ("03 Sep 2020", "9/3/2020"),
            ("17 Nov 2014", "11/17/2014"),
        ],
        last: ("2/1/2022", Some("01 Feb 2022")),
    },
    Form {
        name: "days that may be in either order are not guessed",
        values: &[
            ("03/04/2020", "3 April 2020"),
            ("05/06/2010", "5 June 2010"),
            ("01/02/2014", "1 February 2014"),
        ],
        last: ("7 August 2022", None),
    },
    Form {
        name: "a sign that the page lacks",
        values: &[
            ("$12.50", "12.50"),
            ("$7.00", "7.00"),
            ("$120.99", "120.99"),
        ],
        last: ("18.25", Some("$18.25")),
    },
    Form {
        name: "a unit that the page lacks",
        values: &[("12 kg", "12"), ("7 kg", "7"), ("120 kg", "120")],
        last: ("18", Some("18 kg")),
    },
    Form {
        name: "a unit that the records lack",
        values: &[("12", "12 kg"), ("7", "7 kg"), ("120", "120 kg")],
        last: ("18 kg", Some("18")),
    },
    Form {
        name: "marks between thousands",
        values: &[
            ("1,234,567", "1234567"),
            ("45,000", "45000"),
            ("3,210", "3210"),
        ],
        last: ("98765", Some("98,765")),
    },
    Form {
        name: "a comma before the fraction",
        values: &[("12,5", "12.5"), ("7,25", "7.25"), ("120,75", "120.75")],
        last: ("18.5", Some("18,5")),
    },
    Form {
        name: "capitals",
        values: &[("CANON", "Canon"), ("NIKON", "Nikon"), ("LEICA", "Leica")],
        last: ("Pentax", Some("PENTAX")),
    },
];

#[test]
fn values_get_the_form_of_the_records_where_these_decide_it() {
    let mut wrong = Vec::new();
    for form in FORMS {
        let kind = Kind {
            name: form.name,
            html: CELL,
            values: form.values,
            last: form.last,
        };
        let (value, learned) = learn_and_read_last(&pages(&kind));
        let value = value.map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
        if value.as_deref() != form.last.1 {
            let first = learned.mappings.first();
            let chains = first.map(|one| one.mapping["fields"].to_string());
            wrong.push(format!("{}: {value:?} by {chains:?}", form.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_page_shows_no_form() {
    for form in [&FORMS[0], &FORMS[3]] {
        let kind = Kind {
            name: form.name,
            html: CELL,
            values: &form.values[..1],
            last: form.last,
        };
        let (value, _) = learn_and_read_last(&pages(&kind));
        assert_eq!(value, None, "{}", form.name);
    }
}

#[test]
fn a_list_that_is_read_by_positions_is_confirmed_by_no_other_anchor() {
    let of = |number: usize, second: &str| {
        let known = [(
            "people",
            [format!("{} King", NAMES[number]), second.to_owned()],
        )];
        let text = format!(
            "<title>House</title><table id=profile class=profile><tr><td>Main office<br>{number} Main Street<br>{}</td>\
             <td>Admissions<br>Town {number}<br>{second}</td></tr></table>",
            known[0].1[0]
        );
        let known: Vec<&str> = known[0].1.iter().map(String::as_str).collect();
        let known: &[(&str, &[&str])] = &[("people", &known)];
        page(
            &format!("person/{number}"),
            text,
            if number == 0 { known } else { &[] },
        )
    };
    let pages: Vec<Page> = (0..6)
        .map(|number| match number {
            0 | 1 => of(number, &format!("{} Shelley", NAMES[number])),
            _ => of(number, "Open at noon"),
        })
        .collect();
    let learned = learn(&pages, &[], &task()).unwrap();
    let field = &learned.mappings[0].fields[0];
    let chain = field.processors.as_ref().unwrap().to_string();
    assert!(field.multiple && chain.contains("[3]"), "{chain}");
    let agreements: Vec<f64> = field.candidates.iter().map(|one| one.agreement).collect();
    assert!(
        agreements.iter().all(|agreement| *agreement == 0.0),
        "{agreements:?}"
    );
}
