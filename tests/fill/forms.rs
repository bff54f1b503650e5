//! Tests that values are written in the same form as the other values of their column, and only into a table that has
//! not changed during the run.

use std::collections::BTreeMap;

use webfill_tests::site::{Page, Reply, Web, page, status};
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, fill_command, read_evidence, read_rows, serve_books, table_with_gaps,
};

const BOOKS: usize = 30;

/// Serves a site with the number of sold copies and the motto of each book. A spreadsheet would treat one of the mottos
/// as a formula.
fn serve_sales(web: &Web) {
    web.site("sales.example").serve_otherwise(move |request| -> Reply {
        let book: Option<usize> = request
            .path
            .strip_prefix("/book/")
            .and_then(|number| number.parse().ok());
        let Some(book) = book else {
            return page("Nothing here").status(404).into();
        };
        let text = format!(
            "<html><head><title>Sales</title></head><body><h1>Book {book} of the series</h1><table><tr><th>Sold</th><td>{}</td></tr>\
             <tr><th>Motto</th><td>{}</td></tr></table></body></html>",
            group_digits(sold_copies(book)),
            book_motto(book)
        );
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
}

fn sold_copies(book: usize) -> usize {
    1_000_000 + book * 7_919
}

fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    format!("{},{},{}", &digits[..1], &digits[1..4], &digits[4..])
}

/// The motto of a book. Each motto contains a bracket or a sign that is used in formulas, and one motto begins with
/// `=`.
fn book_motto(book: usize) -> String {
    let beginning = ["(a", "b=", "c-", "d+"][book % 4];
    match book {
        3 => String::from("=d motto 93"),
        book => format!("{beginning} motto {}", book * 31),
    }
}

#[test]
fn values_are_written_in_the_form_of_their_column() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_sales(&web);
    let mut text = String::from("id,link,sold,motto\n");
    for book in 0..BOOKS {
        let sold = if book % 3 == 1 {
            String::new()
        } else {
            sold_copies(book).to_string()
        };
        let motto = if book % 3 == 0 {
            String::new()
        } else {
            book_motto(book)
        };
        text += &format!("b{book},http://sales.example/book/{book},{sold},{motto}\n");
    }
    work.write("books.csv", text);
    let run = plain_fill_command(&work, &web).finish().expect_code(0);
    for (book, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2], sold_copies(book).to_string(), "book {book}");
        // The motto of book 3 is not written, because a spreadsheet would treat it as a formula.
        let expected = if book == 3 {
            String::new()
        } else {
            book_motto(book)
        };
        assert_eq!(row[3], expected, "book {book}");
    }
    assert!(run.stderr.contains("as a formula"), "{}", run.stderr);
    let lines = read_evidence(&work);
    let refused: Vec<_> = lines
        .iter()
        .filter(|line| line["state"] == "refused")
        .collect();
    assert_eq!(refused.len(), 1, "{refused:#?}");
    assert_eq!(refused[0]["value"], "=d motto 93");
    assert!(refused[0]["refusal"].as_str().unwrap().contains("formula"));
    assert!(run.stdout.contains("1 refused"), "{}", run.stdout);
}

fn plain_fill_command(work: &Workplace, web: &Web) -> webfill_tests::run::Run {
    webfill_tests::run::Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
}

#[test]
fn a_table_that_is_changed_during_the_run_is_not_filled() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &Oddities::default());
    let before = table_with_gaps(&BTreeMap::new());
    work.write("books.csv", &before);
    let running = fill_command(&work, &web)
        .replace_flag("--delay", "0.02")
        .start();
    web.log()
        .wait_until("some pages were asked", |visits| visits.pages().len() >= 5);
    // A row is inserted at the top of the table, so the numbers of all rows change.
    let (head, rest) = before.split_once('\n').unwrap();
    work.write("books.csv", format!("{head}\nnew,,A,B,1900,C,mine\n{rest}"));
    let run = running.finish().expect_code(1);
    assert!(
        run.stderr.contains("was changed during the run"),
        "{}",
        run.stderr
    );
    assert!(!work.path("books.filled.csv").exists());
    let before = web.visits().len();
    fill_command(&work, &web).finish().expect_code(0);
    assert_eq!(read_rows(&work, "books.filled.csv")[0][0], "new");
    assert_eq!(web.visits().len(), before);
}

#[test]
fn lists_without_common_entries_are_lists_and_hold_no_value_twice() {
    let (work, web) = (Workplace::new(), Web::start());
    let numbers = |book: usize| -> Vec<String> {
        let number = |which: usize| format!("(325) 674-{:04}", 1_000 + book * 37 + which * 11);
        (0..2 + book % 2).map(number).collect()
    };
    web.site("shops.example").serve_otherwise(move |request| -> Reply {
        let shop = request.path.strip_prefix("/shop/");
        let Some(shop) = shop.and_then(|number| number.parse().ok()) else {
            return page("Nothing here").status(404).into();
        };
        let items = numbers(shop);
        let again = items[0].clone();
        let items = items.into_iter().chain([again]);
        let items: String = items.map(|number| format!("<li>{number}</li>")).collect();
        let text = format!("<html><body><h1>Shop</h1><h2>Call</h2><ul class=\"call\">{items}</ul></body></html>");
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
    let mut text = String::from("id,link,phone\n");
    for shop in 0..BOOKS {
        let phone = if shop % 3 == 1 {
            String::new()
        } else {
            numbers(shop).join("; ")
        };
        text += &format!("s{shop},http://shops.example/shop/{shop},{phone}\n");
    }
    work.write("books.csv", text);
    plain_fill_command(&work, &web).finish().expect_code(0);
    for (shop, row) in read_rows(&work, "books.filled.csv").iter().enumerate() {
        assert_eq!(row[2], numbers(shop).join("; "), "shop {shop}");
    }
}

#[test]
fn misspelt_values_are_reported_and_leave_no_gap_open() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_sales(&web);
    // Five rows have a known value, and three of these values are misspelt.
    let misspelt = [4, 11, 17];
    let mut text = String::from("id,link,sold\n");
    for book in 0..BOOKS {
        let mut known = group_digits(sold_copies(book));
        if misspelt.contains(&book) {
            let other = if &known[6..7] == "3" { "4" } else { "3" };
            known.replace_range(6..7, other);
        } else if book != 1 && book != 22 {
            known.clear();
        }
        text += &format!("b{book},http://sales.example/book/{book},\"{known}\"\n");
    }
    work.write("books.csv", text);
    plain_fill_command(&work, &web).finish().expect_code(0);
    let lines = read_evidence(&work);
    for line in lines.iter().filter(|line| line["column"] == "sold") {
        let book = line["row"].as_u64().unwrap() as usize - 2;
        let expected = match book {
            1 | 22 => "known",
            book if misspelt.contains(&book) => "contradicted",
            _ => "filled",
        };
        assert_eq!(line["state"], expected, "{line}");
        assert_eq!(line["value"], group_digits(sold_copies(book)), "{line}");
    }
}

/// The fields of a car: name, value as the page writes it, and value as the table writes it.
fn car_facts(number: usize) -> [(&'static str, String, String); 5] {
    let (city, highway) = (18 + number % 7, 27 + number % 11);
    let (feet, inches) = (4 + number % 3, number % 12);
    let (first, last) = (
        ["Ada", "Grace", "J. R. R."][number % 3],
        ["Byron", "Hopp", "Tolk", "Lisk", "Worth"][number % 5],
    );
    let (day, month) = (1 + (number * 5) % 28, 1 + number % 12);
    let price = format!("{}.{:02}", 100 + number * 3, number % 100);
    [
        (
            "economy",
            format!("{city} City / {highway} Hwy"),
            format!("{city}/{highway}"),
        ),
        (
            "height",
            format!("{feet} ft {inches} in"),
            format!("{feet}-{inches}"),
        ),
        (
            "designer",
            format!("{last}, {first}"),
            format!("{first} {last}"),
        ),
        (
            "built",
            format!("2010-{month:02}-{day:02}"),
            format!("{day:02}.{month:02}.2010"),
        ),
        ("price", price.clone(), format!("${price}")),
    ]
}

#[test]
fn values_that_pages_write_otherwise_get_the_form_of_the_known_ones() {
    let (work, web) = (Workplace::new(), Web::start());
    web.site("cars.example")
        .serve_otherwise(move |request| -> Reply {
            let number = request.path.strip_prefix("/car/");
            let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else {
                return page("Nothing here").status(404).into();
            };
            let facts: String = car_facts(number)
                .iter()
                .map(|(name, shown, _)| format!("<tr><th>{name}</th><td>{shown}</td></tr>"))
                .collect();
            let text = format!(
                "<html><body><h1>Car {number} of ours</h1><table>{facts}</table></body></html>"
            );
            let page: Page = status(200)
                .header("content-type", "text/html; charset=utf-8")
                .body(text);
            page.into()
        });
    let mut text = String::from("id,link,economy,height,designer,built,price\n");
    for number in 0..BOOKS {
        let cells = car_facts(number).map(|(_, _, wanted)| match number % 2 {
            0 => wanted,
            _ => String::new(),
        });
        text += &format!(
            "c{number},http://cars.example/car/{number},{}\n",
            cells.join(",")
        );
    }
    work.write("books.csv", text);
    plain_fill_command(&work, &web).finish().expect_code(0);
    let filled = std::fs::read_to_string(work.path("books.filled.csv")).unwrap();
    for (number, line) in filled.lines().skip(1).enumerate() {
        let wanted = car_facts(number).map(|(_, _, wanted)| wanted).join(",");
        let expected = format!("c{number},http://cars.example/car/{number},{wanted}");
        assert_eq!(line, expected, "car {number}");
    }
    // The learned mapping converts the values by ordinary processors.
    let mapping = work.path("books.webfill/mappings/cars.example.json");
    let mapping = std::fs::read_to_string(mapping).unwrap();
    assert!(
        mapping.contains("\"replace\"") && mapping.contains("\"prefix\""),
        "{mapping}"
    );
}

#[test]
fn a_short_value_that_is_on_every_page_by_chance_is_still_doubted() {
    let (work, web) = (Workplace::new(), Web::start());
    web.site("shops.example").serve_otherwise(move |request| -> Reply {
        let shop = request.path.strip_prefix("/shop/");
        let Some(shop) = shop.and_then(|number| number.parse::<usize>().ok()) else {
            return page("Nothing here").status(404).into();
        };
        let text = format!(
            "<html><body><p>Open 7 days, 9 to 5.</p><h1>Shop {shop}</h1><table><tr><th>Floors</th><td>{}</td></tr></table></body></html>",
            shop % 3 + 2
        );
        let page: Page = status(200)
            .header("content-type", "text/html; charset=utf-8")
            .body(text);
        page.into()
    });
    let mut text = String::from("id,link,floors\n");
    for shop in 0..BOOKS {
        let floors = match shop {
            8 => String::from("7"),
            shop if shop % 3 == 1 => String::new(),
            shop => (shop % 3 + 2).to_string(),
        };
        text += &format!("s{shop},http://shops.example/shop/{shop},{floors}\n");
    }
    work.write("books.csv", text);
    plain_fill_command(&work, &web).finish().expect_code(0);
    let doubts = std::fs::read_to_string(work.path("books.doubts.csv")).unwrap();
    let doubted: Vec<&str> = doubts.lines().skip(1).collect();
    assert_eq!(doubted.len(), 1, "{doubts}");
    assert!(doubted[0].contains("s8,floors,7,4,"), "{doubts}");
}
