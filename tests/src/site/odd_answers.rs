//! Answers that violate the standards. They cover every oddity of heads and codings in the public tests of curl,
//! Chromium and hyper, each with the correct outcome in webfill. The body is always the same page.

use super::encodings::{brotli, deflate, gzip, zstd};
use super::{Reply, Script, script};

/// An odd answer. It is served at `/` of the host `NAME.example`.
pub struct OddAnswer {
    pub name: &'static str,
    pub reply: Reply,
    /// The correct outcome. `ok` means that the page was read and has the title [`TITLE`].
    pub outcome: &'static str,
}

impl OddAnswer {
    pub fn host(&self) -> String {
        format!("{}.example", self.name)
    }
}

/// The title of the page that all answers contain.
pub const TITLE: &str = "The whole page";

const HTML: &str = "<!DOCTYPE html><html><body><h1>The whole page</h1></body></html>\n";

const OK: &str = "ok";
/// The outcome of a page that is incomplete, or of an answer whose meaning is unclear.
const BROKEN: &str = "network_error";
const UNKNOWN: &str = "unsupported_type";

/// All odd answers.
pub fn odd_answers() -> Vec<OddAnswer> {
    let mut answers = status_lines();
    answers.extend(header_lines());
    answers.extend(lengths());
    answers.extend(chunks());
    answers.extend(content_codings());
    answers.extend(broken_codings());
    answers
}

fn odd_case(name: &'static str, reply: Script, outcome: &'static str) -> OddAnswer {
    OddAnswer {
        name,
        reply: reply.into(),
        outcome,
    }
}

fn status_lines() -> Vec<OddAnswer> {
    let line =
        |line: &str| script().send(format!("{line}\r\ncontent-type: text/html\r\n\r\n{HTML}"));
    vec![
        odd_case("status-plain", line("HTTP/1.1 200 OK"), OK),
        odd_case("status-1-0", line("HTTP/1.0 200 OK"), OK),
        odd_case("status-without-reason", line("HTTP/1.1 200"), OK),
        odd_case("status-with-empty-reason", line("HTTP/1.1 200 "), OK),
        odd_case(
            "status-with-long-reason",
            line("HTTP/1.1 200 All is well: yes"),
            OK,
        ),
        odd_case("status-reason-utf-8", line("HTTP/1.1 200 Schön"), OK),
        odd_case(
            "status-after-empty-lines",
            line("\r\n\r\nHTTP/1.1 200 OK"),
            OK,
        ),
        odd_case(
            "status-after-continue",
            line("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"),
            OK,
        ),
        odd_case(
            "status-after-early-hints",
            line("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK"),
            OK,
        ),
        // Chromium reads these lines as 200 or skips them, curl rejects most of them, and webfill rejects all of them.
        odd_case("status-two-blanks", line("HTTP/1.1  200 OK"), BROKEN),
        odd_case("status-lower-case", line("http/1.1 200 OK"), BROKEN),
        odd_case("status-1-2", line("HTTP/1.2 200 OK"), BROKEN),
        odd_case("status-2-over-1", line("HTTP/2 200 OK"), BROKEN),
        odd_case("status-9-9", line("HTTP/9.9 200 OK"), BROKEN),
        odd_case("status-icy", line("ICY 200 OK"), BROKEN),
        odd_case("status-single-digit", line("HTTP/1.1 2 OK"), BROKEN),
        odd_case("status-four-digits", line("HTTP/1.1 2000 OK"), BROKEN),
        odd_case("status-negative", line("HTTP/1.1 -200 OK"), BROKEN),
        odd_case("status-without-number", line("HTTP/1.1 OK"), BROKEN),
        odd_case("status-missing", script().send(HTML), BROKEN),
        odd_case("status-of-one-byte", script().send("-"), BROKEN),
    ]
}

/// An answer whose head contains these lines, and whose body is the page.
fn script_with_lines(lines: &[u8]) -> Script {
    let head: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n";
    script().send([head, lines, b"\r\n", HTML.as_bytes()].concat())
}

fn header_lines() -> Vec<OddAnswer> {
    let lines = |name, lines: &[u8]| odd_case(name, script_with_lines(lines), OK);
    let refused = |name, lines: &[u8]| odd_case(name, script_with_lines(lines), BROKEN);
    let many = |count: usize| -> Vec<u8> {
        (0..count)
            .flat_map(|number| format!("x-{number}: y\r\n").into_bytes())
            .collect()
    };
    let plain = format!("HTTP/1.1 200 OK\ncontent-type: text/html\nx: y\n\n{HTML}");
    let mixed = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\nx: y\r\n\n{HTML}");
    vec![
        lines("line-blank-before-colon", b"X-Powered-By : x\r\n"),
        lines("line-tab-before-colon", b"X-Powered-By\t: x\r\n"),
        lines("line-no-blank-behind-colon", b"X-Odd:a\r\n"),
        lines("line-blanks-around", b"X-Odd:  \t a \t \r\n"),
        lines("line-empty-value", b"X-Odd:\r\nX-More: \r\n"),
        lines("line-empty-name", b": a\r\n"),
        lines("line-folded", b"X-Long: a\r\n  b\r\n"),
        lines("line-folded-by-tab", b"X-Long: a\r\n\tb\r\n"),
        lines("line-folded-at-once", b"X-Long:\r\n b\r\n"),
        lines("line-folded-to-nothing", b"X-Long: a\r\n \r\nX-More: b\r\n"),
        lines(
            "line-warning-of-php",
            b"PHP Warning:  some module is loaded already in Unknown on line 0\r\n",
        ),
        lines("line-without-colon", b"no colon here\r\n"),
        lines("line-of-one-word", b"X-Odd\r\n"),
        lines("line-name-with-brackets", b"X[0]: a\r\n"),
        lines("line-name-quoted", b"\"X\": a\r\n"),
        lines("line-name-in-utf-8", "Größe: 1\r\n".as_bytes()),
        lines("line-value-in-utf-8", "X-Odd: größer\r\n".as_bytes()),
        lines("line-value-in-latin-1", b"X-Odd: gr\xf6\xdfer\r\n"),
        lines("line-control-byte", b"X-Odd: a\x01b\r\n"),
        lines("line-delete-byte", b"X-Odd: a\x7fb\r\n"),
        lines("line-escape-sequence", b"X-Odd: \x1b[31m\r\n"),
        lines("line-name-with-control-byte", b"X\x01Odd: a\r\n"),
        lines("line-status-again", b"HTTP/1.1 200 OK\r\n"),
        lines(
            "line-longest",
            &[b"X-Long: ", vec![b'y'; 100 << 10].as_slice(), b"\r\n"].concat(),
        ),
        lines("lines-110", &many(110)),
        lines("lines-3000", &many(3_000)),
        refused("line-nul", b"X-Odd: a\0b\r\n"),
        refused("line-bare-return", b"X-Odd: a\rb\r\n"),
        odd_case("lines-without-returns", script().send(plain), OK),
        odd_case("lines-of-both-ends", script().send(mixed), OK),
        odd_case(
            "line-folded-first",
            script().send(format!(
                "HTTP/1.1 200 OK\r\n X-First: a\r\ncontent-type: text/html\r\n\r\n{HTML}"
            )),
            OK,
        ),
        odd_case("lines-20000", script_with_lines(&many(20_000)), "too_large"),
        odd_case(
            "line-of-2-mib",
            script_with_lines(&[b"X-Long: ", vec![b'y'; 2 << 20].as_slice(), b"\r\n"].concat()),
            "too_large",
        ),
    ]
}

fn lengths() -> Vec<OddAnswer> {
    let length = |values: &[&str]| {
        let lines: String = values
            .iter()
            .map(|value| format!("content-length: {value}\r\n"))
            .collect();
        script_with_lines(lines.as_bytes())
    };
    let right = HTML.len().to_string();
    let list = format!("{right}, {right}");
    vec![
        odd_case("length-twice", length(&[&right, &right]), OK),
        odd_case("length-as-a-list", length(&[&list]), OK),
        odd_case("length-with-zeros", length(&[&format!("00{right}")]), OK),
        odd_case("lengths-that-differ", length(&[&right, "5"]), BROKEN),
        odd_case("length-negative", length(&["-1"]), BROKEN),
        odd_case("length-with-plus", length(&[&format!("+{right}")]), BROKEN),
        odd_case("length-of-words", length(&["many"]), BROKEN),
        odd_case(
            "length-out-of-range",
            length(&["99999999999999999999999"]),
            BROKEN,
        ),
        odd_case("length-beyond-the-end", length(&["1000"]), BROKEN),
    ]
}

fn chunks() -> Vec<OddAnswer> {
    let coded = |lines: &str, body: &str| {
        script().send(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n{lines}\r\n{body}"
        ))
    };
    let (first, second) = HTML.split_at(20);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let whole = format!("{}{}0\r\n\r\n", chunk(first), chunk(second));
    let extended = format!(
        "{:X};name=value\r\n{HTML}\r\n0\r\nx-trailer: a\r\n\r\n",
        HTML.len()
    );
    let chunked = "transfer-encoding: chunked\r\n";
    vec![
        odd_case("chunks", coded(chunked, &whole), OK),
        odd_case("chunks-upper-case", coded("Transfer-Encoding: CHUNKED\r\n", &whole), OK),
        odd_case("chunks-with-extension-and-trailer", coded(chunked, &extended), OK),
        odd_case("chunks-and-length", coded(&format!("{chunked}content-length: 0\r\n"), &whole), OK),
        odd_case("chunks-named-twice", coded(&format!("{chunked}{chunked}"), &whole), OK),
        odd_case("chunks-after-identity", coded("transfer-encoding: identity, chunked\r\n", &whole), OK),
        odd_case("transfer-identity", coded("transfer-encoding: identity\r\n", HTML), OK),
        // In these answers, either the end of the body or its coding is unclear.
        odd_case("chunks-before-identity", coded("transfer-encoding: chunked, identity\r\n", &whole), UNKNOWN),
        odd_case("transfer-unknown", coded("transfer-encoding: what\r\n", HTML), UNKNOWN),
        odd_case(
            "transfer-gzip",
            script()
                .send("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ntransfer-encoding: gzip, chunked\r\n\r\n")
                .send_chunk(&gzip(HTML.as_bytes()))
                .send("0\r\n\r\n"),
            UNKNOWN,
        ),
        odd_case("chunks-cut", coded(chunked, &chunk(first)), BROKEN),
        odd_case("chunks-without-size", coded(chunked, HTML), BROKEN),
        odd_case("chunks-too-large", coded(chunked, "ffffffffffffffffff\r\nx"), BROKEN),
        odd_case("chunks-without-returns", coded(chunked, &whole.replace("\r\n", "\n")), BROKEN),
    ]
}

/// An answer whose body is the page in a content coding. The header `content-encoding` has this `value`.
fn coded_page(name: &'static str, value: &str, body: Vec<u8>, outcome: &'static str) -> OddAnswer {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-encoding: {value}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    odd_case(name, script().send(head).send(body), outcome)
}

fn content_codings() -> Vec<OddAnswer> {
    let html = HTML.as_bytes();
    let packed = gzip(html);
    let raw_deflate = {
        let zlib = deflate(html);
        zlib[2..zlib.len() - 4].to_vec()
    };
    let members = [gzip(&html[..20]), gzip(&html[20..])].concat();
    let padded = [packed.clone(), vec![0; 100]].concat();
    vec![
        coded_page("coding-gzip", "gzip", packed.clone(), OK),
        coded_page("coding-upper-case", "GZIP", packed.clone(), OK),
        coded_page("coding-mixed-case", "Gzip", packed.clone(), OK),
        coded_page("coding-x-gzip", "x-gzip", packed.clone(), OK),
        coded_page("coding-with-blanks", " \tgzip\t", packed.clone(), OK),
        coded_page("coding-with-comma", "gzip,", packed.clone(), OK),
        coded_page("coding-gzip-members", "gzip", members, OK),
        coded_page("coding-gzip-padded", "gzip", padded, OK),
        coded_page("coding-gzip-twice", "gzip, gzip", gzip(&packed), OK),
        coded_page(
            "coding-gzip-named-twice",
            "gzip\r\ncontent-encoding: gzip",
            gzip(&packed),
            OK,
        ),
        coded_page(
            "coding-deflate-gzip",
            "deflate, gzip",
            gzip(&deflate(html)),
            OK,
        ),
        coded_page("coding-deflate", "deflate", deflate(html), OK),
        coded_page("coding-deflate-raw", "deflate", raw_deflate, OK),
        coded_page("coding-br", "br", brotli(html), OK),
        coded_page("coding-br-upper-case", "BR", brotli(html), OK),
        coded_page("coding-zstd", "zstd", zstd(html), OK),
        coded_page(
            "coding-zstd-frames",
            "zstd",
            [zstd(&html[..9]), zstd(&html[9..])].concat(),
            OK,
        ),
        coded_page("coding-identity", "identity", html.to_vec(), OK),
        coded_page("coding-capital-identity", "Identity", html.to_vec(), OK),
        coded_page("coding-none", "none", html.to_vec(), OK),
        coded_page("coding-empty", "", html.to_vec(), OK),
        coded_page("coding-charset", "UTF-8", html.to_vec(), OK),
        coded_page("coding-of-mail", "8bit", html.to_vec(), OK),
    ]
}

fn broken_codings() -> Vec<OddAnswer> {
    let html = HTML.as_bytes();
    let packed = gzip(html);
    let mut wrong_sum = packed.clone();
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 1;
    let four_times = gzip(&gzip(&gzip(&packed)));
    let cut = |body: &[u8]| body[..body.len() / 2].to_vec();
    vec![
        coded_page("coding-unknown", "compress", packed.clone(), UNKNOWN),
        coded_page("coding-unknown-and-plain", "sdch", html.to_vec(), UNKNOWN),
        coded_page(
            "coding-unknown-after-gzip",
            "gzip, what",
            packed.clone(),
            UNKNOWN,
        ),
        coded_page(
            "coding-four-times",
            "gzip, gzip, gzip, gzip",
            four_times,
            UNKNOWN,
        ),
        coded_page("coding-undeclared", "identity", packed.clone(), UNKNOWN),
        coded_page("coding-gzip-said-of-plain", "gzip", html.to_vec(), BROKEN),
        coded_page("coding-br-said-of-gzip", "br", packed.clone(), BROKEN),
        coded_page("coding-gzip-wrong-sum", "gzip", wrong_sum, BROKEN),
        coded_page("coding-gzip-cut", "gzip", cut(&packed), BROKEN),
        coded_page("coding-deflate-cut", "deflate", cut(&deflate(html)), BROKEN),
        coded_page("coding-br-cut", "br", cut(&brotli(html)), BROKEN),
        coded_page("coding-zstd-cut", "zstd", cut(&zstd(html)), BROKEN),
    ]
}
