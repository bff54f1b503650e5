//! Tests tables in the encodings that spreadsheets used before UTF-8.

use webfill_tests::run::Run;
use webfill_tests::site::{Web, document};
use webfill_tests::workplace::Workplace;

const BOOKS: usize = 30;
const WRITERS: [&str; 6] = ["Пушкин", "Гоголь", "Чехов", "Толстой", "Бунин", "Лермонтов"];

fn publisher(book: usize) -> String {
    format!("{} и сыновья {book}", WRITERS[book % WRITERS.len()])
}

/// A table of books. `publisher` returns the last cell of each row.
fn table(publisher: impl Fn(usize) -> String) -> Vec<u8> {
    let rows = (0..BOOKS)
        .map(|book| format!("{book};http://books.example/{book};{}\r\n", publisher(book)));
    windows_1251(&format!("id;url;publisher\r\n{}", rows.collect::<String>()))
}

fn windows_1251(text: &str) -> Vec<u8> {
    let byte = |c: char| match c {
        'А'..='я' => u32::from(c) - u32::from('А') + 0xc0,
        c => u32::from(c),
    };
    text.chars().map(|c| byte(c) as u8).collect()
}

#[test]
fn a_table_in_a_legacy_encoding_is_filled_in_it() {
    let (work, web) = (Workplace::new(), Web::start());
    let site = web.site("books.example");
    for book in 0..BOOKS {
        let html = format!(
            "<title>Book {book}</title><h1>Book {book}</h1><dl><dt>Publisher<dd>{}<dt>Pages<dd>{}</dl>",
            publisher(book),
            100 + 7 * book
        );
        site.serve(
            &format!("/{book}"),
            document("text/html; charset=utf-8", html),
        );
    }
    work.write(
        "books.csv",
        table(|book| match book % 3 {
            0 => String::new(),
            _ => publisher(book),
        }),
    );
    let run = Run::new(["fill", "books.csv", "--delay", "0", "--progress", "none"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
        .finish()
        .expect_code(0);
    assert!(run.stdout.contains("windows-1251"), "{}", run.stdout);
    let filled = std::fs::read(work.path("books.filled.csv")).unwrap();
    assert!(
        filled == table(publisher),
        "{}",
        String::from_utf8_lossy(&filled)
    );
}
