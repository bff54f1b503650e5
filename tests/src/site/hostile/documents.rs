//! Hostile pages at a higher level: the answers are valid HTTP, but their statuses, targets or documents are not.

use super::{HTML, HostilePage, hostile_case};
use crate::site::encodings::html;
use crate::site::{document, page, redirect, status};

pub(super) fn odd_statuses() -> Vec<HostilePage> {
    let refused = &["http_error"];
    vec![
        hostile_case("status-999", page("t").status(999), &["blocked"]),
        hostile_case(
            "status-429",
            status(429).header("retry-after", "1"),
            refused,
        ),
        hostile_case(
            "status-503",
            status(503).header("retry-after", "1"),
            refused,
        ),
        hostile_case("status-404", page("gone").status(404), refused),
        hostile_case("status-500", page("sorry").status(500), refused),
        hostile_case("status-599", page("t").status(599), refused),
        hostile_case(
            "retry-after-nonsense",
            status(503).header("retry-after", "-99999999999999999999"),
            refused,
        ),
        hostile_case("status-204", status(204), &["ok"]),
        hostile_case("status-304", status(304), &["http_error"]),
        hostile_case("status-206", html(HTML).status(206), &["ok"]),
    ]
}

pub(super) fn odd_redirects() -> Vec<HostilePage> {
    let moved = &["redirected"];
    vec![
        hostile_case("redirect-to-itself", redirect("/"), &["http_error"]),
        hostile_case("redirect-to-private", redirect("http://10.0.0.1/"), moved),
        hostile_case(
            "redirect-to-metadata",
            redirect("http://169.254.169.254/latest/meta-data/"),
            moved,
        ),
        hostile_case("redirect-to-bad-url", redirect("http://[:::/"), moved),
        hostile_case(
            "redirect-to-javascript",
            redirect("javascript:alert(1)"),
            moved,
        ),
        hostile_case("redirect-to-file", redirect("file:///etc/passwd"), moved),
        hostile_case(
            "redirect-to-nothing",
            redirect(""),
            &["redirected", "http_error"],
        ),
        hostile_case(
            "redirect-without-location",
            status(302),
            &["http_error", "redirected"],
        ),
        hostile_case(
            "redirect-to-64-kib",
            redirect(&format!("/{}", "x".repeat(64 << 10))),
            moved,
        ),
    ]
}

pub(super) fn odd_documents() -> Vec<HostilePage> {
    let read = &["ok"];
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0".repeat(100);
    vec![
        hostile_case(
            "wrong-charset",
            document("text/html; charset=utf-16le", HTML),
            read,
        ),
        hostile_case(
            "unknown-charset",
            document("text/html; charset=no-such-charset", HTML),
            read,
        ),
        hostile_case(
            "missing-charset",
            document("text/html", "<title>t</title><h1>caf\u{e9}</h1>"),
            read,
        ),
        hostile_case("missing-type", status(200).body(HTML), read),
        hostile_case(
            "nul-bytes",
            html("<title>t</title>\0\0<h1>a\0b</h1>\0".repeat(500)),
            read,
        ),
        hostile_case(
            "invalid-utf-8",
            html(&b"<title>t</title><h1>\xff\xfe\xc3\x28</h1>"[..]),
            read,
        ),
        hostile_case("empty-body", html(""), read),
        hostile_case("only-spaces", html(" ".repeat(100_000)), read),
        hostile_case("binary-as-html", html(png), &["unsupported_type"]),
        hostile_case(
            "image",
            document("image/png", vec![0; 100]),
            &["unsupported_type"],
        ),
        hostile_case(
            "nonsense-type",
            document("///;;;===", HTML),
            &["ok", "unsupported_type"],
        ),
        hostile_case(
            "unclosed-comment",
            html(format!("<!-- {}", "x ".repeat(100_000))),
            read,
        ),
        hostile_case(
            "unclosed-script",
            html(format!("<script>{}", "x<".repeat(100_000))),
            read,
        ),
        hostile_case(
            "broken-json",
            document("application/json", "{\"a\": [1, 2,"),
            &["ok", "extract_error"],
        ),
        hostile_case(
            "broken-xml",
            document("application/xml", "<a><b></a>"),
            &["ok", "extract_error"],
        ),
        hostile_case(
            "entity-bomb",
            document("application/xml", billion_laughs()),
            &["ok", "extract_error"],
        ),
    ]
}

pub(super) fn huge_documents() -> Vec<HostilePage> {
    let read = &["ok"];
    let deep = |tag: &str| html(format!("<{tag}>").repeat(200_000));
    let links: String = (0..200_000)
        .map(|n| format!("<a href=/{n}>n</a>"))
        .collect();
    let attributes: String = (0..50_000).map(|n| format!(" a{n}={n}")).collect();
    let formatting = format!("<p>{}{}", "<b x=i>".repeat(8_000), "<p>x".repeat(8_000));
    vec![
        hostile_case("200000-nested-divs", deep("div"), read),
        hostile_case("200000-nested-tables", deep("table"), read),
        hostile_case(
            "100000-unclosed-options",
            html("<option><div>".repeat(100_000)),
            read,
        ),
        hostile_case("200000-links", html(links), read),
        hostile_case(
            "50000-attributes",
            html(format!("<h1{attributes}>t</h1>")),
            read,
        ),
        hostile_case("reconstructed-formatting", html(formatting), read),
        hostile_case(
            "deep-json",
            document("application/json", "[".repeat(200_000)),
            &["ok", "extract_error"],
        ),
        hostile_case(
            "deep-xml",
            document("application/xml", "<a>".repeat(200_000)),
            &["ok", "extract_error"],
        ),
    ]
}

/// An XML document with nested entities. A parser that expands them needs gigabytes.
fn billion_laughs() -> String {
    let mut document = String::from("<?xml version=\"1.0\"?><!DOCTYPE l [<!ENTITY l0 \"lol\">");
    for level in 1..=10 {
        let inner = format!("&l{};", level - 1).repeat(10);
        document.push_str(&format!("<!ENTITY l{level} \"{inner}\">"));
    }
    document + "]><l>&l10;</l>"
}
