//! Hostile pages, each with its correct outcomes. Every page has its own host, so that the failures of one page do not
//! delay another.

mod documents;

use std::time::Duration;

use super::encodings::{gzip, gzip_bomb, html};
use super::{Page, Reply, Script, script};

/// A hostile page. It is served at `/` of the host `NAME.example`.
pub struct HostilePage {
    pub name: &'static str,
    pub reply: Reply,
    /// The correct outcomes of the page. Most pages have one.
    pub outcomes: &'static [&'static str],
    /// The status that must be stored with the page; `None` if it has no status.
    pub status_code: Option<u16>,
}

impl HostilePage {
    pub fn host(&self) -> String {
        format!("{}.example", self.name)
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.host())
    }
}

fn hostile_case(
    name: &'static str,
    reply: impl Into<Reply>,
    outcomes: &'static [&'static str],
) -> HostilePage {
    let reply = reply.into();
    let status_code = match &reply {
        Reply::Page(page) => Some(page.status),
        Reply::Script(_) => None,
    };
    HostilePage {
        name,
        reply,
        outcomes,
        status_code,
    }
}

/// All hostile pages.
pub fn hostile_pages() -> Vec<HostilePage> {
    let mut pages = broken_connections();
    pages.extend(slow_answers());
    pages.extend(broken_framing());
    pages.extend(oversized_answers());
    pages.extend(documents::odd_statuses());
    pages.extend(documents::odd_redirects());
    pages.extend(documents::odd_documents());
    pages.extend(documents::huge_documents());
    pages
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n";
const HTML: &str = "<!DOCTYPE html><title>t</title><h1>t</h1>";

fn broken_connections() -> Vec<HostilePage> {
    let lost = &["network_error"];
    vec![
        hostile_case("dropped-after-request", script(), lost),
        hostile_case("reset-after-request", script().reset(), lost),
        hostile_case("dropped-in-status-line", script().send("HTTP/1.1 20"), lost),
        hostile_case(
            "dropped-in-head",
            script().send("HTTP/1.1 200 OK\r\ncontent-ty"),
            lost,
        ),
        hostile_case(
            "reset-in-head",
            script().send("HTTP/1.1 200 OK\r\ncontent-ty").reset(),
            lost,
        ),
        hostile_case(
            "dropped-in-body",
            script_with_length(1_000).send(HTML),
            lost,
        ),
        hostile_case(
            "reset-in-body",
            script_with_length(1_000).send(HTML).reset(),
            lost,
        ),
        hostile_case(
            "dropped-in-chunk",
            chunked_script().send("ff\r\n<html>"),
            lost,
        ),
        hostile_case(
            "dropped-before-last-chunk",
            chunked_script().send_chunk(HTML.as_bytes()),
            lost,
        ),
    ]
}

fn slow_answers() -> Vec<HostilePage> {
    let slow = &["timeout"];
    let drip = Duration::from_millis(100);
    vec![
        hostile_case("silent", script().hold_open(), slow),
        hostile_case(
            "slow-head",
            script()
                .send("HTTP/1.1 200 OK\r\nx: ")
                .send_endlessly("y", drip),
            slow,
        ),
        hostile_case("stuck-in-head", script().send(HEAD).hold_open(), slow),
        hostile_case(
            "stuck-in-body",
            script_with_length(1_000).send(HTML).hold_open(),
            slow,
        ),
        hostile_case(
            "dripping-body",
            script()
                .send(format!("{HEAD}\r\n{HTML}"))
                .send_endlessly("x", drip),
            slow,
        ),
        hostile_case(
            "interim-answers",
            script().send_endlessly("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n", drip),
            &["timeout", "network_error", "too_large"],
        ),
    ]
}

fn broken_framing() -> Vec<HostilePage> {
    let broken = &["network_error"];
    vec![
        hostile_case(
            "garbage-status-line",
            script().send("!!! what ???\r\n\r\n"),
            broken,
        ),
        hostile_case(
            "binary-status-line",
            script().send(vec![0_u8, 255, 10, 13, 7, 0, 0, 1]),
            broken,
        ),
        hostile_case("http-0-9", script().send(HTML), broken),
        hostile_case(
            "http-9-9",
            script().send("HTTP/9.9 200 OK\r\n\r\n").send(HTML),
            broken,
        ),
        hostile_case(
            "status-12345",
            script().send("HTTP/1.1 12345 Huge\r\ncontent-length: 0\r\n\r\n"),
            broken,
        ),
        hostile_case(
            "nul-in-header",
            script().send("HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n"),
            broken,
        ),
        hostile_case(
            "broken-chunk-size",
            chunked_script().send("zz\r\nhello\r\n0\r\n\r\n"),
            broken,
        ),
        hostile_case(
            "negative-chunk-size",
            chunked_script().send("-5\r\nhello\r\n0\r\n\r\n"),
            broken,
        ),
        hostile_case(
            "huge-chunk-size",
            chunked_script().send("ffffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
            broken,
        ),
        hostile_case(
            "chunk-without-end",
            chunked_script().send("5\r\nhelloworld\r\n0\r\n\r\n"),
            broken,
        ),
        hostile_case(
            "length-too-long",
            script_with_length(HTML.len() + 10).send(HTML),
            broken,
        ),
        hostile_case(
            "two-lengths",
            script().send(format!(
                "{HEAD}content-length: 5\r\ncontent-length: 41\r\n\r\n{HTML}"
            )),
            broken,
        ),
        hostile_case(
            "length-not-a-number",
            script().send(format!("{HEAD}content-length: many\r\n\r\n{HTML}")),
            broken,
        ),
        HostilePage {
            status_code: Some(200),
            ..hostile_case(
                "length-too-short",
                script_with_length(HTML.len() - 10).send(HTML),
                &["ok"],
            )
        },
        hostile_case(
            "broken-gzip",
            encoded_page("gzip", b"\x1f\x8bnot gzip at all".to_vec()),
            broken,
        ),
        hostile_case(
            "cut-gzip",
            encoded_page("gzip", first_half(gzip(&many_words()))),
            broken,
        ),
        hostile_case("plain-called-br", encoded_page("br", HTML), broken),
    ]
}

fn oversized_answers() -> Vec<HostilePage> {
    let large = &["too_large"];
    let filler = vec![b'x'; 64 << 10];
    let endless = Duration::ZERO;
    let header_line = |number| format!("x-{number}: {number}\r\n");
    let many_headers: String = (0..20_000).map(header_line).collect();
    let twice = encoded_page("gzip, gzip", gzip(&gzip(HTML.as_bytes())));
    vec![
        hostile_case(
            "endless-body",
            script()
                .send(format!("{HEAD}\r\n"))
                .send_endlessly(filler.clone(), endless),
            large,
        ),
        hostile_case(
            "endless-chunks",
            chunked_script()
                .send_endlessly([&b"10000\r\n"[..], &filler, b"\r\n"].concat(), endless),
            large,
        ),
        hostile_case("gzip-bomb", encoded_page("gzip", gzip_bomb(1_100)), large),
        hostile_case("gzip-gzip", twice, &["ok"]),
        hostile_case("9-mib", html(vec![b' '; 9 << 20]), large),
        hostile_case(
            "2-mib-header",
            script().send(format!("{HEAD}x: {}\r\n\r\n{HTML}", "y".repeat(2 << 20))),
            large,
        ),
        hostile_case(
            "20000-headers",
            script().send(format!("{HEAD}{many_headers}\r\n{HTML}")),
            large,
        ),
        hostile_case(
            "endless-head",
            script()
                .send("HTTP/1.1 200 OK\r\n")
                .send_endlessly("x: y\r\n".repeat(1_000), endless),
            large,
        ),
        hostile_case(
            "unsupported-and-endless",
            script()
                .send("HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\n\r\n")
                .send_endlessly(filler, endless),
            &["unsupported_type"],
        ),
    ]
}

fn script_with_length(bytes: usize) -> Script {
    script().send(format!("{HEAD}content-length: {bytes}\r\n\r\n"))
}

fn chunked_script() -> Script {
    script().send(format!("{HEAD}transfer-encoding: chunked\r\n\r\n"))
}

fn encoded_page(encoding: &str, body: impl Into<bytes::Bytes>) -> Page {
    html(body).header("content-encoding", encoding)
}

fn many_words() -> Vec<u8> {
    (0..20_000_u32)
        .flat_map(|n| format!("{} ", n.wrapping_mul(2_654_435_761)).into_bytes())
        .collect()
}

fn first_half(mut body: Vec<u8>) -> Vec<u8> {
    body.truncate(body.len() / 2);
    body
}
