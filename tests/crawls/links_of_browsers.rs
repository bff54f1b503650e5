//! Tests that links are resolved as a real Chromium resolves them, on pages in every encoding.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_test_browser::Browser;
use webfill_test_needs::needs;
use webfill_tests::run::Run;
use webfill_tests::site::{Web, document};
use webfill_tests::workplace::Workplace;

/// The encodings of the pages. Links are written in ASCII, with character references, so that they are the same in
/// every encoding.
const ENCODINGS: [&str; 8] = [
    "utf-8",
    "windows-1252",
    "windows-1251",
    "shift_jis",
    "euc-jp",
    "iso-2022-jp",
    "gb18030",
    "big5",
];

/// The values of links as written in HTML, without quotes.
const LINKS: &[&str] = &[
    "a",
    "./a/./b/../c",
    "../up",
    "../../../../up",
    "/root",
    "//other.example/x",
    "//other.example",
    "///other.example/three",
    "\\back\\slashes",
    "\\\\other.example\\x",
    "http:relative",
    "http:/one-slash",
    "HTTP://UPPER.example/Path",
    "https://secure.example",
    "http://port.example:80/",
    "http://port.example:8080/",
    "http://user:secret@login.example/",
    "http://1.2.3.4/",
    "http://16909060/",
    "http://0x1020304/",
    "http://1.2.772/",
    "http://[::1]/",
    "http://b&#252;cher.example/&#252;",
    "http://xn--bcher-kva.example/",
    "http://%62.example/",
    "http://&#65345;&#65346;.example/",
    "",
    "#part",
    "#&#1087;",
    "?",
    "?q",
    "?q=a b",
    "?q=a+b",
    "?q=a%20b",
    "?q=%e4%F6",
    "?q=%zz%",
    "?q='quoted'",
    "?q=&quot;quoted&quot;",
    "?q=&lt;x&gt;",
    "?q=`{}|^\\[]",
    "?q=a#part?b",
    "?a=1&b=2",
    "?a=1&amp;b=2",
    "?a=1&#38;b=2",
    "?a=1&copy=2",
    "?a=1&copy;=2",
    "?a=1&lt=2",
    "?a=1&ltx=2",
    "?a=1&notit;=2",
    "?a=1&unknown;=2",
    "?a=&#0;&#128;&#x110000;",
    "?q=&#233;",
    "?q=&#8364;",
    "?q=&#1087;&#1088;&#1080;&#1074;&#1077;&#1090;",
    "?q=&#26085;&#26412;",
    "?q=&#20013;&#25991;&a=&#233;",
    "?q=&#128512;",
    "?q=&#65397;&#65398;",
    "?q=&#8741;&#65374;",
    "?&#1082;&#1083;&#1102;&#1095;=&#1079;",
    "?q=x&#160;y",
    "?q=&#233; &#233;",
    "?q=&#233;#&#233;",
    "?a?&#233;",
    "/&#233;",
    "/&#233;?q=&#233;",
    "/&#1087;&#1091;&#1090;&#1100;",
    "/&#26085;",
    "/a b",
    "/a%20b",
    "/a%2Fb",
    "/%E9",
    "/100%",
    "/a;b=c",
    "/a,b",
    "/a:b",
    "/a@b",
    "/a|b",
    "/a^b",
    "/{a}[b]`",
    "/a&quot;b",
    "/a'b",
    "/a&lt;b&gt;",
    "/a//b",
    "/.hidden",
    "/...",
    "/a/%2e%2e/b",
    "/a/%2E/b",
    "/nbsp&#160;",
    "&#160;/nbsp",
    "  /blanks  ",
    "\t/tab\ts\t",
    "/new\nline",
    "?new\nline=\t&#233;",
    "&#9;/written&#10;",
    "/soft&#173;hyphen",
    "/zero&#8203;width",
    "mailto:a@b.example",
    "javascript:void(0)",
    "tel:1",
    "data:text/html,x",
    "ftp://files.example/",
];

/// Variants of the base element in the head of a page.
const BASES: [&str; 7] = [
    "",
    "<base href='/other/place?x#y'>",
    "<base href='http://based.example/deep/er/'>",
    "<base href='?q=&#233;'>",
    "<base href='  deeper/  '><base href='/second/'>",
    "<base target='_blank'><base href='\\slashes\\x\\'>",
    "<base href='//based.example'>",
];

fn page_body(encoding: &str, base: &str, links: &[&str]) -> String {
    let anchors: String = links
        .iter()
        .map(|link| format!("<a href=\"{link}\">a link</a>\n"))
        .collect();
    format!("<!DOCTYPE html><meta charset={encoding}><title>Links</title>{base}<body>{anchors}")
}

/// JavaScript that returns the addresses that the browser would request for the links on the open page.
const ADDRESSES: &str = "return [...document.links].flatMap(link => {
    try {
        const url = new URL(link.href);
        url.hash = ''; url.username = ''; url.password = '';
        return url.protocol.startsWith('http') ? [url.href] : [];
    } catch { return []; }
});";

fn text_set(list: &Value) -> BTreeSet<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|text| Some(text.as_str()?.to_owned()))
        .collect()
}

#[needs(chromedriver)]
#[test]
fn links_are_resolved_as_browsers_resolve_them() {
    let web = Web::start();
    let site = web.site_at("127.0.0.1");
    let mut paths = Vec::new();
    for (number, encoding) in ENCODINGS.iter().enumerate() {
        // Every page declares its encoding in its markup, and every other page also in its header `Content-Type`.
        let path = format!("/deep/er/encoding-{number}?page=1");
        let kind = match number % 2 {
            0 => String::from("text/html"),
            _ => format!("text/html; charset={encoding}"),
        };
        site.serve(&path, document(&kind, page_body(encoding, "", LINKS)));
        paths.push(path);
    }
    for (number, base) in BASES.iter().enumerate() {
        let path = format!("/deep/er/base-{number}?page=1");
        let links = [
            "a",
            "?q=&#233;",
            "/&#233;",
            "../x",
            "#y",
            "",
            "//other.example/",
            "b?c=&#1087;",
        ];
        site.serve(
            &path,
            document("text/html", page_body("windows-1252", base, &links)),
        );
        paths.push(path);
    }
    let work = Workplace::new();
    let store = format!("sqlite:{}", work.path("store.db").display());
    let count = paths.len().to_string();
    let run = work.crawl(&web).replace_flag("--delay", "0.01");
    run.args(["--depth", "1", "--follow", "all", "--max-pages", &count])
        .args(paths.iter().map(|path| site.url(path)))
        .finish();
    let pages = Run::new(["export", "pages", "--store", &store])
        .finish()
        .expect_code(0);
    let pages: Vec<Value> = pages
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let browser = Browser::start();
    let (mut faults, mut compared) = (Vec::new(), 0);
    for path in &paths {
        let url = site.url(path);
        browser.open(&url);
        let expected = text_set(&browser.run_script(ADDRESSES, json!([])));
        let page = pages
            .iter()
            .find(|page| page["url"] == *url)
            .expect("every page is fetched");
        let links: BTreeSet<String> = text_set(&page["links"])
            .into_iter()
            .filter(|link| link.starts_with("http"))
            .collect();
        compared += expected.len();
        for (missing, of) in [
            (expected.difference(&links), "the browser's alone"),
            (links.difference(&expected), "webfill's alone"),
        ] {
            faults.extend(missing.map(|link| format!("{path}: {link} is {of}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(compared >= 200, "{compared} links were compared");
}
