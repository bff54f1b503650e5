//! Tests that two collections with the same ids are written back from one store.

use mongodb::bson::{Document, doc};
use serde_json::{Value, json};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_tests::documents::Documents;
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::Workplace;

const IDS: i32 = 20;

/// Inserts documents that lack name and location, and serves their pages. Every page has a name, but only pages of
/// people have a location; pages of firms have none.
fn insert_and_serve(documents: &Documents, web: &Web, kind: &str) {
    web.site(&format!("{kind}.example")).serve_otherwise({
        let kind = kind.to_owned();
        move |request| {
            let page = page("P").field("name", &format!("{kind} {}", request.path));
            match kind.as_str() {
                "people" => page.field("location", "London").into(),
                _ => page.into(),
            }
        }
    });
    let document = |id: i32| -> Document {
        let url = format!("http://{kind}.example/{id}");
        doc! {"_id": id, "url": url, "name": null, "location": null}
    };
    let inserted: Vec<Document> = (1..=IDS).map(document).collect();
    documents.run(doc! {"insert": kind, "documents": inserted});
}

#[needs(mongod)]
#[test]
fn missing_values_are_never_taken_from_another_collection() {
    let database = fresh_database();
    let (web, work) = (Web::start(), Workplace::new());
    let documents = Documents::open(database.uri());
    for kind in ["people", "firms"] {
        insert_and_serve(&documents, &web, kind);
    }
    for (kind, resolved) in [("people", IDS as u64), ("firms", 0)] {
        let run = work
            .crawl_without_delay(&web)
            .args(["--delay", "0", "--records", database.uri()])
            .args(["--records-collection", kind, "--write-back", kind])
            .replace_flag("--crawl", kind)
            .finish()
            .expect_code(0);
        assert_eq!(run.summary().records(), (IDS as u64, resolved));
        let dataset = run.summary().json["records"]["dataset"].clone();
        let dataset = dataset.as_str().expect("a name").to_owned();
        let (_, name) = database.uri().rsplit_once('/').expect("it has a path");
        let name = name.split('?').next().expect("a first part");
        assert_eq!(dataset, format!("{name}.{kind}"));
        assert_eq!(work.stored().records_of(&dataset).len(), IDS as usize);
    }
    for (kind, location) in [("people", json!("London")), ("firms", Value::Null)] {
        for document in documents.all_documents(kind) {
            let id = &document["_id"];
            assert_eq!(document["name"], format!("{kind} /{id}"), "{document}");
            assert_eq!(document["location"], location, "{document}");
        }
    }
}
