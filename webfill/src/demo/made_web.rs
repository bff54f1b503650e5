//! The web of the demo: twenty books at each of four sites. Each site has its own layout. On one site, some values are
//! behind a link; another site disallows a folder in robots.txt; and one page is gone.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use webfill_service::Fault;

/// The true values of all books. The pages of the demo are made from these values.
const TRUTH: &str = include_str!("../../demo/truth.csv");

const SHELF: &str = include_str!("../../demo/shelf.html");
const LIBRARY: &str = include_str!("../../demo/library.html");
const PRESS: &str = include_str!("../../demo/press.html");
const PRESS_DETAILS: &str = include_str!("../../demo/press-details.html");
const INDEX: &str = include_str!("../../demo/index.html");

const ROBOTS: &str = "User-agent: *\nDisallow: /reserve/\n";

/// The address of a page that the table links to, but that the demo does not serve.
const GONE: &str = "index.example/entry/1497";

/// The body of each page, by its host and path.
type Pages = BTreeMap<String, String>;

/// Serves the sites on a free loopback port until the process ends.
pub fn serve() -> Result<String, Fault> {
    let cannot = |error| Fault::error(format!("cannot serve the demo's sites: {error}"));
    let listener = TcpListener::bind("127.0.0.1:0").map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?.to_string();
    let pages = Arc::new(make_pages()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let pages = Arc::clone(&pages);
            std::thread::spawn(move || {
                // An error means that the client has closed the connection.
                let _ = answer_requests(&pages, stream);
            });
        }
    });
    Ok(address)
}

fn make_pages() -> Result<Pages, Fault> {
    let read: Result<Vec<csv::StringRecord>, csv::Error> =
        csv::Reader::from_reader(TRUTH.as_bytes())
            .records()
            .collect();
    let books = read.map_err(|error| Fault::error(format!("the demo's books: {error}")))?;
    let mut pages = Pages::from([(
        String::from("library.example/robots.txt"),
        ROBOTS.to_owned(),
    )]);
    for (at, book) in books.iter().enumerate() {
        let other = &books[(at + 1) % books.len()];
        let url = book[6].trim_start_matches("http://");
        let (layout, details) = match url.split('.').next() {
            Some("shelf") => (SHELF, None),
            Some("library") => (LIBRARY, None),
            Some("press") => (PRESS, Some(PRESS_DETAILS)),
            _ => (INDEX, None),
        };
        if url == GONE {
            continue;
        }
        if let Some(details) = details {
            pages.insert(
                format!("{url}/details"),
                fill_layout(details, url, book, other),
            );
        }
        pages.insert(url.to_owned(), fill_layout(layout, url, book, other));
    }
    Ok(pages)
}

fn fill_layout(
    layout: &str,
    url: &str,
    book: &csv::StringRecord,
    other: &csv::StringRecord,
) -> String {
    let path = url.find('/').map_or("", |at| &url[at..]);
    let values = [
        ("title", &book[1]),
        ("author", &book[2]),
        ("year", &book[3]),
        ("publisher", &book[4]),
        ("pages", &book[5]),
        ("path", path),
        ("other_title", &other[1]),
        ("other_author", &other[2]),
        ("other_year", &other[3]),
        ("other_pages", &other[5]),
    ];
    let mut page = layout.to_owned();
    for (name, value) in values {
        page = page.replace(&format!("{{{name}}}"), &value.replace('&', "&amp;"));
    }
    page
}

fn answer_requests(pages: &Pages, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    while reader.read_line(&mut request)? > 0 {
        let (mut host, mut header) = (String::new(), String::new());
        while reader.read_line(&mut header)? > 2 {
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("host")
            {
                value.trim().clone_into(&mut host);
            }
            header.clear();
        }
        let path = request.split(' ').nth(1).unwrap_or("/");
        stream.write_all(&http_response(pages.get(&format!("{host}{path}")), path))?;
        request.clear();
    }
    Ok(())
}

fn http_response(page: Option<&String>, path: &str) -> Vec<u8> {
    let (status, body) = match page {
        Some(body) => ("200 OK", body.as_str()),
        None => ("404 Not Found", "no such page"),
    };
    let kind = match path.ends_with(".txt") {
        true => "plain",
        false => "html",
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/{kind}; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
