use super::*;

#[test]
fn values_get_the_form_of_their_column_or_are_refused() {
    let table = [
        (Kind::Integer, "1234567", Some("1234567")),
        (Kind::Integer, "1,234,567", Some("1234567")),
        (Kind::Integer, "1 234", Some("1234")),
        (Kind::Integer, "1\u{a0}234", Some("1234")),
        (Kind::Integer, "\u{2212}1,234", Some("-1234")),
        (Kind::Integer, "1.234.567", Some("1234567")),
        // This may mean 1 and a fraction, or more than a thousand.
        (Kind::Integer, "1.234", None),
        (Kind::Integer, "12,34", None),
        (Kind::Integer, "1,23,456", None),
        (Kind::Integer, "about 1,234", None),
        (Kind::Integer, "300 pages", None),
        (Kind::Integer, ",123", None),
        (Kind::Number, "1,234.50", Some("1234.50")),
        (Kind::Number, "1.234,50", Some("1234.50")),
        (Kind::Number, "12,5", Some("12.5")),
        (Kind::Number, "12.5", Some("12.5")),
        (Kind::Number, "12.5 kg", None),
        (Kind::Date, "2010-05-25", Some("2010-05-25")),
        (Kind::Date, "May 25, 2010", Some("2010-05-25")),
        (Kind::Date, "01/02/2024", None),
        (Kind::Url, "/a/b", None),
        (Kind::Text, "1,234", Some("1,234")),
    ];
    for (form, value, expected) in table {
        let fitted = fitted(value, form).ok();
        assert_eq!(fitted.as_deref(), expected, "{value} as {form}");
    }
}

#[test]
fn numbers_get_the_digits_after_the_point_that_their_column_has() {
    let of = |values: &[&str]| decimals(|| values.iter().map(|value| (*value).to_owned()));
    assert_eq!(of(&["1.50", "20.00"]), Some(2));
    assert_eq!(of(&["1.5", "20.25"]), None);
    assert_eq!(of(&["1", "20"]), None);
    assert_eq!(of(&[]), None);
    let padded = |value: &str| padded(value.to_owned(), Some(2));
    assert_eq!(padded("956.1"), "956.10");
    assert_eq!(padded("-956"), "-956.00");
    assert_eq!(padded("1.234"), "1.234");
    assert_eq!(padded("1e5"), "1e5");
}

#[test]
fn the_end_of_a_value_says_whether_it_is_all() {
    for value in [
        "Iris Murdoch and 2 more",
        "Ada Byron, +3 others",
        "Ada Byron et al.",
        "A lamp of bra...",
        "A lamp of\u{2026} ",
        "Ada Byron und 12 weitere",
    ] {
        assert!(is_cut_off(value), "{value}");
    }
    for value in ["No more", "Ten others", "et", "more", "", "Al", "A lamp."] {
        assert!(!is_cut_off(value), "{value}");
    }
}

#[test]
fn a_column_of_names_has_letters() {
    let names = [
        "Acorn", "B2", "7 Stars", "Cedar", "Elm", "Fir", "Gorse", "Holly",
    ];
    let of = |names: &[&str]| has_letters(|| names.iter().map(|name| (*name).to_owned()));
    assert!(of(&names) && !of(&names[1..]));
    assert!(!of(&[&names[..], &["1984"]].concat()));
}

#[test]
fn points_in_time_are_in_the_zone_of_their_column() {
    let of = |values: &[&str]| is_in_utc(|| values.iter().map(|value| (*value).to_owned()));
    assert!(of(&["2020-11-20T02:38:00Z", "2021-11-20T02:38:00Z"]));
    assert!(!of(&["2020-11-20T02:38:00Z", "2021-11-20T02:38:00"]) && !of(&[]));
    let utc = |value: &str| in_utc(value.to_owned()).ok();
    for (value, expected) in [
        ("2020-11-20T04:38:00+02:00", Some("2020-11-20T02:38:00Z")),
        ("2020-11-20T02:38:00Z", Some("2020-11-20T02:38:00Z")),
        ("2020-11-20T02:38:00", None),
        ("2020-11-20", Some("2020-11-20")),
    ] {
        assert_eq!(utc(value).as_deref(), expected, "{value}");
    }
}

#[test]
fn a_day_that_is_a_century_beyond_the_known_ones_is_not_certain() {
    let known = || ["1966-01-02", "2030-05-06"].into_iter().map(str::to_owned);
    let years = years(known).unwrap();
    assert_eq!(years, (1966, 2030));
    for (day, expected) in [
        ("2064-05-01", true),
        ("2066-05-01", true),
        ("2031-05-01", false),
        ("1999-05-01", false),
        ("1930-05-01", false),
        ("2166-05-01", false),
    ] {
        assert_eq!(may_be_of_other_century(day, years), expected, "{day}");
    }
}

#[test]
fn amounts_are_one_number_with_a_sign() {
    for value in [
        "$9,970",
        "12,50 \u{20ac}",
        "\u{20ac} 1 234.50",
        "$ 12",
        "50 %",
        "-$5",
        "1\u{2019}000 $",
        "\u{a3}5",
        "\u{20b9} 1,00,000",
    ] {
        assert!(is_amount(value), "{value}");
    }
    let others = [
        "$114,200 - $155,100",
        "$12\u{2013}15",
        "1,234",
        "from $12",
        "USD 12",
        "907/279-7311",
        "+49 30 123456",
        "6-5",
        "6'2\"",
        "$",
        "",
    ];
    for value in others {
        assert!(!is_amount(value), "{value}");
    }
    let of = |values: &[&str]| has_amounts(|| values.iter().map(|value| (*value).to_owned()));
    assert!(of(&["$9,970", "$12.50"]));
    assert!(!of(&["$9,970", "$12 - $15"]) && !of(&["12", "13"]) && !of(&[]));
}

#[test]
fn amounts_have_the_space_at_their_sign_that_their_column_has() {
    let of = |values: &[&str]| amount_space(|| values.iter().map(|value| (*value).to_owned()));
    let table = [
        (["42%", "7%"], "15 %", "15%"),
        (["42 %", "7 %"], "15%", "15 %"),
        (
            ["12,50\u{a0}\u{20ac}", "7,00\u{a0}\u{20ac}"],
            "3,10 \u{20ac}",
            "3,10\u{a0}\u{20ac}",
        ),
        (["$12", "$ 7"], "$ 15", "$ 15"),
        (["$12", "$7"], "-$ 15.00", "-$15.00"),
        (["$12", "$7"], "$ 15 - $ 20", "$ 15 - $ 20"),
        (["$12", "$7"], "15", "15"),
    ];
    for (column, value, expected) in table {
        let space = of(&column);
        let written = with_space_at_sign(value.to_owned(), space.as_deref());
        assert_eq!(written, expected, "{column:?}");
    }
}

#[test]
fn commas_between_words_are_written_as_their_column_has_them() {
    let of = |values: &[&str]| comma(|| values.iter().map(|value| (*value).to_owned()));
    let tight = of(&["Soup", "Dinner,Lunch", "Main Course,Pasta,Easy"]);
    assert_eq!(tight, Some(","));
    let spaced = of(&["Byron, Ada", "Hopper, Grace", "Knuth, Donald"]);
    assert_eq!(spaced, Some(", "));
    assert_eq!(of(&["Byron, Ada", "Hopper,Grace", "Knuth, Donald"]), None);
    assert_eq!(of(&["1,234", "5,678", "a, 1", "Dinner,Lunch"]), None);
    let written = |value: &str, comma| with_commas(value.to_owned(), comma);
    assert_eq!(written("Dinner, Lunch,  Tea", tight), "Dinner,Lunch,Tea");
    assert_eq!(written("Byron,Ada", spaced), "Byron, Ada");
    assert_eq!(written("1, 2 and 3,b", tight), "1, 2 and 3,b");
    assert_eq!(written("Dinner, Lunch", None), "Dinner, Lunch");
}

#[test]
fn commas_within_words_and_numbers_stay_as_they_are() {
    // Each entry has a value, then its form in a column with spaces after commas, then its form in a column without.
    let table = [
        ("Smith,John", "Smith, John", "Smith,John"),
        ("Smith, John", "Smith, John", "Smith,John"),
        ("Smith,J.", "Smith, J.", "Smith,J."),
        ("Smith,J. R.", "Smith, J. R.", "Smith,J. R."),
        ("O'Neill,Anna", "O'Neill, Anna", "O'Neill,Anna"),
        (
            "Lloyd-Webber,Andrew",
            "Lloyd-Webber, Andrew",
            "Lloyd-Webber,Andrew",
        ),
        ("Washington,D.C.", "Washington, D.C.", "Washington,D.C."),
        ("Acme Co., Ltd.", "Acme Co., Ltd.", "Acme Co., Ltd."),
        ("en,de,fr", "en, de, fr", "en,de,fr"),
        (
            "\u{6771}\u{4eac},\u{5927}\u{962a}",
            "\u{6771}\u{4eac}, \u{5927}\u{962a}",
            "\u{6771}\u{4eac},\u{5927}\u{962a}",
        ),
        (
            "Main Course,Soup, Tea",
            "Main Course, Soup, Tea",
            "Main Course,Soup,Tea",
        ),
        // On the page, a space follows the comma, so the comma separates words.
        ("Anna, Mary-Ann", "Anna, Mary-Ann", "Anna,Mary-Ann"),
    ];
    for (value, spaced, tight) in table {
        assert_eq!(with_commas(value.to_owned(), Some(", ")), spaced);
        assert_eq!(with_commas(value.to_owned(), Some(",")), tight);
    }
    let same = [
        "1,234",
        "1,234,567.5",
        "48.1,11.5",
        "1, 2",
        "48.1N,11.5E",
        "N,N-Dimethylaniline",
        "O,O-Diethyl",
        "N,N',N''-Triphenyl",
        "trans,trans-2,4-Decadienal",
        "cis,trans-decalin",
        "\u{3b1},\u{3b2}-unsaturated",
        "(R,R)-Tartaric acid",
        "A,B",
        "f(x,y)",
        "max(first,second)",
        "rgb(a,b)",
        "https://example.org/a,b",
        "https://example.org/maps/berlin,mitte/",
        "ada@example.org,alan@example.org",
        "www.example.org,www.example.net",
        "font-family:Arial,Helvetica",
        "Arial,Helvetica,sans-serif",
        "a=b,c=d",
        "de_DE,en_US",
        "H2O,NaCl",
        "C:\\a,b",
        "Anna,Mary-Ann",
        // The first comma may be within a word, so no comma is changed.
        "N,N-Dimethylaniline, Acetone",
    ];
    for value in same {
        for comma in [", ", ","] {
            assert_eq!(with_commas(value.to_owned(), Some(comma)), value);
        }
    }
    // Commas that may be within words do not show the style of the column.
    let of = |values: &[&str]| comma(|| values.iter().map(|value| (*value).to_owned()));
    assert_eq!(
        of(&["N,N-Dimethyl", "O,O-Diethyl", "S,S-Ethyl", "Ethanol"]),
        None
    );
}

#[test]
fn the_form_of_a_column_is_that_of_nearly_all_its_values() {
    let of = |values: &[&str]| common_kind(|| values.iter().map(|value| (*value).to_owned()));
    assert_eq!(of(&["1", "20"]), Kind::Integer);
    assert_eq!(of(&["1", "2.5"]), Kind::Number);
    assert_eq!(of(&["2010-05-25"]), Kind::Date);
    assert_eq!(of(&["1", "two", "3"]), Kind::Text);
    assert_eq!(of(&["0123", "0456"]), Kind::Text);
    assert_eq!(of(&[]), Kind::Text);
    let mut one_wrong = vec!["7"; 99];
    one_wrong.push("seven");
    assert_eq!(of(&one_wrong), Kind::Integer);
}
