//! Servers that refuse a client or cannot be reached: the error says what to do, and shows no secrets.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mongodb::Client;
use mongodb::bson::{Document, doc};
use serde_json::json;
use webfill_store::{
    Crawl, CrawlId, CrawlState, ExportFilter, ExportKind, StoreError, StoreUri, open, open_existing,
};
use webfill_test_mongod::{Mongod, fresh_database};
use webfill_test_needs::needs;

async fn try_open(uri: &str) -> Result<(), StoreError> {
    let uri: StoreUri = uri.parse().expect("a URI");
    open(&uri, None).await.map(drop)
}

async fn refusal(uri: &str) -> StoreError {
    let started = Instant::now();
    let error = try_open(uri).await.expect_err("a refusal");
    println!("{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(!error.to_string().contains("hidden"), "{error}");
    error
}

/// Creates a user of a database.
async fn create_user(client: &Client, database: &str, user: Document) {
    let created = client.database(database).run_command(user).await;
    created.expect("the first user, or one made by it");
}

#[tokio::test]
async fn a_missing_server_is_waited_for_a_short_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = refusal(&format!("mongodb://me:hidden@{address}/x")).await;
    assert!(error.is_retry(), "{error:?}");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("mongodb://{address}/x")),
        "{text}"
    );
    assert!(text.contains("no server answers"), "{text}");
    assert!(text.contains("refused"), "{text}");
}

#[needs(mongod)]
#[tokio::test]
async fn a_database_of_another_format_is_refused() {
    let database = fresh_database();
    let uri: StoreUri = database.uri().parse().unwrap();
    drop(open(&uri, None).await.unwrap());
    let client = Client::with_uri_str(database.uri()).await.unwrap();
    let log = client.default_database().unwrap();
    let log = log.collection::<Document>("page_log");
    let other = doc! {"$set": {"format": 1_000_i64}};
    log.update_one(doc! {"_id": 0}, other).await.unwrap();
    let written = open(&uri, None).await.map(|opened| opened.store);
    for refused in [written, open_existing(&uri).await] {
        let error = refused.err().expect("a refusal");
        assert!(error.is_fatal(), "{error:?}");
        let said = "has format 1000, this webfill reads format 1: use the webfill that wrote it";
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[needs(mongod)]
#[tokio::test]
async fn a_database_without_webfills_collections_is_not_exported() {
    let database = fresh_database();
    let uri: StoreUri = database.uri().parse().unwrap();
    let error = open_existing(&uri).await.err().expect("a refusal");
    assert!(error.is_fatal(), "{error:?}");
    assert!(error.to_string().contains("no such database"), "{error}");
    open(&uri, None).await.unwrap();
    open_existing(&uri).await.unwrap();
}

#[needs(mongod)]
#[tokio::test]
async fn users_without_rights_are_shown_what_they_lack() {
    let mongod = Mongod::start_with(&["--auth"]);
    let address = mongod.address();
    let admin = Client::with_uri_str(format!("mongodb://{address}"))
        .await
        .unwrap();
    let root = doc! {"createUser": "root", "pwd": "hidden", "roles": ["root"]};
    create_user(&admin, "admin", root).await;
    let admin = Client::with_uri_str(format!("mongodb://root:hidden@{address}"))
        .await
        .unwrap();
    for (user, role) in [("writer", "readWrite"), ("reader", "read")] {
        let roles = [doc! {"role": role, "db": "x"}];
        let user = doc! {"createUser": user, "pwd": "hidden", "roles": &roles[..]};
        create_user(&admin, "x", user).await;
    }

    for wrong in ["writer:hidden2", "nobody:hidden", "writer:hidden%40"] {
        let error = refusal(&format!("mongodb://{wrong}@{address}/x")).await;
        assert!(error.is_fatal(), "{error:?}");
        assert!(
            error.to_string().contains("check user, password"),
            "{error}"
        );
    }
    for unfit in [String::new(), String::from("reader:hidden@")] {
        let error = refusal(&format!("mongodb://{unfit}{address}/x")).await;
        assert!(error.is_fatal(), "{error:?}");
        assert!(error.to_string().contains("readWrite"), "{error}");
    }

    try_open(&format!("mongodb://writer:hidden@{address}/x"))
        .await
        .unwrap();
    // Reading is enough for an export.
    let reader = format!("mongodb://reader:hidden@{address}/x")
        .parse()
        .unwrap();
    let store = open_existing(&reader).await.unwrap();
    let everything = ExportFilter::default();
    let rows = store
        .export(ExportKind::Pages, &everything, &mut |_| Ok(()))
        .await;
    assert_eq!(rows.unwrap(), 0);
    let crawl = Crawl {
        id: CrawlId::new("app", "c1"),
        request: json!({}),
        state: CrawlState::Running,
        counts: serde_json::Map::new(),
        started_at_ms: 0,
        updated_at_ms: 0,
        finished_at_ms: None,
    };
    let error = store.put_crawl(crawl).await.unwrap_err();
    assert!(error.to_string().contains("readWrite"), "{error}");
}

/// Certificates in a temporary folder.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn make() -> Certificates {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let certificates = Certificates { folder };
        certificates.run("make.sh", &["localhost"]);
        let key = std::fs::read(certificates.path("server.key")).unwrap();
        let certificate = std::fs::read(certificates.path("server.pem")).unwrap();
        std::fs::write(certificates.path("both.pem"), [key, certificate].concat()).unwrap();
        certificates
    }

    fn make_client(&self, name: &str) -> PathBuf {
        self.run("make-client.sh", &[name]);
        self.path(&format!("{name}.pem"))
    }

    fn run(&self, script: &str, arguments: &[&str]) {
        let scripts = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../certs"));
        let mut command = Command::new(scripts.join(script));
        let run = command.arg(self.folder.path()).args(arguments).output();
        let run = run.expect("a script of ours");
        assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[needs(mongod)]
#[tokio::test]
async fn only_clients_with_a_valid_certificate_are_accepted() {
    let (ours, foreign) = (Certificates::make(), Certificates::make());
    let (server, ca) = (ours.path("both.pem"), ours.path("ca.pem"));
    let options = [
        "--auth",
        "--tlsMode",
        "requireTLS",
        "--tlsCertificateKeyFile",
        server.to_str().unwrap(),
        "--tlsCAFile",
        ca.to_str().unwrap(),
    ];
    let mongod = Mongod::start_with(&options);
    let port = mongod.address().rsplit(':').next().unwrap().to_owned();
    let uri = |ca: &Path, client: Option<&Path>| {
        let ca = ca.display();
        let client = client.map(|client| {
            let client = client.display();
            format!("&tlsCertificateKeyFile={client}&authMechanism=MONGODB-X509")
        });
        format!(
            "mongodb://localhost:{port}/x?tls=true&tlsCAFile={ca}{}&authSource=$external",
            client.unwrap_or_default()
        )
    };
    let worker = ours.make_client("worker");
    let setup = format!(
        "localhost:{port}/?tls=true&tlsCAFile={}&tlsCertificateKeyFile={}",
        ca.display(),
        worker.display()
    );
    let admin = Client::with_uri_str(format!("mongodb://{setup}"))
        .await
        .unwrap();
    let root = doc! {"createUser": "root", "pwd": "hidden", "roles": ["root"]};
    create_user(&admin, "admin", root).await;
    let admin = Client::with_uri_str(format!("mongodb://root:hidden@{setup}"))
        .await
        .unwrap();
    let roles = [doc! {"role": "readWrite", "db": "x"}];
    let user = doc! {"createUser": "CN=worker,OU=clients,O=webfill", "roles": &roles[..]};
    create_user(&admin, "$external", user).await;

    try_open(&uri(&ca, Some(&worker))).await.unwrap();

    let reported = [
        (
            "wrong CA",
            uri(&foreign.path("ca.pem"), Some(&worker)),
            "tlsCAFile",
        ),
        (
            "no CA",
            format!("mongodb://localhost:{port}/x?tls=true"),
            "tlsCAFile",
        ),
        (
            "no certificate",
            uri(&ca, None).replace("&authSource=$external", ""),
            "tlsCertificateKeyFile",
        ),
        (
            "foreign certificate",
            uri(&ca, Some(&foreign.make_client("worker"))),
            "tlsCertificateKeyFile",
        ),
        (
            "no user",
            uri(&ca, Some(&ours.make_client("stranger"))),
            "$external",
        ),
        (
            "plaintext",
            format!("mongodb://localhost:{port}/x?tls=false"),
            "tls=true",
        ),
        (
            "other name",
            uri(&ca, Some(&worker)).replace("localhost", "127.0.0.1"),
            "name",
        ),
        (
            "no such file",
            uri(Path::new("/no/ca.pem"), Some(&worker)),
            "/no/ca.pem",
        ),
    ];
    let quick = "&serverSelectionTimeoutMS=1000";
    for (case, uri, hint) in reported {
        println!("{case}:");
        let error = refusal(&format!("{uri}{quick}")).await;
        assert!(error.to_string().contains(hint), "{case}: {error}");
    }
}
