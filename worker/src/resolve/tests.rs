use std::error::Error;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use webfill_wire::Outcome;

use super::*;

#[derive(Default)]
struct Permitted {
    private: bool,
    contact: Option<&'static str>,
    proxy: Option<&'static str>,
}

fn resolver(permitted: Permitted, overrides: &[String]) -> Resolver {
    let fetch = FetchConfig {
        resolve: overrides.to_vec(),
        proxy: permitted.proxy.map(str::to_owned),
        ..FetchConfig::default()
    };
    let politeness = PolitenessConfig {
        contact: permitted.contact.map(str::to_owned),
        allow_private_networks: permitted.private,
        ..PolitenessConfig::default()
    };
    Resolver::new(&fetch, &politeness).unwrap()
}

fn private_resolver(overrides: &[String]) -> Resolver {
    let permitted = Permitted {
        private: true,
        ..Permitted::default()
    };
    resolver(permitted, overrides)
}

fn public_resolver() -> Resolver {
    let permitted = Permitted {
        contact: Some("https://example.com/crawl"),
        ..Permitted::default()
    };
    resolver(permitted, &[])
}

fn restrictive_resolver() -> Resolver {
    resolver(Permitted::default(), &[])
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn outcome<T>(result: Result<T, ResolveError>) -> Option<Outcome> {
    result.err().map(|error| error.outcome())
}

fn client(part: ClientPart) -> reqwest::Result<reqwest::Client> {
    let provider = rustls::crypto::ring::default_provider();
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(part.resolver))
        .no_proxy()
        .build()
}

fn clients(resolver: &Resolver) -> Clients {
    Clients::build(resolver, client).unwrap()
}

/// Starts a server that answers with its name and the `Host` header. Returns its port.
async fn spawn_server(name: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") && connection.read_buf(&mut head).await.unwrap() > 0
            {
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let host = head
                .lines()
                .find_map(|line| line.strip_prefix("host: "))
                .unwrap();
            let body = format!("{name} as {host}");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    port
}

async fn fetch_text(clients: &Clients, text: &str) -> String {
    let response = clients.get(&url(text)).send().await.unwrap();
    response.text().await.unwrap()
}

/// Finds the refusal inside an error of the HTTP client, in the same way as the fetcher.
fn refusal(error: &reqwest::Error) -> &ResolveError {
    let mut next: Option<&(dyn Error + 'static)> = error.source();
    while let Some(cause) = next {
        if let Some(refusal) = cause.downcast_ref() {
            return refusal;
        }
        next = cause.source();
    }
    panic!("no refusal in {error:?}");
}

#[tokio::test]
async fn an_override_leads_one_port_of_a_host_to_its_address() {
    let (first, second) = (spawn_server("first").await, spawn_server("second").await);
    let clients = clients(&private_resolver(&[
        format!("site.test:80:127.0.0.1:{first}"),
        format!("*:8080:127.0.0.1:{second}"),
        format!("same.test:{first}:127.0.0.1"),
        format!("site.test:443:127.0.0.1:{second}"),
    ]));
    assert_eq!(
        fetch_text(&clients, "http://site.test/a").await,
        "first as site.test"
    );
    assert_eq!(
        fetch_text(&clients, "http://site.test:8080/").await,
        "second as site.test:8080"
    );
    assert_eq!(
        fetch_text(&clients, "http://other.test:8080/").await,
        "second as other.test:8080"
    );
    assert_eq!(
        fetch_text(&clients, "http://site.test:443/").await,
        "second as site.test:443"
    );
    let same = format!("same.test:{first}");
    assert_eq!(
        fetch_text(&clients, &format!("http://{same}/")).await,
        format!("first as {same}")
    );
}

#[tokio::test]
async fn a_host_at_another_port_is_looked_up() {
    let port = spawn_server("first").await;
    let clients = clients(&private_resolver(&["localhost:80:127.0.0.1:1".into()]));
    let text = format!("http://localhost:{port}/");
    assert_eq!(
        fetch_text(&clients, &text).await,
        format!("first as localhost:{port}")
    );
}

#[test]
fn only_a_changed_port_that_urls_name_keeps_http_2_away() {
    let resolver = private_resolver(&[
        "a.test:443:127.0.0.1:8443".into(),
        "a.test:4430:127.0.0.1:8443".into(),
        "a.test:4431:127.0.0.1".into(),
    ]);
    let built = std::cell::RefCell::new(Vec::new());
    Clients::build(&resolver, |part| {
        built
            .borrow_mut()
            .push((part.resolver.port, part.http1_only));
        client(part)
    })
    .unwrap();
    let expected = [
        (Some(443), false),
        (Some(4430), true),
        (Some(4431), false),
        (None, false),
    ];
    assert_eq!(*built.borrow(), expected);
}

#[tokio::test]
async fn a_refusal_is_found_in_the_error_of_the_client() {
    let clients = clients(&public_resolver());
    let refused = clients
        .get(&url("http://localhost:1/"))
        .send()
        .await
        .unwrap_err();
    assert_eq!(refusal(&refused).outcome(), Outcome::UnsafeAddress);
    let message = refusal(&refused).to_string();
    assert!(message.starts_with("host localhost is at "), "{message}");
    assert!(message.contains("--allow-private-networks"), "{message}");
    // No name server is queried for a label of more than 63 letters.
    let unknown = format!("http://{}.test/", "a".repeat(64));
    let unknown = clients.get(&url(&unknown)).send().await.unwrap_err();
    assert_eq!(refusal(&unknown).outcome(), Outcome::DnsError);
}

#[tokio::test]
async fn an_override_is_judged_like_any_address() {
    let permitted = Permitted {
        contact: Some("https://example.com/crawl"),
        ..Permitted::default()
    };
    let resolver = resolver(permitted, &["site.test:80:127.0.0.1:8080".into()]);
    let refused = clients(&resolver)
        .get(&url("http://site.test/"))
        .send()
        .await
        .unwrap_err();
    assert_eq!(refusal(&refused).outcome(), Outcome::UnsafeAddress);
}

#[test]
fn every_spelling_of_an_address_in_a_url_is_judged() {
    let resolver = public_resolver();
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "１２７.０.０.１",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[fd00::1]",
        "0",
        "255.255.255.255",
    ] {
        let judged = resolver.check_literal(&url(&format!("http://{host}/")));
        assert_eq!(outcome(judged), Some(Outcome::UnsafeAddress), "{host}");
    }
    for host in [
        "8.8.8.8",
        "[2606:4700:4700::1111]",
        "localhost",
        "example.com",
    ] {
        let judged = resolver.check_literal(&url(&format!("http://{host}/")));
        assert_eq!(outcome(judged), None, "{host}");
    }
}

#[test]
fn each_permission_allows_more_addresses() {
    let (loopback, public_address) = (url("http://127.0.0.1/"), url("http://8.8.8.8/"));
    let nobodys = url("http://0.0.0.0/");
    for (resolver, expected) in [
        (restrictive_resolver(), [false, false, false]),
        (public_resolver(), [false, true, false]),
        (private_resolver(&[]), [true, false, false]),
    ] {
        let judged =
            [&loopback, &public_address, &nobodys].map(|url| resolver.check_literal(url).is_ok());
        assert_eq!(judged, expected, "{resolver:?}");
    }
    let refused = restrictive_resolver()
        .check_literal(&public_address)
        .unwrap_err();
    assert!(refused.to_string().contains("--contact"), "{refused}");
}

#[test]
fn an_answer_that_mixes_addresses_keeps_the_allowed() {
    let addresses = |list: &[&str]| {
        list.iter()
            .map(|text| text.parse().unwrap())
            .collect::<Vec<SocketAddr>>()
    };
    let mixed = addresses(&["10.0.0.1:0", "8.8.8.8:0", "[::1]:0", "0.0.0.0:0"]);
    assert_eq!(
        public_resolver().keep_allowed("a.test", mixed).unwrap(),
        addresses(&["8.8.8.8:0"])
    );
    let refused = public_resolver().keep_allowed("a.test", addresses(&["10.0.0.1:0", "[::1]:0"]));
    assert_eq!(outcome(refused), Some(Outcome::UnsafeAddress));
}

#[tokio::test]
async fn a_private_host_is_one_with_private_addresses_only() {
    let resolver = private_resolver(&[
        "site.test:80:10.0.0.1".into(),
        "site.test:443:8.8.8.8".into(),
    ]);
    for (text, expected) in [
        ("http://127.0.0.1:8080/", true),
        ("http://[::1]/", true),
        ("http://localhost/", true),
        ("http://site.test/", true),
        ("https://site.test/", false),
        ("http://8.8.8.8/", false),
        ("http://0.0.0.0/", false),
    ] {
        assert_eq!(
            resolver.is_private_host(&url(text)).await,
            expected,
            "{text}"
        );
    }
    let unknown = url(&format!("http://{}.test/", "a".repeat(64)));
    assert!(!resolver.is_private_host(&unknown).await);
}

#[tokio::test]
async fn only_the_proxy_itself_may_have_a_private_address() {
    let resolver = resolver(
        Permitted {
            contact: Some("https://example.com/crawl"),
            proxy: Some("http://user:secret@LocalHost:3128"),
            ..Permitted::default()
        },
        &["*:80:8.8.8.8".into()],
    );
    let addresses = resolver.resolve("localhost", Some(80)).await.unwrap();
    assert!(
        addresses.iter().all(|address| address.ip().is_loopback()),
        "{addresses:?}"
    );
    assert_eq!(
        outcome(resolver.check_peer(Some("127.0.0.1:3128".parse().unwrap()))),
        None
    );
    for (text, expected) in [
        ("http://127.0.0.1/", Some(Outcome::UnsafeAddress)),
        ("https://localhost/", Some(Outcome::UnsafeAddress)),
        ("http://site.test/", None),
    ] {
        assert_eq!(
            outcome(resolver.check_proxied(&url(text)).await),
            expected,
            "{text}"
        );
    }
    let only_known_to_the_proxy = url(&format!("https://{}.test/", "a".repeat(64)));
    assert_eq!(
        outcome(resolver.check_proxied(&only_known_to_the_proxy).await),
        None
    );
}

#[test]
fn the_peer_of_a_connection_is_judged() {
    let peer = |text: &str| Some(text.parse().unwrap());
    assert_eq!(
        outcome(public_resolver().check_peer(peer("8.8.8.8:443"))),
        None
    );
    assert_eq!(outcome(public_resolver().check_peer(None)), None);
    let refused = public_resolver().check_peer(peer("[::ffff:10.0.0.1]:443"));
    assert_eq!(outcome(refused), Some(Outcome::UnsafeAddress));
}
