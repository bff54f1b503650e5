use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

const HERE: &str = "https://a.example/maps/sitemap.xml";

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn try_read(body: &[u8]) -> Option<Sitemap> {
    read(body, None, &Url::parse(HERE).unwrap(), false, |_| {})
}

fn read_urls(body: &[u8]) -> Vec<String> {
    let sitemap = try_read(body).expect("a sitemap");
    sitemap.urls.into_iter().map(String::from).collect()
}

fn urlset(entries: &str) -> String {
    let namespaces = r#"xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:image="http://www.google.com/schemas/sitemap-image/1.1""#;
    format!("<?xml version='1.0' encoding='UTF-8'?>\n<urlset {namespaces}>{entries}</urlset>")
}

#[test]
fn each_form_of_a_sitemap_is_read() {
    let pages = urlset(
        "<url><loc>\n https://a.example/1?x=1&amp;y=&#50; </loc><lastmod>2026-01-01</lastmod>
         <image:image><image:loc>https://a.example/1.jpg</image:loc></image:image></url>
         <url><loc><![CDATA[https://a.example/2]]></loc></url>",
    );
    let expected = ["https://a.example/1?x=1&y=2", "https://a.example/2"];
    assert_eq!(read_urls(pages.as_bytes()), expected);
    assert_eq!(read_urls(&gzip(pages.as_bytes())), expected, "compressed");
    let text = "https://a.example/1?x=1&y=2\r\n\r\nhttps://a.example/2\n";
    assert_eq!(read_urls(text.as_bytes()), expected, "a text");
    assert_eq!(
        read_urls(&gzip(text.as_bytes())),
        expected,
        "a compressed text"
    );
}

#[test]
fn a_text_that_robots_txt_names_may_have_other_lines() {
    let (a, b) = ("https://a.example/1", "https://a.example/2");
    for (text, unnamed, named) in [
        (format!("{a}\n{b}\n"), Some(0), Some(0)),
        (format!("# pages\n{a}\n\n  # more\n{b}\n"), Some(0), Some(0)),
        (format!("\u{feff}{a}\n{b}"), Some(0), Some(0)),
        (format!("HTTPS{}\n{b}\n", &a[5..]), Some(0), Some(0)),
        (format!("{a}\nwww.a.example/x\n{b}\n"), None, Some(1)),
        (format!("URL\n{a}\n{b}\n/3\nsee {a}\n"), None, Some(3)),
        (format!("{a}\n{b}\nftp://a.example/3\n"), None, Some(1)),
        (format!("<ul>\n{a}\n{b}\n</ul>"), None, None),
        (String::from("# nothing yet\n"), None, None),
        (String::from("no URL\n"), None, None),
    ] {
        for (is_named, left_out) in [(false, unnamed), (true, named)] {
            let read = read(
                text.as_bytes(),
                None,
                &Url::parse(HERE).unwrap(),
                is_named,
                |_| {},
            );
            let sitemap = read.as_ref().map(|read| (read.urls.len(), read.left_out));
            let expected = left_out.map(|left_out| (2, left_out));
            assert_eq!(sitemap, expected, "{text:?}, named: {is_named}");
        }
    }
}

#[test]
fn an_index_lists_sitemaps() {
    let index = "<sitemapindex><sitemap><loc>https://a.example/1.xml.gz</loc></sitemap>\
        <sitemap><loc>https://a.example/2.xml</loc></sitemap></sitemapindex>";
    let sitemap = try_read(index.as_bytes()).unwrap();
    assert_eq!(sitemap.lists, LinkKind::Sitemap);
    assert_eq!(sitemap.urls.len(), 2);
}

#[test]
fn feeds_list_their_entries() {
    let rss = r#"<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>
        <link>https://a.example/</link><atom:link rel="self" href="https://a.example/feed"/>
        <item><title>One</title><link>https://a.example/1</link><guid>urn:1</guid>
          <comments>https://a.example/1#comments</comments></item>
        <item><guid isPermaLink="true">https://a.example/2</guid></item>
        <item><guid isPermaLink="false">https://a.example/none</guid></item>
        </channel></rss>"#;
    assert_eq!(
        read_urls(rss.as_bytes()),
        ["https://a.example/1", "https://a.example/2"]
    );
    let rdf = r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns="http://purl.org/rss/1.0/"><channel><link>https://a.example/</link></channel>
        <item rdf:about="x"><link>https://a.example/1</link></item></rdf:RDF>"#;
    assert_eq!(read_urls(rdf.as_bytes()), ["https://a.example/1"]);
    let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://a.example/"/>
        <entry><link rel="edit" href="/edit/1"/><link rel="alternate" href="../1?a=1&amp;b=2"/></entry>
        <entry><link href="https://a.example/2"/></entry></feed>"#;
    assert_eq!(
        read_urls(atom.as_bytes()),
        ["https://a.example/1?a=1&b=2", "https://a.example/2"]
    );
}

#[test]
fn an_encoding_is_obeyed() {
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>https://a.example/\xe9</loc></url></urlset>";
    assert_eq!(read_urls(latin), ["https://a.example/%C3%A9"]);
    let text = "<urlset><url><loc>https://a.example/1</loc></url></urlset>";
    let units = text.encode_utf16().flat_map(u16::to_le_bytes);
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(units).collect();
    assert_eq!(read_urls(&utf16), ["https://a.example/1"]);
}

#[test]
fn other_pages_are_not_sitemaps() {
    for page in [
        &b"<!DOCTYPE html><html><body><urlset></body></html>"[..],
        b"<html><a href='https://a.example/'>https://a.example/</a></html>",
        b"words\nhttps://a.example/1\n",
        b"see https://a.example/1\n",
        b"https://a.example/1 is a page\n",
        b"<RDF xmlns='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>",
        b"{\"urlset\": 1}",
        b"",
        b"\x1f\x8b\x08torn",
        b"\x89PNG\r\n\x1a\n",
    ] {
        assert_eq!(try_read(page), None, "{}", String::from_utf8_lossy(page));
    }
    assert_eq!(try_read(&gzip(b"<html></html>")), None);
}

#[test]
fn a_faulty_sitemap_gives_what_can_be_read() {
    let good = "<url><loc>https://a.example/1</loc></url>";
    let torn = urlset(&format!("{good}<url><loc>https://a.example/2</lo"));
    let sitemap = try_read(torn.trim_end_matches("</urlset>").as_bytes()).unwrap();
    assert_eq!(sitemap.urls.len(), 1);
    assert!(sitemap.cut.is_some());
    let plain_ampersand = urlset("<url><loc>https://a.example/?a=1&b=2</loc></url>");
    assert_eq!(
        read_urls(plain_ampersand.as_bytes()),
        ["https://a.example/?a=1&b=2"]
    );
    let whole = gzip(urlset(&good.repeat(2_000)).as_bytes());
    let sitemap = try_read(&whole[..whole.len() / 2]).unwrap();
    assert!(!sitemap.urls.is_empty() && sitemap.cut.is_some());
    let no_urls = urlset("<url><loc>mailto:a@a.example</loc></url><url/><url><loc> </loc></url>");
    let sitemap = try_read(no_urls.as_bytes()).unwrap();
    assert_eq!((sitemap.urls.len(), sitemap.left_out), (0, 1));
}

#[test]
fn entities_of_the_sitemap_are_expanded_within_limits() {
    let sitemap = |a: &str| {
        let many = |name: &str| format!("&{name};").repeat(10);
        format!(
            r#"<?xml version="1.0"?><!DOCTYPE urlset [
            <!ENTITY a "{a}"> <!ENTITY b "{}"> <!ENTITY c "{}"> <!ENTITY d "{}"> <!ENTITY e "{}"> <!ENTITY f "{}">
            <!ENTITY passwd SYSTEM "file:///etc/passwd">]>
            <urlset><url><loc>https://a.example/&a;&passwd;</loc></url>
            <url><loc>https://a.example/&f;</loc></url></urlset>"#,
            many("a"),
            many("b"),
            many("c"),
            many("d"),
            many("e"),
        )
    };
    let long = "a".repeat(50);
    assert_eq!(
        read_urls(sitemap(&long).as_bytes()),
        ["https://a.example/&a;&passwd;", "https://a.example/&f;"]
    );
    let short = sitemap("shop").replace("&f;", "&b;");
    assert_eq!(
        read_urls(short.as_bytes()),
        [
            "https://a.example/shop&passwd;".to_owned(),
            format!("https://a.example/{}", "shop".repeat(10)),
        ]
    );
}

#[test]
fn entries_bytes_and_nesting_are_bounded() {
    let many = urlset(&"<url><loc>https://a.example/1</loc></url>".repeat(60_000));
    let sitemap = try_read(many.as_bytes()).unwrap();
    assert_eq!(sitemap.urls.len(), MAX_ENTRIES);
    assert!(sitemap.cut.is_some());

    let long = format!(
        "<url><loc>https://a.example/{}</loc></url>",
        "x".repeat(4_000)
    );
    let sitemap = try_read(urlset(&long.repeat(5_000)).as_bytes()).unwrap();
    assert!(sitemap.urls.len() < 4_300 && sitemap.cut.is_some());

    let deep = format!("<urlset>{}", "<url>".repeat(1_000_000));
    assert!(try_read(deep.as_bytes()).unwrap().cut.is_some());

    let endless = format!("<url><loc>{}</loc></url>", "x".repeat(1 << 20));
    assert_eq!(try_read(urlset(&endless).as_bytes()).unwrap().left_out, 1);

    let bomb = gzip(&[b"<urlset>".as_slice(), &vec![b' '; MAX_BYTES + 1]].concat());
    assert!(bomb.len() < 1 << 20);
    let mut held = 0;
    let url = Url::parse(HERE).unwrap();
    let sitemap = read(&bomb, None, &url, false, |bytes| held = bytes).unwrap();
    assert!(sitemap.cut.is_some());
    assert_eq!(held, MAX_BYTES);
}

#[test]
fn the_beginning_of_a_body_decides_whether_the_rest_is_read() {
    assert!(may_become_sitemap(b"\x1f", false));
    assert!(may_become_sitemap(&gzip(b"<urlset>"), false));
    assert!(may_become_sitemap(b"<?xml", false));
    assert!(!may_become_sitemap(b"PK\x03\x04\x00\x00", false));
    assert!(!may_become_sitemap(&vec![b'x'; BEGINNING_BYTES], false));
}

#[test]
fn the_readable_parts_of_odd_feeds_and_sitemaps_are_read() {
    let table = include_str!("odd.tsv").lines();
    let rows: Vec<&str> = table.filter(|line| !line.starts_with('#')).collect();
    assert!(rows.len() >= 100, "{}", rows.len());
    let url = Url::parse("https://a.example/feeds/all").unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let [text, expected, end] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let text = unescape(text);
        let read = read(text.as_bytes(), None, &url, false, |_| {});
        let found = read.as_ref().map(|sitemap| {
            let urls: Vec<&str> = sitemap.urls.iter().map(Url::as_str).collect();
            (urls.join(" "), sitemap.cut.is_some())
        });
        if found != Some((expected.to_owned(), end == "cut")) {
            wrong.push(format!("{text}\n  {read:?} instead of {expected} ({end})"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn unescape(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}').unwrap();
        plain.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        plain.push_str(rest);
    }
    plain
}
