//! Tests the index with generated tables, from their files to the rows of lists and downloads.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::time::Instant;

use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::grid::download::{Download, Format};
use crate::grid::evidence;
use crate::grid::files::Files;
use crate::grid::jobs::{IndexOutcome, Jobs};
use crate::grid::origin::{CellEvidence, Origin};

/// A table of books whose column `title` is to be filled. Every third title is missing.
struct Books {
    _folder: TempDir,
    files: Files,
    jobs: Jobs,
}

const STATES: [&str; 4] = [
    "filled",
    "conflicting",
    "page unreachable",
    "refused by robots",
];

impl Books {
    fn new(count: u64) -> Books {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("books.webfill");
        fs::create_dir(&own).unwrap();
        fs::write(own.join("table.txt"), "books.csv").unwrap();
        let files = Files::from_project_folder(&own).unwrap();
        let mut table = std::io::BufWriter::new(fs::File::create(&files.input).unwrap());
        let mut filled = std::io::BufWriter::new(fs::File::create(&files.filled).unwrap());
        let mut proof = std::io::BufWriter::new(fs::File::create(&files.evidence).unwrap());
        for file in [&mut table, &mut filled] {
            writeln!(file, "id,link,title,year").unwrap();
        }
        for book in 0..count {
            let url = format!("http://s{}.example/{book}", book % 7);
            let year = (book * 7919) % 3_001;
            let (known, state) = match book % 3 {
                0 => (String::new(), STATES[(book / 3 % 4) as usize]),
                _ => (format!("Title {book}"), "known"),
            };
            let shown = match state {
                "filled" => format!("Found {book}"),
                _ => known.clone(),
            };
            writeln!(table, "b{book},{url},{known},{year}").unwrap();
            writeln!(filled, "b{book},{url},{shown},{year}").unwrap();
            let line = json!({"row": book + 2, "id": format!("b{book}"), "column": "title", "state": state,
                "value": shown, "url": url, "confidence": 0.98});
            writeln!(proof, "{line}").unwrap();
        }
        for file in [&mut table, &mut filled, &mut proof] {
            file.flush().unwrap();
        }
        Books {
            _folder: folder,
            files,
            jobs: Jobs::default(),
        }
    }

    fn grid(&self, sorted_by: Option<usize>) -> Grid {
        for _ in 0..600 {
            let made = match sorted_by {
                Some(column) => self.jobs.open_or_sort(&self.files, column),
                None => self.jobs.open_or_build(&self.files),
            };
            if let IndexOutcome::Ready(grid) = made.unwrap() {
                return *grid;
            }
        }
        panic!("the index is not made");
    }

    /// All rows of a list, read page by page.
    fn all_rows(&self, filter: &Filter, order: Order) -> Vec<Row> {
        let grid = self.grid(order.column);
        let (mut all, mut after) = (Vec::new(), None);
        for _ in 0..10_000 {
            let page = grid.page(filter, order, after, 50).unwrap();
            all.extend(page.rows);
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
        panic!("the list has no end");
    }

    fn download(&self, filter: &Filter, format: Format) -> Vec<u8> {
        let grid = self.grid(None);
        let download = Download::open(&self.files, grid, filter, format).unwrap();
        let (pieces, mut body) = mpsc::channel(1);
        let sending = std::thread::spawn(move || download.send(pieces));
        let mut bytes = Vec::new();
        while let Some(piece) = body.blocking_recv() {
            bytes.extend_from_slice(&piece);
        }
        sending.join().unwrap();
        bytes
    }
}

fn state_filter(state: State) -> Filter {
    Filter {
        state: Some(state),
        ..Filter::default()
    }
}

fn row_numbers(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row.n).collect()
}

#[test]
fn rows_come_once_each_in_the_order_of_the_table() {
    let books = Books::new(1_234);
    let all = books.all_rows(&Filter::default(), Order::default());
    assert_eq!(row_numbers(&all), (1..=1_234).collect::<Vec<_>>());
    assert_eq!(all[0].cells[2].as_deref(), Some("Found 0"));
    assert_eq!(all[4].number, 6, "lines are counted with the header");
    let grid = books.grid(None);
    assert_eq!(grid.row_before_line(6), Ok(4));
    assert_eq!(grid.row_before_line(0), Ok(0));
    assert_eq!(grid.row_before_line(9_999_999), Ok(1_234));
}

#[test]
fn a_filter_takes_all_its_rows_and_no_others() {
    let books = Books::new(1_000);
    let grid = books.grid(None);
    let of_title = grid.counts(Some(2)).unwrap();
    let expected = |states: &dyn Fn(u64) -> bool| -> Vec<i64> {
        (0..1_000_u64)
            .filter(|book| states(*book))
            .map(|book| book as i64 + 1)
            .collect()
    };
    for (at, name) in STATES.iter().enumerate() {
        let state = State::from_name(name).unwrap();
        let is_its = move |book: u64| book.is_multiple_of(3) && book / 3 % 4 == at as u64;
        for column in [None, Some(2)] {
            let filter = Filter {
                column,
                ..state_filter(state)
            };
            let listed = row_numbers(&books.all_rows(&filter, Order::default()));
            assert_eq!(listed, expected(&is_its), "{name}");
            assert!(of_title.contains(&(state, listed.len() as u64)));
        }
        let filter = Filter {
            site: Some(String::from("s3.example")),
            ..state_filter(state)
        };
        let listed = row_numbers(&books.all_rows(&filter, Order::default()));
        assert_eq!(listed, expected(&|book| is_its(book) && book % 7 == 3));
        let other = Filter {
            column: Some(3),
            ..state_filter(state)
        };
        assert!(books.all_rows(&other, Order::default()).is_empty());
    }
    let nowhere = Filter {
        site: Some(String::from("nowhere.example")),
        ..Filter::default()
    };
    assert!(books.all_rows(&nowhere, Order::default()).is_empty());
}

#[test]
fn rows_are_sorted_by_values_and_those_without_one_come_last() {
    let books = Books::new(999);
    for is_descending in [false, true] {
        let order = |column| Order {
            column: Some(column),
            is_descending,
        };
        let rows = books.all_rows(&Filter::default(), order(3));
        let years: Vec<i64> = rows
            .iter()
            .map(|row| row.cells[3].as_ref().unwrap().parse().unwrap())
            .collect();
        let mut sorted = years.clone();
        sorted.sort_unstable();
        if is_descending {
            sorted.reverse();
        }
        assert_eq!(years, sorted, "numbers, not texts");
        assert_eq!(years.len(), 999);
        let rows = books.all_rows(&Filter::default(), order(2));
        let titles: Vec<Option<&str>> = rows.iter().map(|row| row.cells[2].as_deref()).collect();
        let values = titles.iter().flatten().count();
        assert!(titles[..values].iter().all(Option::is_some), "{titles:?}");
        let mut sorted: Vec<&str> = titles[..values].iter().flatten().copied().collect();
        sorted.sort_by_key(|title| title.to_lowercase());
        if is_descending {
            sorted.reverse();
        }
        let titles: Vec<&str> = titles.into_iter().flatten().collect();
        assert_eq!(titles, sorted);
        let mut all = row_numbers(&rows);
        all.sort_unstable();
        assert_eq!(all, (1..=999).collect::<Vec<_>>());
    }
    let filled = books.all_rows(
        &state_filter(State::Filled),
        Order {
            column: Some(3),
            is_descending: true,
        },
    );
    assert_eq!(filled.len(), 84);
}

#[test]
fn an_index_is_made_again_if_its_files_have_changed_or_it_is_broken() {
    let books = Books::new(10);
    assert_eq!(books.grid(None).meta.rows, 10);
    let mut table = fs::read_to_string(&books.files.filled).unwrap();
    writeln!(table, "b10,http://s0.example/10,,1950").unwrap();
    fs::write(&books.files.filled, table).unwrap();
    let version = books.grid(None).version();
    assert_eq!(books.grid(None).meta.rows, 11);
    fs::write(&books.files.index, "no database").unwrap();
    let grid = books.grid(None);
    assert_eq!(grid.meta.rows, 11);
    assert_eq!(grid.version(), version);
}

#[test]
fn downloads_have_whole_filtered_rows_and_no_formulas_for_spreadsheets() {
    let books = Books::new(30);
    let long = "ü".repeat(400_000);
    let mut table = fs::read_to_string(&books.files.filled).unwrap();
    writeln!(
        table,
        "b30,http://s0.example/30,\"=HYPERLINK(\"\"x\"\"), {long}\",1950"
    )
    .unwrap();
    fs::write(&books.files.filled, table).unwrap();
    let csv = String::from_utf8(books.download(&Filter::default(), Format::Csv)).unwrap();
    assert_eq!(csv.lines().count(), 32);
    assert!(csv.contains(&format!("\"'=HYPERLINK(\"\"x\"\"), {long}\"")));
    let json = books.download(&state_filter(State::Filled), Format::Json);
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["b0", "b12", "b24"]);
    let parquet = books.download(&Filter::default(), Format::Parquet);
    let file = books.files.index.with_file_name("rows.parquet");
    fs::write(&file, parquet).unwrap();
    let mut read = webfill_table::open(&file).unwrap();
    let mut last = None;
    let mut count = 0;
    while let Some(row) = read.next_row() {
        last = Some(row.unwrap());
        count += 1;
    }
    let last = last.unwrap();
    assert_eq!(count, 31);
    assert_eq!(last.cells[3], webfill_table::Cell::Number("1950".into()));
    assert_eq!(
        last.cells[2].text().unwrap(),
        format!("=HYPERLINK(\"x\"), {long}")
    );
    let nothing = state_filter(State::Refused);
    assert_eq!(books.download(&nothing, Format::Json), b"[]\n");
}

#[test]
fn an_answer_names_the_row_as_the_table_has_it() {
    let books = Books::new(20);
    let grid = books.grid(None);
    let row = grid.row(2).unwrap().unwrap();
    let lines =
        evidence::read_cell(&books.files.evidence, row.evidence.unwrap(), 3, "title").unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["state"], "known");
    let origin = Origin::find(&books.files, 3, "title").unwrap();
    let about = CellEvidence {
        name: "b1",
        column: "title",
        url: "http://s1.example/1",
    };
    let doubt = origin.doubt_json(&about, &origin.split_values(" Another  title "));
    assert_eq!(
        doubt,
        json!({"id": "b1", "links": ["http://s1.example/1"], "column": "title", "known": ["Title 1"],
            "page": ["Another  title"], "shown": {"id": "b1", "column": "title", "known": "Title 1",
            "page": "Another  title", "url": "http://s1.example/1"}})
    );
    // In the user's own table the cell is empty, although it has a value in the filled table.
    let filled = Origin::find(&books.files, 2, "title").unwrap();
    assert_eq!(filled.doubt_json(&about, &[])["known"], json!([]));
    assert!(Origin::find(&books.files, 99, "title").is_err());
}

#[test]
fn a_table_of_a_thousand_columns_and_large_cells_is_listed_at_once() {
    let books = Books::new(1);
    let mut table = String::new();
    let heads: Vec<String> = (0..1_000).map(|column| format!("c{column}")).collect();
    writeln!(table, "{}", heads.join(",")).unwrap();
    for row in 0..200 {
        let mut cells = vec![format!("value of {row}"); 1_000];
        cells[row * 3] = "x".repeat(if row < 20 { 1_000_000 } else { 100 });
        writeln!(table, "{}", cells.join(",")).unwrap();
    }
    fs::write(&books.files.filled, table).unwrap();
    let grid = books.grid(None);
    assert_eq!(grid.meta.columns.len(), 1_000);
    let began = Instant::now();
    let page = grid.page(&Filter::default(), Order::default(), None, 50);
    let took = began.elapsed();
    let rows = page.unwrap().rows;
    assert_eq!(rows.len(), 50);
    assert!(rows.iter().all(|row| row.cells.len() == 1_000));
    let longest = rows.iter().flat_map(|row| row.cells.iter().flatten());
    assert!(longest.map(String::len).max() < Some(200));
    assert!(took.as_millis() < 1_000, "{took:?}");
}

/// A measurement that is run by hand: `cargo test -p webfill-dashboard --release -- --ignored --nocapture a_million`.
/// The environment variable `ROWS` sets another number of rows.
#[test]
#[ignore = "makes a table of a million rows: a minute"]
fn a_million_rows_are_listed_within_a_fifth_of_a_second() {
    let rows = std::env::var("ROWS").ok();
    let rows = rows.map_or(1_000_000, |rows| rows.parse().unwrap());
    let books = Books::new(rows);
    let began = Instant::now();
    let grid = books.grid(None);
    let bytes = fs::metadata(&books.files.index).unwrap().len();
    println!(
        "{rows} rows: index of {} MB in {:?}",
        bytes >> 20,
        began.elapsed()
    );
    for column in [2, 3] {
        let began = Instant::now();
        drop(books.grid(Some(column)));
        println!("sorted by column {column} in {:?}", began.elapsed());
    }
    drop(grid);
    let filters = [
        ("all", Filter::default()),
        ("filled", state_filter(State::Filled)),
        (
            "robots at a site",
            Filter {
                site: Some(String::from("s3.example")),
                column: Some(2),
                ..state_filter(State::Robots)
            },
        ),
        ("nothing", state_filter(State::Refused)),
        ("scanned in vain", state_filter(State::Given)),
    ];
    let mut slowest = std::time::Duration::ZERO;
    for (name, filter) in filters {
        for order in [
            Order::default(),
            Order {
                column: Some(2),
                is_descending: false,
            },
            Order {
                column: Some(3),
                is_descending: true,
            },
        ] {
            for after in [None, Some(rows as i64 / 2), Some(rows as i64 - 60)] {
                let began = Instant::now();
                let grid = Grid::open(&books.files).unwrap().unwrap();
                let page = grid.page(&filter, order, after, 50).unwrap();
                let took = began.elapsed();
                slowest = slowest.max(took);
                println!(
                    "{name}, by {:?}, after {after:?}: {} rows of {} in {took:?}",
                    order.column,
                    page.rows.len(),
                    page.examined
                );
            }
        }
    }
    assert!(slowest.as_millis() < 200, "{slowest:?}");
}
