//! Checks, by the server's own profile, how MongoDB executes the reads of users who browse: no list reads more than it
//! returns.

use mongodb::bson::{Document, doc};
use mongodb::{Client, Collection, Database};
use serde_json::{Map, json};
use webfill_store::{
    Backends, Browse, ChangeListFilter, Crawl, CrawlFilter, CrawlId, CrawlState, Page, PageFilter,
    Record, RecordFilter, RecordState, Save, Store, StoreUri, open,
};
use webfill_test_mongod::fresh_database;
use webfill_test_needs::needs;
use webfill_wire::Outcome;

/// How many pages and records there are. A list returns [`ROWS`] of them.
const STORED: usize = 1_500;
const ROWS: u32 = 10;

/// How many keys of an index one command may read: those of the returned rows, and a few for each of the 18 outcomes.
const MOST_KEYS: i64 = 300;

fn crawl_id() -> CrawlId {
    CrawlId::new("app", "c1")
}

async fn fill(store: &dyn Store) {
    let crawl = Crawl {
        id: crawl_id(),
        request: json!({}),
        state: CrawlState::Running,
        counts: Map::new(),
        started_at_ms: 0,
        updated_at_ms: 0,
        finished_at_ms: None,
    };
    store.put_crawl(crawl).await.unwrap();
    let page = |number: usize| Page {
        mapping: Some(format!("m{}", number % 3)),
        started_at_ms: number as i64,
        site: format!("s{}.example", number % 2),
        outcome: Outcome::ALL[number % 4],
        ..Page::new(
            &crawl_id(),
            &format!("https://a.example/{number}"),
            "",
            Outcome::Ok,
        )
    };
    let saves = (0..STORED).map(|number| Save {
        page: page(number),
        records: Vec::new(),
    });
    for saved in store.save(saves.collect()).await {
        saved.unwrap();
    }
    let record = |number: usize| Record {
        dataset: "people".parse().unwrap(),
        id: number.to_string(),
        fields: Map::from_iter([(
            "name".to_owned(),
            json!(number.is_multiple_of(2).then_some("Ada")),
        )]),
        want: vec!["name".to_owned()],
    };
    for first in (0..STORED).step_by(100) {
        let records = (first..first + 100).map(record).collect();
        for put in store.put_records(&crawl_id(), records, first as i64).await {
            put.unwrap();
        }
    }
}

/// Reads the first two pages of every list.
async fn browse_all(browse: &dyn Browse) {
    let of_crawl = PageFilter {
        crawl: Some(crawl_id()),
        ..PageFilter::default()
    };
    for filter in [
        PageFilter {
            mapping: Some("m1".into()),
            ..of_crawl.clone()
        },
        PageFilter {
            site: Some("s1.example".into()),
            ..PageFilter::default()
        },
        PageFilter {
            outcomes: vec![Outcome::NotModified, Outcome::Redirected],
            ..of_crawl.clone()
        },
        of_crawl,
        PageFilter::default(),
    ] {
        let first = browse.pages(&filter, None, ROWS).await.unwrap();
        let next = first.next.as_ref();
        let second = browse.pages(&filter, next, ROWS).await.unwrap();
        assert_eq!(
            (first.rows.len(), second.rows.len()),
            (10, 10),
            "{filter:?}"
        );
    }
    for state in [None, Some(RecordState::Open), Some(RecordState::Resolved)] {
        let filter = RecordFilter {
            dataset: Some("people".into()),
            state,
            ..RecordFilter::default()
        };
        let first = browse.records(&filter, None, ROWS).await.unwrap();
        let next = first.next.as_ref();
        browse.records(&filter, next, ROWS).await.unwrap();
    }
    let (crawls, changes) = (CrawlFilter::default(), ChangeListFilter::default());
    browse.crawls(&crawls, None, ROWS).await.unwrap();
    browse.changes(&changes, None, ROWS).await.unwrap();
    browse.datasets(100, None, ROWS).await.unwrap();
    browse.crawl_counts(&crawl_id(), 10).await.unwrap();
}

/// The server's profile of all commands since profiling was enabled.
async fn read_profile(database: &Database) -> Vec<Document> {
    database.run_command(doc! {"profile": 0}).await.unwrap();
    let profile: Collection<Document> = database.collection("system.profile");
    let reads =
        doc! {"op": {"$in": ["query", "command", "getmore"]}, "planSummary": {"$exists": true}};
    let mut cursor = profile.find(reads).await.unwrap();
    let mut commands = Vec::new();
    while cursor.advance().await.unwrap() {
        commands.push(cursor.deserialize_current().unwrap());
    }
    commands
}

fn number(document: &Document, name: &str) -> i64 {
    let long = document.get_i64(name).ok();
    let short = || document.get_i32(name).ok().map(i64::from);
    long.or_else(short).unwrap_or_default()
}

#[needs(mongod)]
#[tokio::test]
async fn every_list_follows_an_index() {
    let kept = fresh_database();
    let client = Client::with_uri_str(kept.uri()).await.unwrap();
    let database = client.default_database().unwrap();
    let uri: StoreUri = kept.uri().parse().unwrap();
    let Backends { store, browse, .. } = open(&uri, None).await.unwrap();
    fill(&*store).await;
    browse.create_missing_indexes().await.unwrap();
    database.run_command(doc! {"profile": 2}).await.unwrap();
    browse_all(&*browse).await;
    let commands = read_profile(&database).await;
    assert!(commands.len() >= 20, "{}", commands.len());
    for command in commands {
        let plan = command.get_str("planSummary").unwrap();
        let is_of_store = !plan.contains("EOF");
        assert!(!plan.contains("COLLSCAN") || !is_of_store, "{command:#?}");
        assert!(
            !command.get_bool("hasSortStage").unwrap_or_default(),
            "{command:#?}"
        );
        for examined in ["keysExamined", "docsExamined"] {
            assert!(number(&command, examined) <= MOST_KEYS, "{command:#?}");
        }
    }
}
