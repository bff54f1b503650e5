//! Tests HTTP with TLS and tokens. The requests are sent by curl.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use webfill_tests::callers::connect_from;
use webfill_tests::run::Run;
use webfill_tests::site::Certificates;

use crate::fleet::{Fleet, HTTP, request, wait_for};

const HEADING: &str = "# webfill: tokens for HTTP, one `NAME TOKEN` per line\n";
const CHIEF: &str = "chief-0123456789abcdef0123456789abcdef";
const SHOP: &str = "shop-0123456789abcdef0123456789abcdef";
/// A placeholder in a token file. [`Guarded::write_tokens`] replaces it by the digest of the token [`SHOP`].
const SHOP_DIGEST: &str = "sha256:DIGEST";

/// A dispatcher with TLS and tokens, and the files that its clients need.
struct Guarded {
    fleet: Fleet,
    certificates: Certificates,
}

impl Guarded {
    fn start() -> Guarded {
        let files = |work: &Path| ["http.pem", "http.key", "tokens"].map(|name| work.join(name));
        let folder = Fleet::unstarted_fleet(&[]).work;
        let [certificate, key, tokens] = files(&folder.path(""));
        let text = |path: &PathBuf| path.to_str().expect("plain").to_owned();
        let settings = [text(&certificate), text(&key), text(&tokens)];
        let mut fleet = Fleet::unstarted_fleet(&[
            ("DISPATCHER_HTTP_CERTIFICATE", &settings[0]),
            ("DISPATCHER_HTTP_KEY", &settings[1]),
            ("DISPATCHER_HTTP_TOKENS", &settings[2]),
        ]);
        fleet.work = folder;
        fleet.dispatcher_state = fleet.work.path("state/dispatcher-0");
        let certificates = Certificates::make(&[&fleet.host]);
        let mut guarded = Guarded {
            fleet,
            certificates,
        };
        guarded.install_certificate(&guarded.certificates.certificate());
        guarded.write_tokens(&format!(
            "chief {CHIEF}\nshop {SHOP_DIGEST} apps=shop read-only\n"
        ));
        guarded.fleet.start_dispatcher();
        guarded
    }

    /// Installs a certificate. The key is the same for all certificates of the test.
    fn install_certificate(&self, certificate: &Path) {
        let key = fs::read(self.certificates.key()).expect("a key");
        self.replace_file("http.key", &key);
        self.replace_file("http.pem", &fs::read(certificate).expect("a certificate"));
    }

    fn write_tokens(&self, tokens: &str) {
        let digest = sha256(SHOP);
        let text = format!("{HEADING}{tokens}").replace("DIGEST", &digest);
        self.replace_file("tokens", text.as_bytes());
    }

    fn replace_file(&self, name: &str, content: &[u8]) {
        let path = self.fleet.work.path(name);
        let _ = fs::remove_file(&path);
        fs::write(&path, content).expect("our own");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("our own");
    }

    fn curl(&self, scheme: &str, path: &str, more: &[&str]) -> Output {
        let url = format!("{scheme}://{}:{HTTP}{path}", self.fleet.host);
        Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--max-time",
                "30",
                "--noproxy",
                "*",
            ])
            .args(["--write-out", "\n%{http_code}", "--cacert"])
            .arg(self.certificates.authority())
            .args(more)
            .arg(url)
            .output()
            .expect("curl is installed")
    }

    /// Requests a path with a token. Returns the status and the JSON of the answer.
    fn ask(&self, token: &str, path: &str, more: &[&str]) -> (u16, Value) {
        let header = format!("Authorization: Bearer {token}");
        parse_answer(&self.curl("https", path, &[&["--header", &header], more].concat()))
    }
}

fn parse_answer(output: &Output) -> (u16, Value) {
    let text = String::from_utf8_lossy(&output.stdout);
    let (body, status) = text.rsplit_once('\n').expect("a status");
    let status = status.parse().expect("a number");
    let body = serde_json::from_str(body.trim());
    let error = String::from_utf8_lossy(&output.stderr);
    (status, body.unwrap_or_else(|_| panic!("{text} {error}")))
}

fn sha256(text: &str) -> String {
    let script = format!("printf %s {text} | sha256sum");
    let output = Command::new("sh")
        .args(["-c", &script])
        .output()
        .expect("sha256sum");
    String::from_utf8_lossy(&output.stdout)[..64].to_owned()
}

#[test]
fn only_those_with_a_token_are_answered_and_by_tls_alone() {
    let guarded = Guarded::start();
    for path in ["/status", "/healthz", "/nowhere"] {
        let (status, reported) = parse_answer(&guarded.curl("https", path, &[]));
        assert_eq!(
            (status, &reported["error"]["path"]),
            (401, &json!("$")),
            "{path}: {reported}"
        );
    }
    assert_eq!(guarded.ask("wrong", "/status", &[]).0, 401);
    let (status, reported) = guarded.ask(CHIEF, "/status", &[]);
    assert_eq!(
        (status, &reported["action"]),
        (200, &json!("status")),
        "{reported}"
    );
    let plain = guarded.curl(
        "http",
        "/status",
        &["--header", &format!("Authorization: Bearer {CHIEF}")],
    );
    let (status, reported) = parse_answer(&plain);
    assert_eq!(status, 400, "{reported}");
    assert!(
        reported["error"]["message"]
            .as_str()
            .is_some_and(|why| why.contains("https"))
    );

    // A token can be limited to an application, as a key can.
    assert_eq!(guarded.ask(SHOP, "/info?appid=shop", &[]).0, 200);
    for (path, place) in [("/info?appid=other", "$.appid"), ("/status", "$.action")] {
        let (status, reported) = guarded.ask(SHOP, path, &[]);
        assert_eq!(
            (status, &reported["error"]["path"]),
            (400, &json!(place)),
            "{reported}"
        );
    }
    let feed = |kind: &'static str, body: String| {
        let header = format!("Content-Type: {kind}");
        guarded.ask(
            SHOP,
            "/feed",
            &["--header", &header, "--data-binary", &body],
        )
    };
    let one = json!({"url": "http://a.example/", "appid": "shop", "crawlid": "c"}).to_string();
    let (status, reported) = feed("application/json", one.clone());
    assert_eq!(
        (status, &reported["error"]["path"]),
        (400, &json!("$")),
        "{reported}"
    );
    let (status, reported) = feed("application/x-ndjson", one);
    assert_eq!(
        (status, &reported["error"]["path"]),
        (400, &json!("$")),
        "{reported}"
    );

    let audit = webfill_tests::run::Run::new(["audit", "--json", "--who", "shop", "--state"])
        .arg(&guarded.fleet.dispatcher_state);
    let reported = audit.finish().expect_code(0).stdout;
    let reported: Vec<Value> = reported
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert!(!reported.is_empty());
    for line in &reported {
        assert_eq!(
            (&line["by"], &line["result"]),
            (&json!("token"), &json!("refused")),
            "{line}"
        );
        assert_eq!(line["address"], "127.0.0.1", "{line}");
    }
    let logs = format!("{:?}", guarded.fleet.work.logs());
    assert!(
        !logs.contains(CHIEF) && !logs.contains(SHOP),
        "a token is in a log"
    );
}

#[test]
fn an_address_that_guesses_tokens_is_answered_429() {
    let guarded = Guarded::start();
    assert_eq!(guarded.ask(CHIEF, "/status", &[]).0, 200);
    let statuses: Vec<u16> = (0..12)
        .map(|guess| guarded.ask(&format!("guess-{guess}"), "/status", &[]).0)
        .collect();
    assert_eq!(statuses, [&[401; 10][..], &[429; 2]].concat());
    let right = guarded.ask(CHIEF, "/status", &[]).0;
    assert_eq!(right, 200, "a right token is always let in");
    let logged = guarded.fleet.logged_lines("token_refused");
    assert_eq!(logged.len(), 1, "once a minute");
    assert_eq!(logged[0]["address"], "127.0.0.1");
    // The client is still answered when it uses another address.
    let other = ["--interface", "127.0.0.2"];
    assert_eq!(guarded.ask(CHIEF, "/status", &other).0, 200);
}

#[test]
fn certificate_and_tokens_are_renewed_by_a_reload() {
    let guarded = Guarded::start();
    let reload = || guarded.fleet.run(&["reload"]);
    let expired = guarded
        .certificates
        .make_expired_certificate(&guarded.fleet.host);
    guarded.install_certificate(&expired);
    reload().expect_code(0);
    let refused = guarded.curl("https", "/status", &[]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && why.contains("expired"),
        "{why}"
    );

    guarded.install_certificate(&guarded.certificates.certificate());
    guarded.write_tokens(&format!("shop {SHOP_DIGEST}\n"));
    assert!(
        !guarded.curl("https", "/status", &[]).status.success(),
        "not read yet"
    );
    let reloaded = guarded.fleet.run_json(&["reload"]);
    let changed = ["http_certificate", "http_tokens"];
    let changed = changed.map(|name| format!("dispatcher.{name}"));
    assert_eq!(reloaded["changed"], json!(changed));
    assert_eq!(
        guarded.ask(CHIEF, "/status", &[]).0,
        401,
        "it was taken off"
    );
    assert_eq!(
        guarded.ask(SHOP, "/status", &[]).0,
        200,
        "it is bound no more"
    );

    // A faulty certificate makes the reload fail, and the former certificate stays in use.
    guarded.replace_file("http.pem", b"rubbish");
    let said = reload().expect_code(1).stderr;
    assert!(said.contains("http.pem"), "{said}");
    assert_eq!(guarded.ask(SHOP, "/status", &[]).0, 200);
}

#[test]
fn without_tls_and_tokens_no_other_machine_is_served() {
    let refuses = |settings: &[(&str, &str)], words: &[&str]| {
        let fleet = Fleet::unstarted_fleet(settings);
        let run = fleet
            .dispatcher_role()
            .replace_flag("--http", "10.0.0.1:8080");
        let refused = run.finish().expect_code(2);
        for word in words {
            assert!(refused.one_sentence().contains(word), "{}", refused.stderr);
        }
        assert!(!fleet.dispatcher_state.exists(), "nothing was opened");
    };
    refuses(
        &[],
        &["dispatcher.http = ", "http_certificate", "http_tokens"],
    );
    refuses(&[("DISPATCHER_HTTP_TOKENS", "tokens")], &["TLS"]);
    refuses(&[("DISPATCHER_HTTP_KEY", "key")], &["belong together"]);
    let guarded = Guarded::start();
    let path = |name: &str| {
        guarded
            .fleet
            .work
            .path(name)
            .to_str()
            .expect("plain")
            .to_owned()
    };
    let (certificate, key, tokens) = (path("http.pem"), path("http.key"), path("tokens"));
    let open = fs::Permissions::from_mode(0o444);
    fs::set_permissions(&tokens, open).expect("our own");
    let settings = [
        ("DISPATCHER_HTTP_CERTIFICATE", &*certificate),
        ("DISPATCHER_HTTP_KEY", &key),
        ("DISPATCHER_HTTP_TOKENS", &tokens),
    ];
    refuses(&settings, &["tokens is readable by others"]);
    let swapped = [
        settings[0],
        ("DISPATCHER_HTTP_KEY", &*certificate),
        settings[2],
    ];
    refuses(&swapped, &["cannot use"]);
    // The running dispatcher still answers requests.
    assert_eq!(
        guarded
            .fleet
            .client()
            .ask(&request("http://a.example/", "c"))["accepted"],
        1
    );
}

/// A client streams lines, some for another application and some faulty. The audit log must record the refusals under
/// the client's name.
#[test]
fn refused_lines_of_a_stream_are_audited() {
    let guarded = Guarded::start();
    guarded.write_tokens(&format!("chief {CHIEF}\nshop {SHOP} apps=shop\n"));
    let (status, _) = guarded.ask(CHIEF, "/reload", &["--json", "{}"]);
    assert_eq!(status, 200);
    let line = |app: &str, n: u32| {
        let url = format!("http://a.example/{n}");
        json!({"url": url, "appid": app, "crawlid": "c"}).to_string()
    };
    let own = [line("shop", 1), line("news", 1), "rubbish".into()].join("\n");
    let foreign = [line("news", 2), line("news", 3)].join("\n");
    for (lines, accepted) in [(own, 1), (foreign, 0)] {
        let lines_of = [
            "--header",
            "Content-Type: application/x-ndjson",
            "--data-binary",
        ];
        let (status, output) = guarded.ask(SHOP, "/feed", &[&lines_of[..], &[&lines]].concat());
        assert_eq!(
            (status, &output["accepted"]),
            (200, &json!(accepted)),
            "{output}"
        );
    }
    let state = guarded
        .fleet
        .dispatcher_state
        .to_str()
        .expect("plain")
        .to_owned();
    let audit = ["audit", "--json", "--what", "feed", "--state", &state];
    let output = Run::new(audit).finish().expect_code(0).stdout;
    let lines: Vec<Value> = output
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let sum = |result: &str, key: &str| -> u64 {
        let of = lines.iter().filter(|line| line["result"] == result);
        of.filter_map(|line| line[key].as_u64()).sum()
    };
    assert_eq!(
        (sum("done", "accepted"), sum("done", "refused")),
        (1, 1),
        "{lines:#?}"
    );
    assert_eq!(sum("refused", "refused"), 3, "{lines:#?}");
    let refused = lines
        .iter()
        .find(|line| line["result"] == "refused")
        .expect("a line");
    assert_eq!(refused["path"], "$.appid");
    assert_eq!(
        refused["crawls"],
        json!([{"appid": "news", "crawlid": "c"}])
    );
    assert_eq!(refused["who"], "shop");
}

/// Clients that do not read their answers take all connections that their address may have. After some time, the server
/// must close these connections.
#[test]
fn clients_that_do_not_read_an_answer_lose_their_connections() {
    let work = Fleet::unstarted_fleet(&[]).work;
    let tokens = work.write("tokens", format!("{HEADING}chief {CHIEF}\n"));
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o400)).expect("our own");
    let path = tokens.to_str().expect("plain");
    let fleet = Fleet::start_dispatcher_only(&[("DISPATCHER_HTTP_TOKENS", path)]);
    let ask = |path: &str| {
        let host = &fleet.host;
        format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {CHIEF}\r\n\r\n")
    };
    // The answers are larger than the kernel's buffers for a connection, but the requests are not.
    let questions = ask("/schema").repeat(4_000);
    let connect = || TcpStream::connect((&*fleet.host, HTTP)).expect("it listens");
    let mut first_answered = None;
    let stalled: Vec<TcpStream> = (0..16)
        .map(|_| {
            let mut stream = connect();
            stream.set_nonblocking(true).expect("an option");
            // The socket may accept only a part of the requests, but this part is long enough for the test.
            let _ = stream.write(questions.as_bytes()).expect("there is room");
            // The server knows the client by its token only when it answers. From then on, it keeps the connection for
            // longer.
            wait_for("it is answered", || {
                stream.peek(&mut [0]).is_ok().then_some(())
            });
            first_answered.get_or_insert_with(Instant::now);
            stream
        })
        .collect();
    let is_answered = || {
        let mut stream = connect();
        let mut first = [0; 12];
        let asked = stream.write_all(ask("/healthz").as_bytes());
        asked.and_then(|()| stream.read_exact(&mut first)).is_ok()
    };
    wait_for("a place is free again", || is_answered().then_some(()));
    // Connections without any traffic are closed earlier than this, so another limit has closed the first of these.
    let stalled_for = first_answered.expect("there are some").elapsed();
    assert!(stalled_for > Duration::from_secs(20), "{stalled_for:?}");
    drop(stalled);
}

/// Strangers at six addresses open connections and send nothing. Clients with a token must still be served.
#[test]
fn idle_connections_of_strangers_keep_no_client_out() {
    let work = Fleet::unstarted_fleet(&[]).work;
    let tokens = work.write("tokens", format!("{HEADING}chief {CHIEF}\n"));
    fs::set_permissions(&tokens, fs::Permissions::from_mode(0o400)).expect("our own");
    let path = tokens.to_str().expect("plain");
    let fleet = Fleet::start_dispatcher_only(&[("DISPATCHER_HTTP_TOKENS", path)]);
    let host = &fleet.host;
    let healthz =
        format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {CHIEF}\r\n\r\n");
    let ask = |stream: &mut TcpStream| {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("an option");
        let mut first = [0; 12];
        stream
            .write_all(healthz.as_bytes())
            .and_then(|()| stream.read_exact(&mut first))
            .map(|()| first)
    };
    let mut known = TcpStream::connect((&**host, HTTP)).expect("it listens");
    ask(&mut known).expect("it is answered");
    let from = |last: u8| connect_from(&format!("127.9.9.{last}"), host, HTTP);
    let idle: Vec<TcpStream> = (0..96).map(|number| from(2 + number % 6)).collect();
    for _ in 0..5 {
        let mut late = from(200);
        let answered = ask(&mut late).expect("a place is free");
        assert!(answered.starts_with(b"HTTP/1.1"), "{answered:?}");
    }
    // The byte may belong to the first answer. Reading it only checks that the connection is still open.
    known
        .write_all(healthz.as_bytes())
        .expect("the connection is kept");
    let mut rest = [0; 1];
    known.read_exact(&mut rest).expect("the connection is kept");
    drop(idle);
}
