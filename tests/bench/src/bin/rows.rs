//! Measures how many rows of pages become records per second, in SQLite and in MongoDB. For comparison, a plain loader
//! inserts the same rows in the same batches, just as durably, but without records.
//!
//! Thirty ratings to a page, 128 pages to a batch. In MongoDB two batches are in progress at a time, as with two
//! workers. At the end, pages with 200,000 of the rows are stored again, when every row is known. Without `--plain`,
//! everything is repeated for lists with `"complete": true`, where the store remembers the lists of each row.
//!
//!     rows [--rows THOUSANDS = 1000] [--plain]

use std::future::Future;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use mongodb::{Client, Collection};
use rusqlite::{Connection, params};
use serde_json::{Map, json};
use webfill_bench::{Limit, Size, Verdict, report};
use webfill_store::{CrawlId, ListedRow, Listing, Page, PageOfList, Save, Store, open};
use webfill_test_mongod::Mongod;
use webfill_wire::Outcome;

const ROWS_OF_PAGE: u64 = 30;
const PAGES_OF_BATCH: u64 = 128;
const PAGES_OF_USER: u64 = 20;
const WANTED_RATE: f64 = 20_000.0;
/// The limit of growth: how much longer the last tenth of the batches may take than the first tenth.
const FLAT: f64 = 1.5;

type Failure = Box<dyn std::error::Error>;

/// The time that each batch took.
struct Times(Vec<Duration>);

impl Times {
    fn rate(&self) -> f64 {
        let all: Duration = self.0.iter().sum();
        (self.0.len() as u64 * PAGES_OF_BATCH * ROWS_OF_PAGE) as f64 / all.as_secs_f64()
    }

    /// How much longer the last tenth of the batches took than the first tenth, as a factor.
    fn growth(&self) -> f64 {
        let tenth = (self.0.len() / 10).max(1);
        let sum = |some: &[Duration]| some.iter().sum::<Duration>().as_secs_f64();
        sum(&self.0[self.0.len() - tenth..]) / sum(&self.0[..tenth])
    }
}

fn main() -> Result<ExitCode, Failure> {
    let size = Size::from_env()?;
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let is_plain = args.last().is_some_and(|last| last == "--plain");
    if is_plain {
        args.pop();
    }
    let rows = parse_rows(args.into_iter(), size)?;
    let batches = rows.div_ceil(PAGES_OF_BATCH * ROWS_OF_PAGE);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut verdicts = runtime.block_on(measure_sqlite(batches, is_plain))?;
    verdicts.extend(runtime.block_on(measure_mongodb(batches, is_plain))?);
    Ok(report(&verdicts, size))
}

fn parse_rows(mut args: impl Iterator<Item = String>, size: Size) -> Result<u64, Failure> {
    match (args.next().as_deref(), args.next()) {
        (None, _) => Ok(size.pick(1_000, 100) * 1_000),
        (Some("--rows"), Some(thousands)) => Ok(thousands.parse::<u64>()? * 1_000),
        (Some(other), _) => Err(format!("unknown or unfinished argument `{other}`").into()),
    }
}

/// The times for storing all rows, and for storing some of them again when they are known.
struct Stored {
    first: Times,
    again: Times,
}

async fn measure_store(
    uri: &str,
    lists: Lists,
    batches: u64,
    at_once: u64,
) -> Result<Stored, Failure> {
    let batches_again = batches.min(Size::from_env()?.pick(53, 10));
    let store = open(&uri.parse()?, None).await?.store;
    let times = async |batches, minutes| {
        let save = async |batch| save_batch(&*store, lists, batch, minutes).await;
        time_batches(batches, at_once, save).await
    };
    Ok(Stored {
        first: times(batches, 0).await?,
        again: times(batches_again, 1).await?,
    })
}

async fn measure_sqlite(batches: u64, is_plain: bool) -> Result<Vec<Verdict>, Failure> {
    let folder = tempfile::tempdir()?;
    let uri = |name: &str| format!("sqlite:{}", folder.path().join(name).display());
    let rows = measure_store(&uri("store.db"), Lists::Plain, batches, 1).await?;
    let plain = load_sqlite(&folder.path().join("plain.db"), batches)?;
    let mut all = verdicts_of_rows("SQLite", &rows, &plain);
    if !is_plain {
        let complete = measure_store(&uri("complete.db"), Lists::Complete, batches, 1).await?;
        all.extend(verdicts_of_complete("SQLite", &complete, &rows));
    }
    Ok(all)
}

async fn measure_mongodb(batches: u64, is_plain: bool) -> Result<Vec<Verdict>, Failure> {
    let mongod = Mongod::start();
    let rows = measure_store(&mongod.uri("rows"), Lists::Plain, batches, 2).await?;
    let client = Client::with_uri_str(mongod.uri("plain")).await?;
    let plain: Collection<Document> = client.database("plain").collection("rows");
    let plain = time_batches(batches, 2, async |batch| load_mongodb(&plain, batch).await).await?;
    let mut all = verdicts_of_rows("MongoDB", &rows, &plain);
    if !is_plain {
        let complete = measure_store(&mongod.uri("complete"), Lists::Complete, batches, 2).await?;
        all.extend(verdicts_of_complete("MongoDB", &complete, &rows));
    }
    Ok(all)
}

fn verdict(what: String, figure: f64, limit: Limit) -> Verdict {
    Verdict {
        what,
        figure,
        limit,
    }
}

fn verdicts_of_rows(store: &str, rows: &Stored, plain: &Times) -> Vec<Verdict> {
    let Stored { first, again } = rows;
    vec![
        verdict(
            format!("rows stored a second in {store}"),
            first.rate(),
            Limit::AtLeast(WANTED_RATE),
        ),
        verdict(
            format!("the last tenth of them in {store}, in times of the first"),
            first.growth(),
            Limit::AtMost(FLAT),
        ),
        verdict(
            format!("rows a second of a plain loader into {store}"),
            plain.rate(),
            Limit::None,
        ),
        verdict(
            format!("rows stored in {store}, as a part of that"),
            first.rate() / plain.rate(),
            Limit::None,
        ),
        verdict(
            format!("known rows stored again a second in {store}"),
            again.rate(),
            Limit::None,
        ),
    ]
}

fn verdicts_of_complete(store: &str, complete: &Stored, rows: &Stored) -> Vec<Verdict> {
    vec![
        verdict(
            format!("rows of complete lists stored a second in {store}"),
            complete.first.rate(),
            Limit::None,
        ),
        verdict(
            format!("rows of complete lists stored in {store}, as a part of others"),
            complete.first.rate() / rows.first.rate(),
            Limit::None,
        ),
        verdict(
            format!("known rows of complete lists stored again a second in {store}"),
            complete.again.rate(),
            Limit::None,
        ),
    ]
}

/// Measures the time of each batch. Batches that run together share their time equally.
async fn time_batches<F: Future<Output = Result<(), Failure>>>(
    batches: u64,
    at_once: u64,
    work: impl Fn(u64) -> F,
) -> Result<Times, Failure> {
    let mut times = Vec::new();
    for batch in (0..batches).step_by(at_once as usize) {
        let began = Instant::now();
        if at_once == 2 {
            let (one, other) = tokio::join!(work(batch), work(batch + 1));
            one.and(other)?;
        } else {
            work(batch).await?;
        }
        let each = began.elapsed() / at_once as u32;
        times.extend((0..at_once).map(|_| each));
    }
    Ok(Times(times))
}

/// Whether rows that are missing from a complete list are marked as gone.
#[derive(Clone, Copy, PartialEq)]
enum Lists {
    Plain,
    Complete,
}

async fn save_batch(
    store: &dyn Store,
    lists: Lists,
    batch: u64,
    minutes: i64,
) -> Result<(), Failure> {
    let pages = batch * PAGES_OF_BATCH..(batch + 1) * PAGES_OF_BATCH;
    let saves = pages.map(|page| build_save(lists, page, minutes));
    let saves: Result<Vec<Save>, Failure> = saves.collect();
    for saved in store.save(saves?).await {
        saved?;
    }
    Ok(())
}

/// The user whose list a page belongs to, and the page's number in that list. Pages are numbered so that a page and the
/// page that links to it are never in the same batch.
fn user_and_number(page: u64) -> (u64, u64) {
    let (batch, place) = (page / PAGES_OF_BATCH, page % PAGES_OF_BATCH);
    let user = batch / PAGES_OF_USER * PAGES_OF_BATCH + place;
    (user, batch % PAGES_OF_USER)
}

fn build_save(lists: Lists, page: u64, minutes: i64) -> Result<Save, Failure> {
    let crawl = CrawlId::new("bench", "rows");
    let (user, number) = user_and_number(page);
    let url = |number: u64| format!("https://ratings.example/users/{user}?page={number}");
    let list = PageOfList {
        complete: match lists {
            Lists::Plain => Vec::new(),
            Lists::Complete => vec!["ratings".to_owned()],
        },
        is_further: number > 0,
        is_counted: true,
        next: match number {
            0 => (1..PAGES_OF_USER).map(url).collect(),
            _ => Vec::new(),
        },
        ..PageOfList::default()
    };
    let row = |position: u64| {
        let (item, stars) = item_and_stars(page, position);
        let fields = json!({"user": format!("u{user}"), "item": item, "stars": stars});
        ListedRow {
            position,
            fields: match fields {
                serde_json::Value::Object(fields) => fields,
                _ => Map::new(),
            },
            links: Vec::new(),
            undecided: Vec::new(),
        }
    };
    let listing = Listing {
        dataset: "ratings".parse()?,
        key: vec!["user".to_owned(), "item".to_owned()],
        from_record: Vec::new(),
        want: Vec::new(),
        complete: lists == Lists::Complete,
        cut: false,
        rows: (0..ROWS_OF_PAGE).map(row).collect(),
    };
    Ok(Save {
        page: Page {
            mapping: Some("ratings".to_owned()),
            listings: vec![listing],
            parent: (number > 0).then(|| url(0)),
            list: Some(list),
            started_at_ms: 1_795_000_000_000 + minutes * 60_000,
            ..Page::new(&crawl, &url(number), "ratings.example", Outcome::Ok)
        },
        records: Vec::new(),
    })
}

/// The row at this position of a page. Keys are scattered, as in real lists.
fn item_and_stars(page: u64, position: u64) -> (String, Option<u64>) {
    let number = (page * ROWS_OF_PAGE + position).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let stars = (!number.is_multiple_of(9)).then_some(number % 5 + 1);
    (format!("item-{number}"), stars)
}

/// The rows of a batch for the plain loader: key and fields.
fn plain_rows(batch: u64) -> impl Iterator<Item = (String, String, Option<u64>)> {
    let pages = batch * PAGES_OF_BATCH..(batch + 1) * PAGES_OF_BATCH;
    pages.flat_map(|page| {
        (0..ROWS_OF_PAGE).map(move |position| {
            let (item, stars) = item_and_stars(page, position);
            let user = format!("u{}", user_and_number(page).0);
            (user, item, stars)
        })
    })
}

fn load_sqlite(path: &Path, batches: u64) -> Result<Times, Failure> {
    let mut db = Connection::open(path)?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
         CREATE TABLE ratings (_id TEXT PRIMARY KEY, user TEXT, item TEXT, stars INTEGER)",
    )?;
    let mut times = Vec::new();
    for batch in 0..batches {
        let began = Instant::now();
        let transaction = db.transaction()?;
        let insert = "INSERT OR IGNORE INTO ratings VALUES (?1, ?2, ?3, ?4)";
        for (user, item, stars) in plain_rows(batch) {
            let stars = stars.map(|stars| stars as i64);
            let key = format!("{user}/{item}");
            transaction
                .prepare_cached(insert)?
                .execute(params![key, user, item, stars])?;
        }
        transaction.commit()?;
        times.push(began.elapsed());
    }
    Ok(Times(times))
}

async fn load_mongodb(ratings: &Collection<Document>, batch: u64) -> Result<(), Failure> {
    let document = |(user, item, stars): (String, String, Option<u64>)| {
        doc! {"_id": format!("{user}/{item}"), "user": user, "item": item, "stars": stars.map(|stars| stars as i64)}
    };
    let majority = WriteConcern::builder()
        .w(Acknowledgment::Majority)
        .journal(true)
        .build();
    ratings
        .insert_many(plain_rows(batch).map(document))
        .ordered(false)
        .write_concern(majority)
        .await?;
    Ok(())
}
