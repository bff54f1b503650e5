//! Tests values that pages write in another form than the record. Each form is learned from some pages, and then read
//! on a page that was not learned from.

use webfill_learn::{Page, is_same_value, learn};

use crate::made::{page, read, task};

struct Form {
    name: &'static str,
    /// Each value as the record writes it, and as its page writes it. The last page is not learned from.
    values: &'static [(&'static str, &'static str)],
}

const FORMS: &[Form] = &[
    Form {
        name: "a currency on the other side",
        values: &[
            ("EUR 12.50", "12.50 EUR"),
            ("EUR 1.99", "1.99 EUR"),
            ("EUR 310.00", "310.00 EUR"),
            ("EUR 42.10", "42.10 EUR"),
        ],
    },
    Form {
        name: "the sign of a currency for its name",
        values: &[
            ("€12.50", "12.50 Euro"),
            ("€1.99", "1.99 Euro"),
            ("€310.00", "310.00 Euro"),
            ("€42.10", "42.10 Euro"),
        ],
    },
    Form {
        name: "a sign and groups that the page lacks",
        values: &[
            ("$1,234.50", "1234.50"),
            ("$12.00", "12.00"),
            ("$22,100.99", "22100.99"),
            ("$3,000.10", "3000.10"),
        ],
    },
    Form {
        name: "groups before a long fraction",
        values: &[
            ("$1,234.50", "1234.50"),
            ("$12.00", "12.00"),
            ("$22,100.99", "22100.99"),
            ("$3,000.12345678", "3000.12345678"),
        ],
    },
    Form {
        name: "a comma for the point",
        values: &[
            ("12.5%", "12,5 % vol."),
            ("9.0%", "9,0 % vol."),
            ("13.5%", "13,5 % vol."),
            ("11.0%", "11,0 % vol."),
        ],
    },
    Form {
        name: "kilograms as grams",
        values: &[
            ("1200", "1.2 kg"),
            ("850", "0.85 kg"),
            ("2000", "2 kg"),
            ("12345", "12.345 kg"),
        ],
    },
    Form {
        name: "grams as kilograms",
        values: &[
            ("1.2", "1200 g"),
            ("0.85", "850 g"),
            ("2", "2000 g"),
            ("12.345", "12345 g"),
        ],
    },
    Form {
        name: "metres as centimetres",
        values: &[
            ("182 cm", "1.82 m"),
            ("95 cm", "0.95 m"),
            ("200 cm", "2.00 m"),
            ("177 cm", "1.77 m"),
        ],
    },
    Form {
        name: "feet and inches as centimetres",
        values: &[
            ("196", "6 ft 5 in"),
            ("183", "6 ft"),
            ("206", "6 ft 9 in"),
            ("178", "5 ft 10 in"),
        ],
    },
    Form {
        name: "feet and inches as metres",
        values: &[
            ("1.96", "6' 5\""),
            ("1.8", "5' 11\""),
            ("2.06", "6' 9\""),
            ("1.78", "5' 10\""),
        ],
    },
    Form {
        name: "pounds as kilograms",
        values: &[
            ("95 kg", "210 lb"),
            ("84 kg", "185 lb"),
            ("102 kg", "225 lb"),
            ("77 kg", "170 lb"),
        ],
    },
    Form {
        name: "degrees",
        values: &[
            ("21", "70 °F"),
            ("-12", "10 °F"),
            ("37", "98.6 °F"),
            ("0", "32 °F"),
        ],
    },
    Form {
        name: "miles as kilometres",
        values: &[
            ("42.2", "26.2 miles"),
            ("16.1", "10 miles"),
            ("5", "3.1 miles"),
            ("1.6", "1 mile"),
        ],
    },
    Form {
        name: "one of two units in brackets",
        values: &[
            ("147", "5.2 oz (147 g)"),
            ("95", "3.4 oz (95 g)"),
            ("1200", "42.3 oz (1200 g)"),
            ("310", "10.9 oz (310 g)"),
        ],
    },
    Form {
        name: "the first of two units",
        values: &[
            ("5.2", "5.2 oz (147 g)"),
            ("3.4", "3.4 oz (95 g)"),
            ("42.3", "42.3 oz (1200 g)"),
            ("10.9", "10.9 oz (310 g)"),
        ],
    },
    Form {
        name: "kilograms of which the page has grams in brackets",
        values: &[
            ("0.147", "5.2 oz (147 g)"),
            ("0.095", "3.4 oz (95 g)"),
            ("1.2", "42.3 oz (1200 g)"),
            ("0.31", "10.9 oz (310 g)"),
        ],
    },
    Form {
        name: "a unit of one letter",
        values: &[
            ("120", "120 W"),
            ("60", "60 W"),
            ("1500", "1500 W"),
            ("75", "75 W"),
        ],
    },
    Form {
        name: "metres",
        values: &[("5", "5 m"), ("12", "12 m"), ("3.5", "3.5 m"), ("8", "8 m")],
    },
    Form {
        name: "the present price",
        values: &[
            ("15.00", "Was $20.00 Now $15.00"),
            ("12.50", "$12.50"),
            ("99.99", "Was $120.00 Now $99.99"),
            ("7.25", "$7.25"),
        ],
    },
    Form {
        name: "a name with a badge",
        values: &[
            ("Canon A20", "Canon A20 New!"),
            ("Nikon S3000", "Nikon S3000"),
            ("Sony W310", "Sony W310 New!"),
            ("Fuji Z5", "Fuji Z5"),
        ],
    },
    Form {
        name: "millions",
        values: &[
            ("1200000", "1.2 million"),
            ("34000000", "34 million"),
            ("950000", "0.95 million"),
            ("7150000", "7.15 million"),
        ],
    },
    Form {
        name: "a fraction with a slash",
        values: &[
            ("2 1/2 in", "2\u{bd} in"),
            ("11 3/4 in", "11\u{be} in"),
            ("7 in", "7 in"),
            ("5 1/8 in", "5\u{215b} in"),
        ],
    },
    Form {
        name: "a fraction with a point",
        values: &[
            ("2.5", "2\u{bd} rooms"),
            ("1.5", "1\u{bd} rooms"),
            ("3", "3 rooms"),
            ("4.5", "4 \u{bd} rooms"),
        ],
    },
    Form {
        name: "a national telephone number",
        values: &[
            ("+44 20 7946 0018", "020 7946 0018"),
            ("+44 20 7946 0123", "(020) 7946 0123"),
            ("+44 20 7946 0777", "020 79460777"),
            ("+44 20 7946 0456", "020 7946 0456"),
        ],
    },
    Form {
        name: "a national telephone number after a word",
        values: &[
            ("+49 30 1234567", "Phone: 030 / 123-4567"),
            ("+49 30 7654321", "Phone: 030 / 765-4321"),
            ("+49 30 2345678", "Phone: 030 / 234-5678"),
            ("+49 30 9876543", "Phone: 030 / 987-6543"),
        ],
    },
    Form {
        name: "a North American telephone number",
        values: &[
            ("(214) 555-0123", "+1 214 555 0123"),
            ("(312) 555-0145", "+1 312 555 0145"),
            ("(617) 555-0188", "+1 617 555 0188"),
            ("(415) 555-0106", "+1 415 555 0106"),
        ],
    },
    Form {
        name: "whole dollars",
        values: &[
            ("$1,234", "USD 1,234.00"),
            ("$12", "USD 12.00"),
            ("$980", "USD 980.00"),
            ("$25,100", "USD 25,100.00"),
        ],
    },
    Form {
        name: "an international telephone number",
        values: &[
            ("020 7946 0018", "+44 20 7946 0018"),
            ("020 7946 0123", "+44 (20) 7946 0123"),
            ("020 7946 0777", "+44 20 79460777"),
            ("020 7946 0456", "+44 20 7946 0456"),
        ],
    },
    Form {
        name: "minutes of durations",
        values: &[
            ("90", "PT1H30M"),
            ("45", "PT45M"),
            ("120", "PT2H"),
            ("135", "PT2H15M"),
        ],
    },
    Form {
        name: "minutes of hours and minutes",
        values: &[
            ("90", "1 h 30 min"),
            ("45", "45 min"),
            ("120", "2 h"),
            ("135", "2 h 15 min"),
        ],
    },
    Form {
        name: "an address of an image without its host",
        values: &[
            (
                "https://people.example/img/12.jpg",
                "<img src='/img/12.jpg'>",
            ),
            (
                "https://people.example/img/77.jpg",
                "<img src='/img/77.jpg'>",
            ),
            (
                "https://people.example/img/904.jpg",
                "<img src='/img/904.jpg'>",
            ),
            (
                "https://people.example/img/31.jpg",
                "<img src='/img/31.jpg'>",
            ),
        ],
    },
    Form {
        name: "a class that means yes or no",
        values: &[
            ("yes", "<i class='icon icon-check'></i>"),
            ("no", "<i class='icon icon-times'></i>"),
            ("yes", "<i class='icon icon-check'></i>"),
            ("no", "<i class='icon icon-times'></i>"),
            ("no", "<i class='icon icon-times'></i>"),
        ],
    },
    Form {
        name: "a time on another clock, after other words",
        values: &[
            ("14:00", "Fri, 5 May, from 2 pm"),
            ("09:30", "Sat, 6 May, from 9:30 am"),
            ("21:15", "Sun, 7 May, from 9:15 pm"),
            ("18:00", "Mon, 8 May, from 6 pm"),
        ],
    },
    Form {
        name: "stars",
        values: &[
            ("3", "\u{2605}\u{2605}\u{2605}\u{2606}\u{2606}"),
            ("5", "\u{2605}\u{2605}\u{2605}\u{2605}\u{2605}"),
            ("1", "\u{2605}\u{2606}\u{2606}\u{2606}\u{2606}"),
            ("4", "\u{2605}\u{2605}\u{2605}\u{2605}\u{2606}"),
        ],
    },
    Form {
        name: "a measure that is repeated in inches",
        values: &[
            (
                "30.5 x 40.0 cm",
                "30.5 \u{d7} 40.0 cm (12.0 \u{d7} 15.7 in.)",
            ),
            ("12.0 x 18.2 cm", "12.0 \u{d7} 18.2 cm (4.7 \u{d7} 7.2 in.)"),
            (
                "99.1 x 71.4 cm",
                "99.1 \u{d7} 71.4 cm (39.0 \u{d7} 28.1 in.)",
            ),
            (
                "50.0 x 60.5 cm",
                "50.0 \u{d7} 60.5 cm (19.7 \u{d7} 23.8 in.)",
            ),
        ],
    },
];

/// Cases where the last page has a text that only looks like the form of the other pages, or that contains more.
const LOOK_ALIKES: &[Form] = &[
    Form {
        name: "two times on a clock of 12 hours",
        values: &[
            ("14:00", "Friday, from 2 pm"),
            ("19:00", "Saturday, from 7 pm"),
            ("09:30", "Monday, from 9:30 am"),
            ("", "Sunday, 10 am to 2 pm"),
        ],
    },
    Form {
        name: "a range on a clock of 12 hours",
        values: &[
            ("14:00", "Friday, from 2 pm"),
            ("19:00", "Saturday, from 7 pm"),
            ("09:30", "Monday, from 9:30 am"),
            ("", "Sunday, 10 - 2 pm"),
        ],
    },
    Form {
        name: "minutes that look like hours",
        values: &[
            ("14:00", "Friday, from 2 pm"),
            ("19:00", "Saturday, from 7 pm"),
            ("09:00", "Monday, from 9 am"),
            ("13:05", "Sunday, from 1:05 pm"),
        ],
    },
    Form {
        name: "a telephone number with an extension",
        values: &[
            ("+44 20 7946 0018", "020 7946 0018"),
            ("+44 20 7946 0019", "020 7946 0019"),
            ("+44 20 7946 0044", "020 7946 0044"),
            ("", "020 7946 0020 ext. 12"),
        ],
    },
    Form {
        name: "a telephone number with both prefixes",
        values: &[
            ("020 7946 0018", "+44 20 7946 0018"),
            ("020 7946 0019", "+44 20 7946 0019"),
            ("020 7946 0044", "+44 20 7946 0044"),
            ("", "+44 (0)20 7946 0020"),
        ],
    },
    Form {
        name: "a fraction where others have groups",
        values: &[
            ("1234 EUR", "\u{20ac} 1.234"),
            ("2500 EUR", "\u{20ac} 2.500"),
            ("3100 EUR", "\u{20ac} 3.100"),
            ("", "\u{20ac} 12.50"),
        ],
    },
    Form {
        name: "a class that denies another",
        values: &[
            ("yes", "<i class='stock in-stock'></i>"),
            ("no", "<i class='stock out-of-stock'></i>"),
            ("yes", "<i class='stock in-stock'></i>"),
            ("no", "<i class='stock out-of-stock'></i>"),
            ("", "<i class='stock no-longer-available'></i>"),
        ],
    },
];

/// Learns from all pages but the last one. Returns the value that is read on the last page, and the learned chain.
fn learn_and_read_last(form: &Form) -> (Option<String>, Option<String>) {
    let made = |(number, (record, shown)): (usize, &(&str, &str))| {
        let html = format!(
            "<h1>Item {number}</h1><table><tr><th>Colour</th><td>{}</td></tr><tr><th>Value</th><td>{shown}</td></tr></table>",
            ["red", "green", "blue"][number % 3]
        );
        let known: &[&str] = match number + 1 < form.values.len() {
            true => &[record],
            false => &[],
        };
        page(&format!("item/{number}"), html, &[("field", known)])
    };
    let pages: Vec<Page> = form.values.iter().enumerate().map(made).collect();
    let (last, known) = pages.split_last().unwrap();
    let learned = learn(known, &[], &task()).unwrap();
    let mapping = learned.mappings.first();
    let value = mapping.and_then(|one| read(&one.mapping, last).get("field").cloned());
    let text = value.map(|value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    });
    let chain = mapping.map(|one| one.mapping["fields"].to_string());
    (text, chain)
}

/// Whether a text is the expected value. A time may have another notation, because it gets its column's form only when
/// a table is filled.
fn is_right(text: &str, wanted: &str) -> bool {
    text == wanted || webfill_learn::minutes_of_day(text).is_some() && is_same_value(wanted, text)
}

#[test]
fn values_are_read_in_the_form_of_the_record() {
    let mut wrong = Vec::new();
    for form in FORMS {
        let wanted = form.values.last().unwrap().0;
        let (text, chain) = learn_and_read_last(form);
        if !text.as_deref().is_some_and(|text| is_right(text, wanted)) {
            wrong.push(format!(
                "{}: {text:?}, not {wanted}, by {chain:?}",
                form.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_text_that_only_looks_like_the_form_is_not_read() {
    let mut wrong = Vec::new();
    for form in LOOK_ALIKES {
        let wanted = form.values.last().unwrap().0;
        let (text, chain) = learn_and_read_last(form);
        if text.as_deref().is_some_and(|text| !is_right(text, wanted)) {
            wrong.push(format!("{}: {text:?} by {chain:?}", form.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
