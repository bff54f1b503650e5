//! Tests tables with few known values: a rule learned from one or two rows is used if another kind of anchor (such as a
//! label or a class) confirms it on all pages. Also tests columns with few different values: a value that a page
//! contains with another meaning is no evidence.

use webfill_tests::run::Run;
use webfill_tests::site::{Page, Reply, Web, page, status};
use webfill_tests::workplace::Workplace;

use super::made_web::{
    BOOKS, Oddities, book_count, book_url, fill_command, read_rows, serve_books, true_values,
};

/// A table where the first `known` books of each site have all values, and the other books have none.
fn table_of_books(known: usize) -> String {
    let mut text = String::from("id,link,title,author,year,publisher,note\n");
    for book in 0..book_count() {
        let cells = match book % BOOKS < known {
            true => true_values(book).join(","),
            false => String::from(",,,"),
        };
        text += &format!("b{book},{},{cells},mine\n", book_url(book));
    }
    text
}

#[test]
fn one_complete_row_for_each_site_fills_most_gaps() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    work.write("books.csv", table_of_books(1));
    fill_command(&work, &web).finish().expect_code(0);
    let (mut filled, mut gaps) = (0, 0);
    for (book, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        for (field, value) in true_values(book).iter().enumerate() {
            let written = &row[2 + field];
            gaps += usize::from(book % BOOKS > 0);
            filled += usize::from(book % BOOKS > 0 && !written.is_empty());
            assert!(
                written.is_empty() || written == value,
                "book {book}: {written} instead of {value}"
            );
        }
    }
    assert!(filled * 10 >= gaps * 6, "{filled} of {gaps}");
}

const LAMPS: usize = 40;
const COLOURS: [&str; 5] = ["red", "green", "blue", "yellow", "white"];

fn lamp_colour(lamp: usize) -> &'static str {
    COLOURS[lamp * 7 % 11 % 5]
}

/// Serves the pages of lamps. Each page has the colour of its lamp, and also lists all existing colours.
fn serve_lamps(web: &Web) {
    web.site("lamps.example").serve_otherwise(|request| -> Reply {
        let lamp: Option<usize> = request
            .path
            .strip_prefix("/lamp/")
            .and_then(|number| number.parse().ok());
        let Some(lamp) = lamp else {
            return page("Nothing here").status(404).into();
        };
        let others: String = COLOURS
            .iter()
            .map(|colour| format!("<li>Lamps in {colour}</li>"))
            .collect();
        let text = format!(
            "<html><head><title>Lamps</title></head><body><h1>Lamp {lamp} of the series</h1><table><tr><th>Colour</th><td>{}</td></tr>\
             <tr><th>Weight</th><td>{} g</td></tr></table><ul>{others}</ul></body></html>",
            lamp_colour(lamp),
            lamp_weight(lamp)
        );
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
}

fn lamp_weight(lamp: usize) -> usize {
    2_000 + lamp * 37
}

#[test]
fn a_column_of_few_values_is_filled_although_pages_also_show_wrong_ones() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_lamps(&web);
    let is_wrong = |lamp: usize| lamp.is_multiple_of(8);
    let mut text = String::from("id,link,colour,weight\n");
    for lamp in 0..LAMPS {
        let cells = match lamp % 2 {
            1 => String::from(","),
            _ if is_wrong(lamp) => {
                let wrong = COLOURS.iter().find(|one| **one != lamp_colour(lamp));
                format!("{},{} g", wrong.unwrap(), lamp_weight(lamp + 1))
            }
            _ => format!("{},{} g", lamp_colour(lamp), lamp_weight(lamp)),
        };
        text += &format!("l{lamp},http://lamps.example/lamp/{lamp},{cells}\n");
    }
    work.write("books.csv", text);
    Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
    for (lamp, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        if lamp % 2 == 1 {
            assert_eq!(row[2], lamp_colour(lamp), "lamp {lamp}");
        }
    }
    let doubts = read_rows(&work, "books.doubts.csv");
    let of_colour = doubts.iter().filter(|doubt| doubt[2] == "colour");
    assert_eq!(of_colour.count(), LAMPS / 8, "{doubts:#?}");
}

const KITCHENS: [&str; 10] = [
    "American",
    "Indian",
    "Southern",
    "Eclectic",
    "Continental",
    "American",
    "Mexican",
    "American",
    "Cafe",
    "Thai",
];

/// Serves the pages of houses. The description of the first house names a Mexican dish, although its kitchen is another
/// one.
fn serve_houses(web: &Web) {
    web.site("houses.example").serve_otherwise(|request| -> Reply {
        let house: Option<usize> = request
            .path
            .strip_prefix("/house/")
            .and_then(|number| number.parse().ok());
        let Some((house, kitchen)) = house.zip(house.and_then(|house| KITCHENS.get(house))) else {
            return page("Nothing here").status(404).into();
        };
        let dish = if house == 0 { "Mexican" } else { "hot" };
        let text = format!(
            "<html><head><title>House {house}</title></head><body><h1>House {house} of the town</h1>\
             <p>Come early, for lunch is crowded: the menu has eggs, soups, a {dish} dish called migas, and salads.</p>\
             <table><tr><th>Kitchen</th><td class=\"kitchen\">{kitchen}</td></tr>\
             <tr><th>Telephone</th><td class=\"tel\">907/279-{}</td></tr></table></body></html>",
            1_000 + house * 37
        );
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
}

#[test]
fn a_wrong_value_found_in_a_description_does_not_spoil_its_column() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_houses(&web);
    let mut text = String::from("id,link,kitchen,telephone\n");
    for (house, true_kitchen) in KITCHENS.iter().enumerate() {
        let kitchen = match house {
            0 => "Mexican",
            1..6 => true_kitchen,
            _ => "",
        };
        let telephone = match house % 3 {
            0 => String::new(),
            _ => format!("907/279-{}", 1_000 + house * 37),
        };
        text += &format!("h{house},http://houses.example/house/{house},{kitchen},{telephone}\n");
    }
    work.write("books.csv", text);
    Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
    let filled = read_rows(&work, "books.filled.csv");
    for (house, row) in filled.iter().enumerate().skip(6) {
        assert_eq!(row[2], KITCHENS[house], "house {house}");
    }
    let doubts = read_rows(&work, "books.doubts.csv");
    let cells: Vec<[&str; 2]> = doubts
        .iter()
        .map(|doubt| [&*doubt[1], &*doubt[2]])
        .collect();
    assert_eq!(cells, [["h0", "kitchen"]]);
}
