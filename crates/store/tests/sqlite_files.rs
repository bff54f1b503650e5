//! SQLite files that are damaged, foreign, on a full disk or in use, and processes that die.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use webfill_store::{
    Backends, CrawlId, Cursor, ExportFilter, ExportKind, Page, Save, Store, StoreError, StoreUri,
    open, open_existing,
};
use webfill_test_needs::needs;
use webfill_wire::Outcome;

fn page(number: u64, links: usize) -> Page {
    let (crawl, url) = (
        CrawlId::new("app", "c1"),
        format!("https://example.com/{number}"),
    );
    Page {
        fields: Map::from_iter([(String::from("number"), json!(number))]),
        links: vec![String::from("https://example.com/a/rather/long/link"); links],
        ..Page::new(&crawl, &url, "example.com", Outcome::Ok)
    }
}

fn sample_save(page: Page) -> Save {
    Save {
        page,
        records: Vec::new(),
    }
}

async fn open_file(path: &Path) -> Result<Backends, StoreError> {
    open(&StoreUri::Sqlite(path.to_owned()), None).await
}

async fn refusal(path: &Path) -> String {
    match open_file(path).await {
        Err(error) if error.is_fatal() => error.to_string(),
        Err(error) => panic!("not fatal: {error:?}"),
        Ok(_) => panic!("{} was opened", path.display()),
    }
}

async fn count_pages(path: &Path) -> u64 {
    let store = open_existing(&StoreUri::Sqlite(path.to_owned()))
        .await
        .unwrap();
    let filter = ExportFilter::default();
    store
        .export(ExportKind::Pages, &filter, &mut |_| Ok(()))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let notes = "not a database, but notes of some length".repeat(50);
    std::fs::write(&path, &notes).unwrap();
    let refusal = refusal(&path).await;
    assert!(
        refusal.contains("notes.txt") && refusal.contains("no SQLite database"),
        "{refusal}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), notes);
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("places.sqlite");
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign
        .execute_batch("CREATE TABLE pages (url TEXT)")
        .unwrap();
    drop(foreign);
    let before = std::fs::read(&path).unwrap();
    let refusal = refusal(&path).await;
    assert!(refusal.contains("another program's"), "{refusal}");
    assert!(
        std::fs::read(&path).unwrap() == before,
        "the file was changed"
    );
}

#[tokio::test]
async fn a_file_of_another_format_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    for other in [0, 2, 1_000] {
        drop(open_file(&path).await.unwrap());
        let file = rusqlite::Connection::open(&path).unwrap();
        file.pragma_update(None, "user_version", other).unwrap();
        let refusal = refusal(&path).await;
        let said = format!(
            "has format {other}, this webfill reads format 1: use the webfill that wrote it"
        );
        assert!(refusal.contains(&said), "{refusal}");
        let left = file.pragma_query_value(None, "user_version", |row| row.get(0));
        assert_eq!(left, Ok(other));
        file.pragma_update(None, "user_version", 1).unwrap();
    }
}

/// The URLs of the pages that were saved after a cursor, and the cursor to continue from.
async fn read_changed_urls(store: &dyn Store, after: &Cursor) -> (Vec<Value>, Cursor) {
    let mut urls = Vec::new();
    let mut each = |_, page: Value| {
        urls.push(page["url"].clone());
        Ok(())
    };
    let everything = ExportFilter::default();
    let end = store.changes(after, &everything, &mut each).await.unwrap();
    (urls, end)
}

/// A user deletes pages and then runs VACUUM.
#[tokio::test]
async fn a_cursor_outlives_pages_that_somebody_has_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let store = open_file(&path).await.unwrap().store;
    for number in 0..20 {
        store
            .save(vec![sample_save(page(number, 1))])
            .await
            .remove(0)
            .unwrap();
    }
    let (urls, end) = read_changed_urls(&*store, &Cursor::start()).await;
    assert_eq!(urls.len(), 20);
    let hand = rusqlite::Connection::open(&path).unwrap();
    hand.execute("DELETE FROM pages WHERE position > 5", ())
        .unwrap();
    hand.execute_batch("VACUUM").unwrap();
    store
        .save(vec![sample_save(page(77, 1))])
        .await
        .remove(0)
        .unwrap();
    let (urls, _) = read_changed_urls(&*store, &end).await;
    assert_eq!(urls, ["https://example.com/77"]);
}

#[tokio::test]
async fn a_path_that_cannot_be_a_file_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let in_no_folder = refusal(&folder.path().join("no/such/webfill.db")).await;
    assert!(
        in_no_folder.contains("no/such does not exist"),
        "{in_no_folder}"
    );
    let on_a_folder = refusal(folder.path()).await;
    assert!(on_a_folder.contains("is a folder"), "{on_a_folder}");
}

#[tokio::test]
async fn an_export_of_a_missing_file_creates_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let Err(refusal) = open_existing(&StoreUri::Sqlite(path.clone())).await else {
        panic!("it was opened");
    };
    assert!(refusal.to_string().contains("no such file"), "{refusal}");
    assert!(!path.exists());
}

#[tokio::test]
async fn a_damaged_file_ends_in_a_fatal_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let opened = open_file(&path).await.unwrap();
    opened
        .store
        .save(
            (0..500)
                .map(|number| sample_save(page(number, 20)))
                .collect(),
        )
        .await;
    drop(opened);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[4096..].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let error = match open_file(&path).await {
        Err(error) => error,
        Ok(opened) => {
            let mut saved = opened.store.save(vec![sample_save(page(1, 0))]).await;
            saved.remove(0).unwrap_err()
        }
    };
    assert!(error.is_fatal(), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("webfill.db: the file is damaged"),
        "{error}"
    );
}

#[tokio::test]
async fn a_cache_of_its_own_is_kept_in_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let uri = |name| StoreUri::Sqlite(folder.path().join(name));
    let opened = open(&uri("store.db"), Some(&uri("cache.db")))
        .await
        .unwrap();
    let entry = webfill_store::SiteClockEntry {
        site: String::from("example.com"),
        last_start_ms: 1,
        delay_ms: 1,
        blocked_until_ms: None,
        owner: None,
        reserved_until_ms: None,
        accepted_ms: None,
    };
    opened.cache.put_sites(vec![entry]).await.unwrap();
    let sites = |name| {
        let file = rusqlite::Connection::open(folder.path().join(name)).unwrap();
        let sql = "SELECT count(*) FROM sites";
        file.query_row(sql, (), |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!((sites("store.db"), sites("cache.db")), (0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_short_while_several_write_without_a_pause() {
    const PAGES: u64 = 1_000;
    const MIB: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let write = |client: u64| {
        let path = path.clone();
        async move {
            let opened = open_file(&path).await.unwrap();
            for batch in 0..PAGES / 10 {
                let number = |offset| client * PAGES + batch * 10 + offset;
                let pages = (0..10).map(|offset| sample_save(page(number(offset), 2_000)));
                let saved = opened.store.save(pages.collect()).await;
                assert!(saved.iter().all(Result::is_ok), "{saved:?}");
            }
            // The connection is kept open, because SQLite removes the log when the last connection is closed.
            opened
        }
    };
    let writers: Vec<_> = (0..3).map(|client| tokio::spawn(write(client))).collect();
    let mut opened = Vec::new();
    for writer in writers {
        opened.push(writer.await.unwrap());
    }
    let log = std::fs::metadata(path.with_extension("db-wal"))
        .unwrap()
        .len();
    assert!(log < 100 * MIB, "{} MiB", log / MIB);
    drop(opened);
    let file = std::fs::metadata(&path).unwrap().len();
    assert!(
        file > 200 * MIB,
        "too little was written: {} MiB",
        file / MIB
    );
}

/// A small tmpfs, unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Path) -> SmallDisk {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(folder)
            .status();
        assert!(mounted.unwrap().success(), "cannot mount a small disk");
        SmallDisk(folder.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[needs(mount)]
#[tokio::test]
async fn a_full_disk_ends_in_a_fatal_error_and_an_intact_file() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(folder.path());
    let path = disk.0.join("webfill.db");
    let opened = open_file(&path).await.unwrap();
    let mut kept = 0;
    let error = loop {
        let batch = (kept..kept + 10)
            .map(|number| sample_save(page(number, 50)))
            .collect();
        let mut saved = opened.store.save(batch).await;
        match saved.remove(0) {
            Ok(_) => kept += 10,
            Err(error) => break error,
        }
        assert!(kept < 100_000, "the disk never filled up");
    };
    assert!(error.is_fatal(), "{error:?}");
    assert!(
        error.to_string().contains("webfill.db: the disk is full"),
        "{error}"
    );
    drop(opened);
    let remount = Command::new("mount")
        .args(["-o", "remount,size=8m"])
        .arg(&disk.0)
        .status();
    assert!(remount.unwrap().success());
    assert_eq!(count_pages(&path).await, kept);
    let opened = open_file(&path).await.unwrap();
    let saved = opened.store.save(vec![sample_save(page(kept, 50))]).await;
    assert!(saved[0].is_ok(), "{saved:?}");
    let integrity: String = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA integrity_check", (), |row| row.get(0))
        .unwrap();
    assert_eq!(integrity, "ok");
}

/// How many pages a writer process saves at once.
const BATCH: u64 = 8;

const WRITER_FILE: &str = "WEBFILL_TEST_STORE_WRITER";

/// Runs as a separate process that saves pages until it is killed. After each answered batch, it reports how many pages
/// there are.
#[tokio::test]
#[ignore = "is started by what_was_answered_survives_the_death_of_every_process"]
async fn writer_process() {
    let path = std::env::var_os(WRITER_FILE).expect("the test that starts it names the file");
    let opened = open_file(Path::new(&path)).await.unwrap();
    let own = u64::from(std::process::id()) << 32;
    let mut answered = std::fs::File::create(answered_file(Path::new(&path), std::process::id()))
        .expect("the folder takes another file");
    for batch in 0.. {
        let pages = (0..BATCH).map(|number| sample_save(page(own + batch * BATCH + number, 10)));
        let saved = opened.store.save(pages.collect()).await;
        assert!(saved.iter().all(Result::is_ok), "{saved:?}");
        answered
            .write_all(b"x")
            .expect("the file takes another byte");
    }
}

/// The file where the writer appends one byte for each answered batch. Its length is right whenever the writer dies.
fn answered_file(store: &Path, process: u32) -> PathBuf {
    store.with_extension(format!("{process}.answered"))
}

fn count_answered(store: &Path, process: &Child) -> u64 {
    let file = std::fs::metadata(answered_file(store, process.id()));
    file.map_or(0, |file| BATCH * file.len())
}

#[tokio::test]
async fn what_was_answered_survives_the_death_of_every_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("webfill.db");
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "sqlite_files::writer_process",
                "--ignored",
                "--nocapture",
            ])
            .env(WRITER_FILE, &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut writers = [start(), start(), start()];
    let deadline = Instant::now() + Duration::from_secs(60);
    while writers
        .iter()
        .any(|writer| count_answered(&path, writer) < 200)
    {
        assert!(Instant::now() < deadline, "the writers are stuck");
        std::thread::sleep(Duration::from_millis(10));
    }
    for writer in &mut writers {
        writer.kill().unwrap();
        writer.wait().unwrap();
    }
    let answered: u64 = writers
        .iter()
        .map(|writer| count_answered(&path, writer))
        .sum();
    let kept = count_pages(&path).await;
    // The last batch of each writer may be stored although the writer died before the answer.
    assert!(
        (answered..=answered + 3 * BATCH).contains(&kept),
        "{answered} answered, {kept} kept"
    );
    assert_eq!(kept % BATCH, 0, "half a batch was kept");
}
