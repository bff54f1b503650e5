//! robots.txt files that no decent server sends. Each has the possible outcomes of the host's pages `/open` and
//! `/closed`. The readable part of each file disallows `/closed`.

use std::time::Duration;

use super::encodings::{brotli, deflate, gzip, zstd};
use super::{Reply, Site, document, page, redirect, script, status};

/// An odd robots.txt. It is served on the host `NAME.example`.
pub struct OddRobots {
    pub name: &'static str,
    pub reply: Reply,
    /// The correct outcomes of `/open`.
    pub open: &'static [&'static str],
    /// The correct outcomes of `/closed`.
    pub closed: &'static [&'static str],
}

impl OddRobots {
    pub fn host(&self) -> String {
        format!("{}.example", self.name)
    }

    /// Serves the file, the targets of its redirects, and the two pages on a host.
    pub fn serve_on(&self, site: &Site) {
        site.serve("/robots.txt", self.reply.clone());
        for hop in 1..20 {
            site.serve(
                &format!("/hop/{hop}"),
                redirect(&format!("/hop/{}", hop - 1)),
            );
        }
        site.serve("/hop/0", document("text/plain", RULES));
        site.serve("/loop", redirect("/loop"));
        for path in ["/open", "/closed"] {
            site.serve(path, page(path));
        }
    }
}

/// The rules in every readable file.
pub const RULES: &str = "User-agent: *\nDisallow: /closed\n";

const FETCHED: &[&str] = &["ok"];
const REFUSED: &[&str] = &["disallowed"];
const UNKNOWN: &[&str] = &["robots_unreachable"];
/// All outcomes. A case has them if both a strict and a tolerant reading of its file are harmless.
const EITHER: &[&str] = &["ok", "disallowed", "robots_unreachable"];
const NOT_FETCHED: &[&str] = &["disallowed", "robots_unreachable"];

fn odd_case(
    name: &'static str,
    reply: impl Into<Reply>,
    open: &'static [&'static str],
    closed: &'static [&'static str],
) -> OddRobots {
    OddRobots {
        name,
        reply: reply.into(),
        open,
        closed,
    }
}

fn readable_case(name: &'static str, reply: impl Into<Reply>) -> OddRobots {
    odd_case(name, reply, FETCHED, REFUSED)
}

fn unreachable_case(name: &'static str, reply: impl Into<Reply>) -> OddRobots {
    odd_case(name, reply, UNKNOWN, UNKNOWN)
}

fn allow_all_case(name: &'static str, reply: impl Into<Reply>) -> OddRobots {
    odd_case(name, reply, FETCHED, FETCHED)
}

fn unreadable_case(name: &'static str, reply: impl Into<Reply>) -> OddRobots {
    odd_case(name, reply, EITHER, EITHER)
}

fn text_file(body: impl Into<bytes::Bytes>) -> super::Page {
    document("text/plain", body)
}

/// All odd files.
pub fn odd_robots() -> Vec<OddRobots> {
    let mut files = odd_files();
    files.extend(coded_files());
    files.extend(odd_heads());
    files.extend(odd_statuses());
    files
}

/// Files in every content coding, with all spellings of the coding's name (such as `gzip` and `x-gzip`). A file that
/// cannot be decoded counts as unreachable, because it would allow everything if it was read without decoding.
fn coded_files() -> Vec<OddRobots> {
    let rules = RULES.as_bytes();
    let coded = |coding: &str, body: Vec<u8>| text_file(body).header("content-encoding", coding);
    let members = [gzip(&rules[..14]), gzip(&rules[14..])].concat();
    let mut wrong_sum = gzip(rules);
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 1;
    vec![
        readable_case("robots-gzip", coded("gzip", gzip(rules))),
        readable_case("robots-gzip-upper", coded("GZIP", gzip(rules))),
        readable_case("robots-gzip-mixed", coded("Gzip", gzip(rules))),
        readable_case("robots-x-gzip", coded("x-gzip", gzip(rules))),
        readable_case("robots-gzip-twice", coded("gzip, gzip", gzip(&gzip(rules)))),
        readable_case("robots-gzip-members", coded("gzip", members)),
        readable_case("robots-deflate", coded("Deflate", deflate(rules))),
        readable_case("robots-br", coded("BR", brotli(rules))),
        readable_case("robots-zstd", coded("zstd", zstd(rules))),
        readable_case("robots-identity", coded("Identity", rules.to_vec())),
        readable_case("robots-no-coding", coded("", rules.to_vec())),
        readable_case("robots-charset-as-coding", coded("utf-8", rules.to_vec())),
        unreachable_case("robots-unknown-coding", coded("compress", gzip(rules))),
        unreachable_case(
            "robots-unknown-after-gzip",
            coded("gzip, what", gzip(rules)),
        ),
        unreachable_case("robots-plain-called-gzip", coded("gzip", rules.to_vec())),
        unreachable_case("robots-gzip-wrong-sum", coded("gzip", wrong_sum)),
        unreachable_case("robots-gzip-cut", coded("gzip", gzip(rules)[..20].to_vec())),
        unreachable_case("robots-gzip-undeclared", text_file(gzip(rules))),
        unreachable_case("robots-zstd-undeclared", text_file(zstd(rules))),
        unreachable_case("robots-br-undeclared", text_file(brotli(BINARY.as_bytes()))),
        unreachable_case(
            "robots-gzip-called-identity",
            coded("identity", gzip(rules)),
        ),
        unreachable_case(
            "robots-image",
            text_file(&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..]),
        ),
    ]
}

/// Rules that brotli compresses to bytes that are not text.
const BINARY: &str =
    "User-agent: *\nDisallow: /closed\nUser-agent: *\nDisallow: /closed\nCrawl-delay: 1\n";

/// Files whose head contains lines that are not headers, or a status that does not stand for a file.
fn odd_heads() -> Vec<OddRobots> {
    let behind = |lines: &str| {
        script().send(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n{lines}\r\n{RULES}"
        ))
    };
    let many: String = (0..300)
        .map(|number| format!("x-{number}: y\r\n"))
        .collect();
    vec![
        readable_case("robots-blank-before-colon", behind("X-Powered-By : x\r\n")),
        readable_case("robots-folded-header", behind("X-Long: a\r\n b\r\n")),
        readable_case(
            "robots-stray-line",
            behind("PHP Warning:  some module is loaded already\r\n"),
        ),
        readable_case("robots-many-headers", behind(&many)),
        unreachable_case("robots-408", status(408)),
        unreachable_case("robots-429", status(429)),
    ]
}

/// Files with a status other than 200. If a status does not answer the request, robots.txt counts as unreachable,
/// because the body might allow everything if it was read as a file. A 4xx status allows everything (RFC 9309,
/// 2.3.1.3), except for those that mean a later retry.
fn odd_statuses() -> Vec<OddRobots> {
    let with_rules = |code: u16| text_file(RULES).status(code);
    let limited = |code: u16, name: &str, value: &str| status(code).header(name, value);
    vec![
        readable_case("robots-201", with_rules(201)),
        readable_case("robots-203", with_rules(203)),
        readable_case("robots-299", with_rules(299)),
        allow_all_case("robots-204", status(204)),
        unreachable_case("robots-101", status(101)),
        unreachable_case("robots-202", with_rules(202)),
        unreachable_case("robots-205", status(205)),
        unreachable_case(
            "robots-206",
            with_rules(206).header("content-range", "bytes 0-9/30"),
        ),
        unreachable_case("robots-207", with_rules(207)),
        unreachable_case("robots-226", with_rules(226)),
        unreachable_case("robots-300", with_rules(300)),
        unreachable_case("robots-302-to-nothing", status(302)),
        unreachable_case("robots-302-to-mail", redirect("mailto:a@b.example")),
        unreachable_case("robots-304", status(304)),
        unreachable_case("robots-305", status(305)),
        unreachable_case("robots-399", status(399)),
        allow_all_case("robots-401", status(401)),
        allow_all_case("robots-418", status(418)),
        allow_all_case("robots-451", status(451)),
        unreachable_case("robots-425", status(425)),
        unreachable_case("robots-403-limited", limited(403, "retry-after", "1")),
        unreachable_case(
            "robots-403-spent",
            limited(403, "x-ratelimit-remaining", "0"),
        ),
        unreachable_case("robots-501", status(501)),
        unreachable_case("robots-600", with_rules(600)),
        unreachable_case("robots-999", status(999)),
    ]
}

fn odd_files() -> Vec<OddRobots> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
    let comment = "# nothing to see here\n".repeat(1_000);
    let utf_16: Vec<u8> = RULES.encode_utf16().flat_map(u16::to_le_bytes).collect();
    vec![
        readable_case(
            "robots-600-kib",
            text_file(format!("{RULES}{}", comment.repeat(28))),
        ),
        readable_case(
            "robots-50-mb",
            text_file(format!("{RULES}{}", comment.repeat(2_300))),
        ),
        readable_case(
            "robots-endless",
            script()
                .send(head)
                .send(RULES)
                .send_endlessly(comment.clone(), Duration::ZERO),
        ),
        readable_case("robots-html-type", document("text/html", RULES)),
        readable_case("robots-with-bom", text_file(format!("\u{feff}{RULES}"))),
        readable_case("robots-cr-only", text_file(RULES.replace('\n', "\r"))),
        readable_case("robots-with-nul", text_file(format!("\0\0\0\n{RULES}"))),
        readable_case(
            "robots-delay-inf",
            text_file(format!("{RULES}Crawl-delay: inf\n")),
        ),
        readable_case(
            "robots-delay-nan",
            text_file(format!("{RULES}Crawl-delay: NaN\n")),
        ),
        readable_case(
            "robots-delay-negative",
            text_file(format!("{RULES}Crawl-delay: -1\n")),
        ),
        readable_case("robots-five-redirects", redirect("/hop/4")),
        unreadable_case(
            "robots-binary",
            text_file((0..=255_u8).cycle().take(100_000).collect::<Vec<u8>>()),
        ),
        unreadable_case(
            "robots-utf-16",
            text_file([&b"\xff\xfe"[..], &utf_16].concat()),
        ),
        unreadable_case(
            "robots-hostile-pattern",
            text_file(format!(
                "User-agent: *\nDisallow: /{}$\n",
                "*a".repeat(5_000)
            )),
        ),
        allow_all_case("robots-404", status(404)),
        allow_all_case("robots-403", status(403)),
        allow_all_case("robots-410", status(410)),
        allow_all_case("robots-empty", text_file("")),
        // RFC 9309, 2.3.1.2 does not say what a file after more than five redirects means.
        unreadable_case("robots-ten-redirects", redirect("/hop/10")),
        unreadable_case("robots-redirect-loop", redirect("/loop")),
        unreachable_case("robots-503", status(503)),
        unreachable_case("robots-500", status(500)),
        unreachable_case("robots-dropped", script()),
        unreachable_case("robots-silent", script().hold_open()),
        odd_case(
            "robots-to-private",
            redirect("http://10.0.0.1/robots.txt"),
            NOT_FETCHED,
            NOT_FETCHED,
        ),
        odd_case(
            "robots-dripping",
            script()
                .send(head)
                .send(RULES)
                .send_endlessly("#", Duration::from_millis(100)),
            EITHER,
            NOT_FETCHED,
        ),
    ]
}
