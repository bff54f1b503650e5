//! A site of people and books, in two layouts.

use serde_json::{Value, json};
use webfill_tests::site::{Page, Reply, Site, Web, page, redirect, status};
use webfill_tests::workplace::Workplace;

pub const HOST: &str = "people.example";
pub const PEOPLE: usize = 12;
pub const BOOKS: usize = 4;

const NAMES: [&str; PEOPLE] = [
    "Ada Byron",
    "Alan Turing",
    "Grace Hopper",
    "Edsger Dijkstra",
    "Barbara Liskov",
    "Donald Knuth",
    "Frances Allen",
    "John Backus",
    "Jean Bartik",
    "Tony Hoare",
    "Karen Jones",
    "Niklaus Wirth",
];
const CITIES: [&str; PEOPLE] = [
    "London",
    "Wilmslow",
    "Arlington",
    "Nuenen",
    "Boston",
    "Stanford",
    "Peru",
    "Ashland",
    "Poughkeepsie",
    "Cambridge",
    "Huddersfield",
    "Winterthur",
];

pub fn person_name(number: usize) -> &'static str {
    NAMES[number]
}

pub fn person_city(number: usize) -> &'static str {
    CITIES[number]
}

pub fn birth_year(number: usize) -> String {
    (1815 + number * 7).to_string()
}

pub fn person_url(number: usize) -> String {
    format!("http://{HOST}/p/{number}")
}

/// The number of pages.
pub fn page_count() -> usize {
    PEOPLE + BOOKS
}

fn html_document(title: &str, main: &str) -> String {
    format!(
        "<!DOCTYPE html><html><head><title>{title} - The Register</title></head><body>\
         <div id=\"top\"><a href=\"/\">The Register</a> <span>London, 1999</span></div>\
         {main}<div class=\"footer\">Printed in Boston, 1843</div></body></html>"
    )
}

pub fn person_html(number: usize) -> String {
    let main = format!(
        "<h1 class=\"heading\"> {} </h1><table class=\"facts\"><tr><th>Born</th><td>{}</td></tr>\
         <tr><th>Died</th><td>{}</td></tr><tr><th>Number</th><td>{number}</td></tr></table>\
         <div class=\"place\"><span class=\"label\">City:</span> <b class=\"city\">{}</b></div>",
        person_name(number),
        birth_year(number),
        1900 + number * 9,
        person_city(number),
    );
    html_document(person_name(number), &main)
}

fn book_html(number: usize) -> String {
    let main = format!(
        "<article><h3>Book {number}</h3><p class=\"by\">by <i>Author {number}</i></p>\
         <ul><li>pages: {}</li></ul></article>",
        100 + number
    );
    html_document(&format!("Book {number}"), &main)
}

fn html_page(text: String) -> Page {
    status(200)
        .header("content-type", "text/html; charset=utf-8")
        .body(text)
}

/// Serves the site. `/old/N` redirects to `/p/N`.
pub fn serve_register(web: &Web) -> Site {
    let site = web.site(HOST);
    site.serve_otherwise(move |request| -> Reply {
        let number = |beginning: &str| {
            let rest = request.path.strip_prefix(beginning)?;
            rest.parse::<usize>().ok()
        };
        match (number("/p/"), number("/b/"), number("/old/")) {
            (Some(number), ..) if number < PEOPLE => html_page(person_html(number)).into(),
            (_, Some(number), _) if number < BOOKS => html_page(book_html(number)).into(),
            (.., Some(number)) => redirect(&format!("/p/{number}")).into(),
            _ => page("Nothing here").status(404).into(),
        }
    });
    site
}

/// The records of people. Every third value of each field is missing.
pub fn records_with_gaps() -> Vec<Value> {
    let record = |number: usize| {
        let unless = |missing: usize, value: Value| match number % 3 == missing {
            true => Value::Null,
            false => value,
        };
        json!({"id": number.to_string(), "urls": [person_url(number)], "fields": {
            "name": unless(0, json!(person_name(number))),
            "born": unless(1, json!(birth_year(number))),
            "city": unless(2, json!(person_city(number))),
        }})
    };
    (0..PEOPLE).map(record).collect()
}

/// Writes all pages into a folder, together with a list of them.
pub fn write_folder(work: &Workplace, folder: &str) {
    let mut lines = Vec::new();
    for number in 0..PEOPLE {
        work.write(&format!("{folder}/p{number}.html"), person_html(number));
        lines.push(json!({"url": person_url(number), "file": format!("p{number}.html")}));
    }
    for number in 0..BOOKS {
        work.write(&format!("{folder}/b{number}.html"), book_html(number));
        let url = format!("http://{HOST}/b/{number}");
        lines.push(json!({"url": url, "file": format!("b{number}.html")}));
    }
    work.write_lines(&format!("{folder}/pages.jsonl"), &lines);
}
