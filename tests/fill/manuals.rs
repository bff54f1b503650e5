//! Takes the pictures for the README: fills a real table from the manuals of Python and PostgreSQL. Debian packages
//! contain the manuals, which are served on loopback under their public names.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use webfill_test_browser::{Browser, ENTER};
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Reply, Web, document, status};
use webfill_tests::workplace::Workplace;

use super::review::Dashboard;

/// For each site, its host, the folder of its manual on this machine, and the path of the manual on the site.
const MANUALS: [(&str, &str, &str); 2] = [
    (
        "docs.python.org",
        "/usr/share/doc/python3.11-doc/html",
        "/3.11",
    ),
    (
        "www.postgresql.org",
        "/usr/share/doc/postgresql-doc-15/html",
        "/docs/15",
    ),
];

/// A Python module or a PostgreSQL command: its name, its page, and the values on the page.
#[derive(Debug)]
struct Entry {
    name: String,
    url: String,
    values: [Option<String>; 3],
}

fn serve_manuals(web: &Web) {
    for (host, folder, path) in MANUALS {
        web.site(host).serve_otherwise(move |request| {
            let file = request.path.strip_prefix(path).map(|file| {
                let file = file.trim_start_matches('/');
                Path::new(folder).join(file)
            });
            let read = file.filter(|file| file.extension().is_some_and(|it| it == "html"));
            let read = read.and_then(|file| fs::read(file).ok());
            let page = read.map(|body| document("text/html; charset=utf-8", body));
            Reply::from(page.unwrap_or_else(|| status(404)))
        });
    }
}

/// The pages in a folder, sorted by name.
fn html_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    pages.retain(|path| path.extension().is_some_and(|it| it == "html"));
    pages.sort();
    pages
}

/// The text between two marks, without the tags in it.
fn text_between(html: &str, begin: &str, end: &str) -> Option<String> {
    let (_, rest) = html.split_once(begin)?;
    let (inside, _) = rest.split_once(end)?;
    let mut text = String::new();
    let mut is_tag = false;
    for c in inside.chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    let text = text
        .replace("&amp;", "&")
        .replace("&lt;", "<")
        .replace("&gt;", ">");
    let text = text.replace(['¶', '\u{f0c1}'], "");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

/// The modules of Python. Their values are summary, source file and chapter.
fn python_modules() -> Vec<Entry> {
    let (host, folder, path) = MANUALS[0];
    let read = |file: &PathBuf| {
        let html = fs::read_to_string(file).ok()?;
        let heading = text_between(&html, "<h1>", "</h1>")?;
        let (name, summary) = heading.split_once(" — ")?;
        let file = file.file_name()?.to_string_lossy().into_owned();
        Some(Entry {
            name: name.to_owned(),
            url: format!("http://{host}{path}/library/{file}"),
            values: [
                Some(summary.to_owned()),
                text_between(&html, "Source code:</strong>", "</p>"),
                text_between(&html, "accesskey=\"U\">", "</a>"),
            ],
        })
    };
    let files = html_files(&format!("{folder}/library"));
    files.iter().filter_map(read).collect()
}

/// The commands of PostgreSQL. Their values are summary, no source file, and chapter.
fn postgresql_commands() -> Vec<Entry> {
    let (host, folder, path) = MANUALS[1];
    let read = |file: &PathBuf| {
        let name = file.file_name()?.to_string_lossy().into_owned();
        let html = fs::read_to_string(file)
            .ok()
            .filter(|_| name.starts_with("sql-"))?;
        let (_, body) = html.split_once("refnamediv")?;
        let line = text_between(body, "<p>", "</p>")?;
        let (_, summary) = line.split_once(" — ")?;
        Some(Entry {
            name: text_between(body, "<span class=\"refentrytitle\">", "</span>")?,
            url: format!("http://{host}{path}/{name}"),
            values: [
                Some(summary.to_owned()),
                None,
                text_between(&html, "<th width=\"60%\" align=\"center\">", "</th>"),
            ],
        })
    };
    html_files(folder).iter().filter_map(read).collect()
}

fn quote_cell(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The table. A third of its values are missing, and some are replaced by values of other rows.
fn entries_table(entries: &[Entry]) -> String {
    let mut text = String::from("name,url,summary,source,chapter,reviewer\n");
    for (row, entry) in entries.iter().enumerate() {
        let _ = write!(text, "{},{}", quote_cell(&entry.name), entry.url);
        for column in 0..3 {
            let mixed = (row * 3 + column + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let value = match mixed % 100 {
                0..35 => None,
                97.. => entries[(row + 11) % entries.len()].values[column].as_ref(),
                _ => entry.values[column].as_ref(),
            };
            let value = value.map_or_else(String::new, |value| quote_cell(value));
            let _ = write!(text, ",{value}");
        }
        text.push_str(",\n");
    }
    text
}

/// Takes a picture of the part of the page that is visible without scrolling.
fn take_picture(browser: &Browser, name: &str) {
    browser.set_size(1280, 800);
    let path = browser.screenshot_of_window(&format!("readme-{name}"));
    println!("{}", path.display());
}

#[needs(chromedriver, python3_doc, postgresql_doc)]
#[test]
#[ignore = "makes pictures of real manuals for the README"]
fn screenshots_of_a_real_table_are_taken() {
    let (work, web) = (Workplace::new(), Web::start());
    serve_manuals(&web);
    let mut entries = python_modules();
    entries.extend(postgresql_commands());
    println!("{} rows", entries.len());
    assert!(
        entries.len() > 300,
        "install python3-doc and postgresql-doc-15"
    );
    work.write("manuals.csv", entries_table(&entries));
    Run::new([
        "fill",
        "manuals.csv",
        "--keep",
        "reviewer",
        "--delay",
        "0.02",
    ])
    .args([
        "--progress",
        "none",
        "--check",
        "all",
        "--allow-private-networks",
    ])
    .args(web.resolve_args())
    .in_folder(work.path("."))
    .finish()
    .expect_code(0);
    let dashboard = Dashboard::start_with_flags(&work, &["--fill", "manuals.webfill"]);
    let browser = Browser::start();
    browser.set_size(1280, 800);
    browser.open(&dashboard.url("/dashboard/table/manuals/rows"));
    browser.wait_for("td.c-filled");
    browser.run_script("document.querySelector('td.c-filled').focus()", json!([]));
    browser.press(&[ENTER]);
    browser.wait_for("#pane #evidence");
    take_picture(&browser, "rows");
    browser.open(&dashboard.url("/dashboard/table/manuals/review"));
    browser.wait_for("#review");
    take_picture(&browser, "review");
    browser.open(&dashboard.url("/dashboard/table/manuals"));
    take_picture(&browser, "table");
    drop(dashboard);
    let store = format!(
        "sqlite:{}",
        work.path("manuals.webfill/webfill.db").display()
    );
    let dashboard = Dashboard::start_with_flags(
        &work,
        &["--store", &store, "--mappings", "manuals.webfill/mappings"],
    );
    browser.open(&dashboard.url("/dashboard/crawl/local/fill"));
    browser.wait_for("h1");
    take_picture(&browser, "run");
    browser.open(&dashboard.url("/dashboard/mappings"));
    take_picture(&browser, "mappings");
}
