//! Tests the roles of `deploy/mongodb/roles.json` on a server with access control. A dispatcher and a supervisor can
//! crawl with their own roles, and everything else is refused.

use bson::{Document, doc};
use serde_json::{Value, json};
use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::{Workplace, files_under};

use crate::keyed_fleet::{Fleet, start_serving, wait_for};

/// The server's error code for a request without the necessary right.
const UNAUTHORIZED: i32 = 13;

/// The message that the server logs when a client lacks a right.
const REFUSED: &str = "Checking authorization failed";

/// A server that has the shipped roles and one user for each role.
struct Server {
    mongod: Mongod,
    /// The certificates that identify users to the server; `None` if the server uses passwords.
    certificates: Option<Certificates>,
}

const USERS: [(&str, &str); 4] = [
    ("dispatcher", "webfillDispatcher"),
    ("supervisor", "webfillSupervisor"),
    ("crawl", "webfillCrawl"),
    ("reader", "webfillReader"),
];

impl Server {
    fn start() -> Server {
        let mongod = Mongod::start_with(&["--auth"]);
        let nobody = Documents::open(&format!("mongodb://{}/admin", mongod.address()));
        nobody.run(doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]});
        let server = Server {
            mongod,
            certificates: None,
        };
        server.make_roles();
        let root = server.documents("root");
        for (user, role) in USERS {
            root.run(doc! {"createUser": user, "pwd": "secret", "roles": [role]});
        }
        server
    }

    fn start_with_certificates() -> Server {
        let certificates = Certificates::make();
        let [ca, both] = ["ca.pem", "both.pem"].map(|name| certificates.path(name));
        let tls = ["--auth", "--tlsMode", "requireTLS", "--tlsCAFile", &ca];
        let options = [&tls[..], &["--tlsCertificateKeyFile", &both]].concat();
        let server = Server {
            mongod: Mongod::start_with(&options),
            certificates: Some(certificates),
        };
        let nobody = server.uri("root").replace("root:secret@", "");
        let nobody = Documents::open(&nobody.replace("/webfill?authSource=admin&", "/admin?"));
        nobody.run(doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]});
        server.make_roles();
        let root = server.documents("root");
        for (user, role) in USERS {
            let name = format!("CN={user},OU=clients,O=webfill");
            let roles = [doc! {"role": role, "db": "webfill"}];
            root.run_in("$external", doc! {"createUser": name, "roles": &roles[..]});
        }
        server
    }

    fn make_roles(&self) {
        let root = self.documents("root");
        let shipped = include_str!("../../deploy/mongodb/roles.json");
        let shipped: Vec<Value> = serde_json::from_str(shipped).expect("JSON");
        for role in &shipped {
            root.run(bson::serialize_to_document(role).expect("a command"));
        }
    }

    fn uri(&self, user: &str) -> String {
        let address = self.mongod.address();
        let Some(certificates) = &self.certificates else {
            let source = if user == "root" {
                "?authSource=admin"
            } else {
                ""
            };
            return format!("mongodb://{user}:secret@{address}/webfill{source}");
        };
        // The certificate is only valid for the host name, so the URI must contain this name.
        let (_, port) = address.rsplit_once(':').expect("a port");
        let tls = format!(
            "tls=true&tlsCAFile={}&tlsCertificateKeyFile={}",
            certificates.path("ca.pem"),
            certificates.client_certificate(user)
        );
        match user {
            "root" => {
                format!("mongodb://root:secret@localhost:{port}/webfill?authSource=admin&{tls}")
            }
            _ => format!(
                "mongodb://localhost:{port}/webfill?{tls}&authMechanism=MONGODB-X509&authSource=$external"
            ),
        }
    }

    fn documents(&self, user: &str) -> Documents {
        Documents::open(&self.uri(user))
    }

    fn assert_nothing_refused(&self) {
        let log = self.mongod.log();
        let refused: Vec<&str> = log.lines().filter(|line| line.contains(REFUSED)).collect();
        assert_eq!(refused, [""; 0]);
    }

    fn assert_refused(&self, user: &str, command: Document) {
        match self.documents(user).try_run(command.clone()) {
            Ok(_) => panic!("{user} may run {command}"),
            Err(error) => {
                let code = match *error.kind {
                    mongodb::error::ErrorKind::Command(ref refused) => refused.code,
                    _ => panic!("{user}, {command}: {error}"),
                };
                assert_eq!(code, UNAUTHORIZED, "{user}, {command}: {error}");
            }
        }
    }
}

/// A folder with the certificates of a server and of its clients.
struct Certificates(tempfile::TempDir);

impl Certificates {
    fn make() -> Certificates {
        let certificates = Certificates(tempfile::tempdir().expect("a folder"));
        certificates.run_script("make.sh", "localhost");
        let [key, certificate] = ["server.key", "server.pem"]
            .map(|name| std::fs::read(certificates.path(name)).expect("it was just made"));
        let both = [key, certificate].concat();
        std::fs::write(certificates.path("both.pem"), both).expect("our own folder");
        certificates
    }

    fn client_certificate(&self, name: &str) -> String {
        let path = self.path(&format!("{name}.pem"));
        if !std::path::Path::new(&path).exists() {
            self.run_script("make-client.sh", name);
        }
        path
    }

    fn run_script(&self, script: &str, name: &str) {
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../certs");
        let mut command = std::process::Command::new(format!("{scripts}/{script}"));
        let run = command.arg(self.0.path()).arg(name).output();
        let run = run.expect("a script of ours");
        assert!(run.status.success(), "{run:?}");
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// A run on this store. It also drops old pages and old entries of the page log.
fn with_store_and_retention(run: Run, uri: &str) -> Run {
    run.replace_flag("--store", uri)
        .env("WEBFILL_RETENTION_PAGES_DAYS", "30")
        .env("WEBFILL_RETENTION_LOG_DAYS", "30")
}

fn request(url: &str) -> Value {
    json!({
        "url": url, "appid": "test", "crawlid": "c", "maxdepth": 1,
        "changes": true, "keep_bodies": true,
    })
}

/// The log lines of a fleet about missing rights.
fn logged_refusals(fleet: &Fleet) -> Vec<String> {
    let logs = files_under(&fleet.work.path("state"));
    let logs = logs
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "log"));
    let texts = logs.filter_map(|file| std::fs::read_to_string(file).ok());
    let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines
        .filter(|line| line.contains("not authorized") || line.contains("readWrite"))
        .collect()
}

fn terminate(running: Running) {
    running.signal(Signal::TERM);
    running.finish().expect_code(0);
}

#[needs(mongod)]
#[test]
fn a_fleet_works_with_the_roles_that_are_shipped() {
    a_fleet_works_at(&Server::start());
}

#[needs(mongod)]
#[test]
fn a_fleet_works_with_certificates_of_users_that_have_the_roles() {
    a_fleet_works_at(&Server::start_with_certificates());
}

fn a_fleet_works_at(server: &Server) {
    let web = Web::start();
    let site = web.site("roles.example");
    let links = page("Start").link("/a").link("/b");
    site.serve("/", links);
    for path in ["/a", "/b"] {
        site.serve(path, page(path).field("name", path));
    }
    let fleet = Fleet::new();
    fleet.new_member("client", "feeder");
    fleet.new_member("supervisor", "one");
    let dispatcher = start_serving(with_store_and_retention(
        fleet.dispatcher_run(),
        &server.uri("dispatcher"),
    ));
    let supervisor =
        with_store_and_retention(fleet.supervisor_run(&web, "one"), &server.uri("supervisor"))
            .start();
    fleet.wait_until_logged("supervisor_joined", "one");
    let client = fleet.client("feeder");
    for path in ["/", "/a", "/b"] {
        let fed = client.request(&request(&site.url(path)));
        assert_eq!(fed["accepted"], 1, "{fed}");
    }
    let root = server.documents("root");
    wait_for("pages, bodies, and how extractions are", || {
        let there =
            root.count("pages") == 3 && root.count("bodies") == 3 && root.count("robots") == 1;
        (there && root.count("health") > 0 && root.count("versions") > 0).then_some(())
    });
    let reader = server.uri("reader");
    let exported = Run::new(["export", "pages", "--store", &reader])
        .finish()
        .expect_code(0);
    assert_eq!(exported.stdout.lines().count(), 3, "{}", exported.stdout);
    terminate(supervisor);
    terminate(dispatcher);
    assert_eq!(logged_refusals(&fleet), [""; 0]);
    server.assert_nothing_refused();
}

#[needs(mongod)]
#[test]
fn one_machine_crawls_reads_again_and_prunes_with_the_role_for_that() {
    let server = Server::start();
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("roles.example");
    site.serve("/", page("Start").link("/a"));
    site.serve("/a", page("A").field("name", "a"));
    let uri = server.uri("crawl");
    let crawled = work.crawl(&web).replace_flag("--store", &uri);
    let seed = site.url("/");
    let crawled = crawled.args(["--keep-bodies", "--follow", "all", &seed]);
    crawled.finish().expect_code(0);
    let stored = |args: &[&str]| {
        Run::new(args)
            .args(["--store", &uri])
            .finish()
            .expect_code(0)
            .stdout
    };
    let pages = stored(&["export", "pages", "--since", "0"]);
    assert_eq!(pages.lines().count(), 2, "{pages}");
    let mappings = work.path("mappings").display().to_string();
    stored(&["extract", "--crawl", "test", "--mappings", &mappings]);
    let reported = stored(&["prune", "--older-than", "0s"]);
    assert!(reported.starts_with("2 pages and "), "{reported}");
    server.assert_nothing_refused();
}

#[needs(mongod)]
#[test]
fn each_role_is_refused_unneeded_commands() {
    let server = Server::start();
    let one = || doc! {"_id": "x"};
    let insert = |collection: &str| doc! {"insert": collection, "documents": [one()]};
    let delete = |collection: &str| doc! {"delete": collection, "deletes": [{"q": {}, "limit": 0}]};
    for user in ["dispatcher", "supervisor", "reader"] {
        for command in [
            doc! {"drop": "pages"},
            doc! {"dropDatabase": 1},
            doc! {"dropIndexes": "pages", "index": "*"},
            doc! {"createUser": "other", "pwd": "x", "roles": []},
            doc! {"find": "claims"},
            insert("elsewhere"),
            doc! {"find": "elsewhere"},
            delete("records"),
        ] {
            server.assert_refused(user, command);
        }
    }
    for collection in ["crawls", "site_states", "health", "changes", "judged"] {
        server.assert_refused("supervisor", doc! {"find": collection});
        server.assert_refused("supervisor", insert(collection));
    }
    for collection in ["pages", "page_log"] {
        server.assert_refused("supervisor", delete(collection));
    }
    for collection in ["robots", "sites"] {
        server.assert_refused("dispatcher", insert(collection));
        server.assert_refused("reader", doc! {"find": collection});
    }
    // The dispatcher may read `sites`: it reads the clock of a site there to check that the cache is available.
    server.assert_refused("dispatcher", doc! {"find": "robots"});
    server.assert_refused("dispatcher", insert("bodies"));
    server.assert_refused("supervisor", insert("versions"));
    for collection in [
        "records", "pages", "page_log", "crawls", "samples", "bodies",
    ] {
        server.assert_refused("reader", insert(collection));
    }
    assert!(server.mongod.log().contains(REFUSED));
}
