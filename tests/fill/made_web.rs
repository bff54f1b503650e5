//! Four sites of books, each with its own layout, and a table of these books that lacks some values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use webfill_tests::run::Run;
use webfill_tests::site::{Page, Reply, Web, page, script, status};
use webfill_tests::workplace::Workplace;

pub const SITES: [&str; 4] = [
    "shelf.example",
    "library.example",
    "press.example",
    "index.example",
];
/// The number of books on each site.
pub const BOOKS: usize = 24;

const FIRST: [&str; 12] = [
    "Ada", "Alan", "Grace", "Edsger", "Barbara", "Donald", "Frances", "John", "Jean", "Tony",
    "Karen", "Niklaus",
];
const LAST: [&str; 11] = [
    "Byron", "Turner", "Hopp", "Dykes", "Lisk", "Knudsen", "Allenby", "Backer", "Bartik", "Hoard",
    "Worth",
];
const NOUNS: [&str; 13] = [
    "Engine", "Garden", "Harbour", "Lantern", "Mirror", "Orchard", "Palace", "River", "Shadow",
    "Tower", "Valley", "Window", "Winter",
];
const PUBLISHERS: [&str; 7] = [
    "Acorn",
    "Birch House",
    "Cedar",
    "Dogwood & Sons",
    "Elm Street",
    "Fir",
    "Gorse",
];

/// The true values of a book. The numbers of books continue from site to site.
pub fn true_values(book: usize) -> [String; 4] {
    [
        format!(
            "The {} of {}",
            NOUNS[book % 13],
            NOUNS[(book / 13 + book * 5 + 1) % 13]
        ),
        format!("{} {}", FIRST[book % 12], LAST[(book * 3) % 11]),
        (1900 + (book * 37) % 120).to_string(),
        PUBLISHERS[(book * 5) % 7].to_owned(),
    ]
}

pub fn book_count() -> usize {
    SITES.len() * BOOKS
}

pub fn book_url(book: usize) -> String {
    format!("http://{}/book/{}", SITES[book / BOOKS], 1_000 + book * 7)
}

fn book_html(site: usize, book: usize, lacks: bool) -> String {
    let [title, author, year, publisher] =
        true_values(book).map(|value| value.replace('&', "&amp;"));
    let publisher = if lacks { String::new() } else { publisher };
    let other = true_values((book + 1) % book_count());
    let main = match site {
        0 => {
            let row = match lacks {
                true => String::new(),
                false => format!("<tr><th>Publisher</th><td>{publisher}</td></tr>"),
            };
            format!(
                "<h1>{title}</h1><table class=\"facts\"><tr><th>Author</th><td>{author}</td></tr>\
                 <tr><th>Year</th><td>{year}</td></tr>{row}</table>"
            )
        }
        1 => format!(
            "<h2 class=\"book-title\"> {title} </h2><dl><dt>Written by</dt><dd>{author}</dd>{}<dt>Published</dt><dd>{year}</dd></dl>",
            if lacks {
                String::new()
            } else {
                format!("<dt>House</dt><dd>{publisher}</dd>")
            }
        ),
        2 => format!(
            "<article><p itemprop=\"name\">{title}</p><p>by <a class=\"author\" href=\"/a\">{author}</a></p>\
             <ul><li>In print since <b id=\"year\">{year}</b></li>{}</ul></article>",
            if lacks {
                String::new()
            } else {
                format!("<li class=\"house\">{publisher}</li>")
            }
        ),
        _ => format!(
            "<div class=\"entry\"><span class=\"label\">Title:</span> <span>{title}</span><br>\
             <span class=\"label\">Author:</span> <span>{author}</span><br>\
             <span class=\"label\">Year:</span> <span>{year}</span><br>{}</div>",
            if lacks {
                String::new()
            } else {
                format!("<span class=\"label\">Publisher:</span> <span>{publisher}</span>")
            }
        ),
    };
    format!(
        "<!DOCTYPE html><html><head><title>{} - page {book}</title></head><body><div id=\"top\"><a href=\"/\">Home</a> \
         Since 1899</div>{main}<div class=\"also\">See also: <i>{}</i> ({})</div></body></html>",
        SITES[site], other[0], other[2]
    )
}

/// The differences between the pages and the table.
#[derive(Default, Clone)]
pub struct Oddities {
    /// The books whose pages name no publisher.
    pub lack_publisher: Vec<usize>,
    /// The books whose pages are gone.
    pub gone: Vec<usize>,
    /// The number of requests that are still answered. All later requests get no answer. `None` means no limit.
    pub answers: Option<Arc<AtomicUsize>>,
}

pub fn serve_books(web: &Web, oddities: &Oddities) {
    for (number, host) in SITES.iter().enumerate() {
        let odd = oddities.clone();
        web.site(host).serve_otherwise(move |request| -> Reply {
            let is_spent = |left: &Arc<AtomicUsize>| {
                let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                });
                taken.is_err()
            };
            if odd.answers.as_ref().is_some_and(is_spent) {
                return script().hold_open().into();
            }
            let id = request
                .path
                .strip_prefix("/book/")
                .and_then(|id| id.parse::<usize>().ok());
            let book = id.and_then(|id| id.checked_sub(1_000)).map(|id| id / 7);
            match book {
                Some(book) if book / BOOKS == number && !odd.gone.contains(&book) => {
                    let text = book_html(number, book, odd.lack_publisher.contains(&book));
                    let page: Page = status(200)
                        .header("content-type", "text/html; charset=utf-8")
                        .body(text);
                    page.into()
                }
                _ => page("Nothing here").status(404).into(),
            }
        });
    }
}

/// Whether the table lacks this value of a book. Two values in five are missing.
pub fn is_gap(book: usize, field: usize) -> bool {
    let mixed = (book * 4 + field + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) % 5 < 2
}

/// The table. The values in `wrong` replace the true ones, by book and field.
pub fn table_with_gaps(wrong: &BTreeMap<(usize, usize), String>) -> String {
    let mut text = String::from("id,link,title,author,year,publisher,note\n");
    for book in 0..book_count() {
        let values = true_values(book);
        let cells =
            values
                .iter()
                .enumerate()
                .map(|(field, value)| match wrong.get(&(book, field)) {
                    Some(value) => value.clone(),
                    None if is_gap(book, field) => String::new(),
                    None => value.clone(),
                });
        let cells: Vec<String> = cells.collect();
        text += &format!("b{book},{},{},mine\n", book_url(book), cells.join(","));
    }
    text
}

/// The rows of a table that was written, without its header. Each row is a list of cells.
pub fn read_rows(work: &Workplace, name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(work.path(name)).unwrap();
    text.lines()
        .skip(1)
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

pub fn read_evidence(work: &Workplace) -> Vec<Value> {
    let text = std::fs::read_to_string(work.path("books.evidence.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub fn gap_count() -> usize {
    (0..book_count())
        .map(|book| (0..4).filter(|&field| is_gap(book, field)).count())
        .sum()
}

/// The command `webfill fill books.csv` over the made web, without delays.
pub fn fill_command(work: &Workplace, web: &Web) -> Run {
    Run::new([
        "fill",
        "books.csv",
        "--keep",
        "note",
        "--delay",
        "0",
        "--progress",
        "none",
        "--workers",
        "2",
    ])
    .arg("--allow-private-networks")
    .args(web.resolve_args())
    .in_folder(work.path("."))
}

/// Some books whose pages name no publisher, and some whose pages are gone. Also some wrong values for the table.
pub fn example_oddities() -> (Oddities, BTreeMap<(usize, usize), String>) {
    let oddities = Oddities {
        lack_publisher: (0..book_count()).filter(|book| book % 12 == 1).collect(),
        gone: (0..book_count()).filter(|book| book % 24 == 5).collect(),
        ..Oddities::default()
    };
    let wrong =
        [7, 31, 55].map(|book| ((book, 2), true_values((book + 9) % book_count())[2].clone()));
    (oddities, wrong.into_iter().collect())
}

fn evidence_without_times(work: &Workplace) -> Vec<Value> {
    let mut lines = read_evidence(work);
    for line in &mut lines {
        line["fetched_at"] = Value::Null;
    }
    lines
}

/// Checks that two workplaces have the same outputs, except for times.
pub fn assert_same_outputs(one: &Workplace, other: &Workplace) {
    for name in ["books.filled.csv", "books.doubts.csv"] {
        let read = |work: &Workplace| std::fs::read_to_string(work.path(name)).unwrap();
        assert_eq!(read(one), read(other), "{name}");
    }
    assert_eq!(evidence_without_times(one), evidence_without_times(other));
    let mappings = |work: &Workplace| -> BTreeMap<String, String> {
        let files = std::fs::read_dir(work.path("books.webfill/mappings")).unwrap();
        let files = files.map(|file| file.unwrap());
        files
            .map(|file| {
                let text = std::fs::read_to_string(file.path()).unwrap();
                (file.file_name().to_string_lossy().into_owned(), text)
            })
            .collect()
    };
    assert_eq!(mappings(one), mappings(other));
}

pub fn fill_on_one_machine() -> Workplace {
    let (oddities, wrong) = example_oddities();
    let (work, web) = (Workplace::new(), Web::start());
    serve_books(&web, &oddities);
    work.write("books.csv", table_with_gaps(&wrong));
    fill_command(&work, &web).finish().expect_code(0);
    assert!(read_rows(&work, "books.doubts.csv").len() >= 2);
    work
}
