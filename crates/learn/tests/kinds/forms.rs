//! Tests that values get the form of the records, if the known values decide it.

use super::{CELL, Kind, learn_and_read_last, pages};

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
        name: "days first, as in the records; one date could be read either way",
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
