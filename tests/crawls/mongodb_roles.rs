//! The roles of `deploy/mongodb/roles.json`, on a server that asks who is there: a dispatcher and a supervisor
//! crawl with no more than theirs, and whatever else they try is refused.

use bson::{Document, doc};
use serde_json::{Value, json};
use webfill_test_mongod::Mongod;
use webfill_test_needs::needs;
use webfill_tests::Signal;
use webfill_tests::documents::Documents;
use webfill_tests::run::{Run, Running};
use webfill_tests::site::{Web, page};
use webfill_tests::workplace::files_under;

use crate::keyed_fleet::{Fleet, serving, wait_for};

/// The server's error for what a user may not do.
const UNAUTHORIZED: i32 = 13;

/// What the server logs then.
const REFUSED: &str = "Checking authorization failed";

/// A server with the roles that we ship, and a user of each.
struct Server {
    mongod: Mongod,
}

impl Server {
    fn start() -> Server {
        let mongod = Mongod::start_with(&["--auth"]);
        let nobody = Documents::open(&format!("mongodb://{}/admin", mongod.address()));
        nobody.run(doc! {"createUser": "root", "pwd": "secret", "roles": ["root"]});
        let server = Server { mongod };
        let root = server.documents("root");
        let shipped = include_str!("../../deploy/mongodb/roles.json");
        let shipped: Vec<Value> = serde_json::from_str(shipped).expect("JSON");
        for role in &shipped {
            root.run(bson::serialize_to_document(role).expect("a command"));
        }
        for (user, role) in [
            ("dispatcher", "webfillDispatcher"),
            ("supervisor", "webfillSupervisor"),
            ("reader", "webfillReader"),
        ] {
            root.run(doc! {"createUser": user, "pwd": "secret", "roles": [role]});
        }
        server
    }

    fn uri(&self, user: &str) -> String {
        let source = if user == "root" {
            "?authSource=admin"
        } else {
            ""
        };
        format!(
            "mongodb://{user}:secret@{}/webfill{source}",
            self.mongod.address()
        )
    }

    fn documents(&self, user: &str) -> Documents {
        Documents::open(&self.uri(user))
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

/// With everything on that reads or writes the store.
fn eager(run: Run, uri: &str) -> Run {
    run.instead("--store", uri)
        .env("WEBFILL_RETENTION_PAGES_DAYS", "30")
        .env("WEBFILL_RETENTION_LOG_DAYS", "30")
}

fn request(url: &str) -> Value {
    json!({
        "url": url, "appid": "test", "crawlid": "c", "maxdepth": 1,
        "changes": true, "keep_bodies": true,
    })
}

/// What the logs of a fleet say of rights.
fn refusals(fleet: &Fleet) -> Vec<String> {
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

fn end(running: Running) {
    running.signal(Signal::TERM);
    running.finish().expect(0);
}

#[needs(mongod)]
#[test]
fn a_fleet_works_with_the_roles_that_are_shipped() {
    let server = Server::start();
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
    let dispatcher = serving(eager(fleet.dispatcher_run(), &server.uri("dispatcher")));
    let supervisor = eager(fleet.supervisor(&web, "one"), &server.uri("supervisor")).start();
    fleet.wait_until_told("supervisor_joined", "one");
    let client = fleet.client("feeder");
    for path in ["/", "/a", "/b"] {
        let fed = client.ask(&request(&site.url(path)));
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
        .expect(0);
    assert_eq!(exported.stdout.lines().count(), 3, "{}", exported.stdout);
    end(supervisor);
    end(dispatcher);
    assert_eq!(refusals(&fleet), [""; 0]);
    let log = server.mongod.log();
    let refused: Vec<&str> = log.lines().filter(|line| line.contains(REFUSED)).collect();
    assert_eq!(refused, [""; 0]);
}

#[needs(mongod)]
#[test]
fn each_role_is_refused_what_it_does_not_need() {
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
    // It asks for a clock, to see whether the cache is there.
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
