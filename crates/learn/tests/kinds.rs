//! Tests kinds of values. Each kind has known values with pages that show them, and a last page that is not learned
//! from, with the value that must be read there. A wrong value is worse than none.

mod disagreeing;
mod forms;

use serde_json::Value;
use webfill_learn::{Learned, Page, learn};

use crate::made::{page, read, task};

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
