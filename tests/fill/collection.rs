//! Tests `webfill fill` with a collection of MongoDB as the table. The tests check its documents with their own client.

use std::time::Duration;

use bson::{Bson, Document, doc};
use rustix::process::Signal;
use serde_json::Value;
use webfill_test_mongod::{Database, fresh_database};
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::run::Run;
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use super::made_web::{
    Oddities, book_count, book_url, gap_count, is_gap, read_evidence, serve_books, true_values,
};

/// The fields of the documents that contain values of books. `author-name` is not a valid name of a mapping's field,
/// and years are stored as numbers.
const MEMBERS: [&str; 4] = ["Title", "author-name", "year", "publisher"];

fn book_value(book: usize, field: usize) -> Bson {
    let text = true_values(book)[field].clone();
    match field {
        2 => Bson::Int32(text.parse().unwrap()),
        _ => Bson::String(text),
    }
}

/// Makes a document for each book. A gap is a missing field, null or an empty text.
fn book_documents() -> Vec<Document> {
    let document = |book: usize| {
        let mut document = doc! {
            "_id": bson::oid::ObjectId::from_bytes([u8::try_from(book).unwrap(); 12]),
            "link": book_url(book),
            "seen": bson::DateTime::from_millis(1_700_000_000_000),
            "note": {"mine": book as i32},
            // MongoDB's queries would treat the name of this field as a path. So the field is read, but never written.
            "the.year": if book.is_multiple_of(2) { Bson::Null } else { book_value(book, 2) },
        };
        for (field, member) in MEMBERS.iter().enumerate() {
            match (is_gap(book, field), (book + field) % 3) {
                (false, _) => drop(document.insert(*member, book_value(book, field))),
                (true, 0) => drop(document.insert(*member, Bson::Null)),
                (true, 1) if field != 2 => drop(document.insert(*member, "")),
                (true, _) => {}
            }
        }
        document
    };
    (0..book_count()).map(document).collect()
}

/// Whether a line of the evidence file is about a gap that was filled and may be written to the collection.
fn is_filled(line: &&Value) -> bool {
    let column = line["column"].as_str().unwrap();
    line["state"] == "filled" && !column.contains("the.year")
}

fn fill_command(work: &Workplace, web: &Web, database: &Database) -> Run {
    Run::new(["fill", "--records", database.uri()])
        .args(["--records-collection", "books", "--delay", "0"])
        .args(["--progress", "none", "--workers", "2"])
        .arg("--allow-private-networks")
        .args(web.resolve_args())
        .in_folder(work.path("."))
}

/// Checks that all documents have the values of the pages, except for the fields in `other_than`, and that nothing else
/// has changed.
fn assert_complete(all: &[Value], other_than: &[(usize, &str)]) {
    assert_eq!(all.len(), book_count());
    for (book, document) in all.iter().enumerate() {
        assert_eq!(document["note"]["mine"], book);
        assert_eq!(document["the.year"].is_null(), book.is_multiple_of(2));
        for (field, member) in MEMBERS.iter().enumerate() {
            let expected = book_value(book, field).into_relaxed_extjson();
            if !other_than.contains(&(book, *member)) {
                assert_eq!(document[member], expected, "{book} {member}");
            }
        }
    }
}

#[needs(mongod)]
#[test]
fn gaps_of_documents_are_filled_in_their_own_types() {
    let (work, web, database) = (Workplace::new(), Web::start(), fresh_database());
    serve_books(&web, &Oddities::default());
    let client = Documents::open(database.uri());
    client.run(doc! {"insert": "books", "documents": book_documents()});
    let planned = fill_command(&work, &web, &database)
        .arg("--dry-run")
        .finish()
        .expect_code(0);
    let all_gaps = gap_count() + book_count() / 2;
    let plan = format!("plan: {all_gaps} gaps, 4 sites");
    assert!(planned.stdout.contains(&plan), "{}", planned.stdout);
    assert!(web.visits().is_empty() && !work.path("books.webfill").exists());
    let run = fill_command(&work, &web, &database).finish().expect_code(0);
    let written = format!("written: {} values to ", gap_count());
    assert!(run.stdout.contains(&written), "{}", run.stdout);
    assert!(
        run.stderr.contains("\"the.year\": not written"),
        "{}",
        run.stderr
    );
    assert_complete(&client.all_documents("books"), &[]);
    let filled = |lines: &[Value]| lines.iter().filter(is_filled).count();
    let first = read_evidence(&work);
    assert_eq!(filled(&first), gap_count());
    assert!(work.path("books.doubts.csv").exists());
    // Values written by the first run do not count as known. So the second run has the same evidence, and requests
    // nothing.
    let (requests, books) = (web.visits().len(), client.all_documents("books"));
    fill_command(&work, &web, &database).finish().expect_code(0);
    assert_eq!(web.visits().len(), requests);
    assert_eq!(read_evidence(&work), first);
    assert_eq!(client.all_documents("books"), books);
    // A person replaces a value that was filled. The new value counts as known, and must stay.
    let gap = (0..96).find(|&book| is_gap(book, 3)).unwrap();
    let id = bson::oid::ObjectId::from_bytes([u8::try_from(gap).unwrap(); 12]);
    let set = doc! {"q": {"_id": id}, "u": {"$set": {"publisher": "Mine"}}};
    client.run(doc! {"update": "books", "updates": [set]});
    fill_command(&work, &web, &database).finish().expect_code(0);
    let all = client.all_documents("books");
    assert_eq!(all[gap]["publisher"], "Mine");
    assert_complete(&all, &[(gap, "publisher")]);
    assert_eq!(filled(&read_evidence(&work)), gap_count() - 1);
}

/// Runs are killed at several moments, and then the same command completes the table.
#[needs(mongod)]
#[test]
fn a_killed_run_is_resumed() {
    let (work, web, database) = (Workplace::new(), Web::start(), fresh_database());
    serve_books(&web, &Oddities::default());
    let client = Documents::open(database.uri());
    client.run(doc! {"insert": "books", "documents": book_documents()});
    for moment in 0..12 {
        let running = fill_command(&work, &web, &database).start();
        // The run is killed this many milliseconds after its start.
        std::thread::sleep(Duration::from_millis(60 + 110 * moment));
        for process in running.processes() {
            process.signal(Signal::KILL);
        }
        running.finish();
    }
    fill_command(&work, &web, &database).finish().expect_code(0);
    assert_complete(&client.all_documents("books"), &[]);
    let lines = read_evidence(&work);
    let filled = lines.iter().filter(is_filled);
    assert_eq!(filled.count(), gap_count());
}

#[test]
fn a_table_or_a_collection_is_needed() {
    let work = Workplace::new();
    let run = Run::new(["fill", "--delay", "0"]);
    let run = run.in_folder(work.path(".")).finish().expect_code(2);
    assert!(run.stderr.contains("TABLE"), "{}", run.stderr);
    let run = Run::new(["fill", "--records", "mongodb://127.0.0.1/x"]);
    let run = run.in_folder(work.path(".")).finish().expect_code(2);
    assert!(
        run.stderr.contains("--records-collection"),
        "{}",
        run.stderr
    );
}
