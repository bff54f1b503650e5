use fastrand::Rng;

use super::*;

fn canonical_text(text: &str) -> String {
    match canonical_url(text, None) {
        Ok(url) => url.into(),
        Err(refusal) => panic!("{text:?} was refused: {refusal}"),
    }
}

fn refusal(text: &str) -> UrlRefusal {
    match canonical_url(text, None) {
        Ok(url) => panic!("{text:?} was taken as {url}"),
        Err(refusal) => refusal,
    }
}

#[test]
fn two_spellings_of_one_url_have_one_form() {
    for (text, expected) in [
        ("HTTP://Example.COM", "http://example.com/"),
        ("  https://example.com/a\n", "https://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("http://example.com:80", "http://example.com/"),
        ("http://example.com:8080/", "http://example.com:8080/"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/a/%2E%2e/c", "https://example.com/c"),
        ("https://example.com/a#part", "https://example.com/a"),
        ("https://example.com/a#", "https://example.com/a"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://user@example.com/a", "https://example.com/a"),
        ("https://:secret@example.com/a", "https://example.com/a"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://example.com.:8443/a", "https://example.com:8443/a"),
        (
            "https://example.com/%7Eann/%c3%a9",
            "https://example.com/~ann/%C3%A9",
        ),
        ("https://example.com/é x", "https://example.com/%C3%A9%20x"),
        ("https:\\\\example.com\\a", "https://example.com/a"),
        (
            "https://example.com/a^b|c?^|",
            "https://example.com/a%5Eb%7Cc?^|",
        ),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://a_b.example.com/", "https://a_b.example.com/"),
    ] {
        assert_eq!(canonical_text(text), expected, "{text}");
    }
}

#[test]
fn the_query_is_left_as_it_is() {
    for text in [
        "https://example.com/?b=2&a=1",
        "https://example.com/?",
        "https://example.com/?q=%7e%c3&&x",
        "https://example.com/?next=http://example.org/../%2e%2e",
    ] {
        assert_eq!(canonical_text(text), text);
    }
}

#[test]
fn a_link_is_read_on_its_page() {
    let page = Url::parse("https://example.com/shop/list?page=2").unwrap();
    for (link, expected) in [
        ("item/7", "https://example.com/shop/item/7"),
        ("../about", "https://example.com/about"),
        ("/", "https://example.com/"),
        ("?page=3", "https://example.com/shop/list?page=3"),
        ("#top", "https://example.com/shop/list?page=2"),
        ("", "https://example.com/shop/list?page=2"),
        ("//other.example/x", "https://other.example/x"),
        ("///other.example/x", "https://other.example/x"),
        (" \\/\\/other.example", "https://other.example/"),
        ("http://other.example", "http://other.example/"),
    ] {
        assert_eq!(
            canonical_url(link, Some(&page)).unwrap().as_str(),
            expected,
            "{link}"
        );
    }
}

#[test]
fn every_spelling_of_an_address_ends_as_the_address() {
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0x7F000001",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
    ] {
        assert_eq!(
            canonical_text(&format!("http://{host}/")),
            "http://127.0.0.1/",
            "{host}"
        );
    }
    assert_eq!(canonical_text("http://0/"), "http://0.0.0.0/");
    for host in [
        "[::ffff:127.0.0.1]",
        "[::FFFF:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:0001]",
    ] {
        assert_eq!(
            canonical_text(&format!("http://{host}/")),
            "http://[::ffff:7f00:1]/",
            "{host}"
        );
    }
}

#[test]
fn other_schemes_are_refused_by_name() {
    let page = Url::parse("https://example.com/").unwrap();
    for (text, name) in [
        ("mailto:ann@example.com", "mailto"),
        ("JavaScript:void(0)", "javascript"),
        (" java\nscript:void(0)", "javascript"),
        ("data:text/html,hello", "data"),
        ("tel:+1", "tel"),
        ("ftp://example.com/", "ftp"),
        ("file:///etc/passwd", "file"),
        ("blob:https://example.com/1", "blob"),
        ("localhost:8080/x", "localhost"),
    ] {
        let refused = canonical_url(text, Some(&page)).unwrap_err();
        assert_eq!(refused.code(), "unsupported_scheme", "{text}");
        let UrlRefusal::UnsupportedScheme { scheme, .. } = refused else {
            unreachable!("the code says so");
        };
        assert_eq!(scheme, name, "{text}");
    }
}

#[test]
fn urls_that_cannot_be_fetched_are_invalid() {
    for text in [
        "",
        "example.com/a",
        "/a",
        "http://",
        "http:///",
        "http://exa mple.com/",
        "http://example.com:99999/",
        "http://example.com:port/",
        "http://256.256.256.256/",
        "http://1.2.3.4.5/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://a..example.com/",
        "http://example.com../",
        "http://1.2.3.4../",
        "http://./",
        "http://xn--a/",
        "http://example.com:22/",
        "http://example.com:0/",
        "http://example.com:6667/",
        &format!("http://{}.example.com/", "a".repeat(64)),
        &format!("http://{}com/", "a.".repeat(130)),
    ] {
        assert_eq!(refusal(text).code(), "invalid_url", "{text}");
    }
}

#[test]
fn the_length_limit_is_that_of_the_canonical_form() {
    let longest = format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES - 20));
    assert_eq!(canonical_text(&longest), longest);
    assert_eq!(canonical_text(&format!("{longest}#fragment")), longest);
    assert_eq!(refusal(&format!("{longest}a")).code(), "invalid_url");
    assert_eq!(refusal(&"h".repeat(1 << 20)).code(), "invalid_url");
    assert_eq!(
        refusal(&format!("data:{}", "a".repeat(1 << 20))).code(),
        "unsupported_scheme"
    );
}

#[test]
fn a_refusal_repeats_the_text_shortened_and_escaped() {
    let message = refusal("http://exa\u{1b}[31mmple.com:22/").to_string();
    assert!(
        message.starts_with(r#"invalid URL "http://exa\u{1b}[31m"#),
        "{message}"
    );
    let message = refusal(&format!("http://[{}", "é".repeat(5000))).to_string();
    assert!(message.chars().count() < 200, "{message}");
    assert!(message.contains("..."), "{message}");
}

/// Random texts made of pieces that are difficult for parsers. They are the same in every run.
fn odd_texts(count: usize) -> impl Iterator<Item = String> {
    const PIECES: [&str; 40] = [
        "http://",
        "https://",
        "HTTP:",
        "//",
        "/",
        "\\",
        "..",
        ".",
        "%2e",
        "%2E%2e",
        "%",
        "%4",
        "%41",
        "%31",
        "%25",
        "%zz",
        "%c3%A9",
        "é",
        " ",
        "\t",
        "\n",
        "?",
        "#",
        "@",
        ":",
        ":80",
        ":443",
        ":8080",
        "user:pw@",
        "example.com",
        "EXAMPLE.com.",
        "[::1]",
        "127.1",
        "0x7f",
        "１２７",
        "xn--",
        "a",
        ";",
        "&b=c",
        "\u{0}",
    ];
    let mut rng = Rng::with_seed(1);
    (0..count).map(move |round| {
        let start = if round % 4 == 0 {
            ""
        } else {
            "http://example.com"
        };
        let length = rng.usize(..12);
        (0..length).fold(start.to_owned(), |text, _| {
            text + PIECES[rng.usize(..PIECES.len())]
        })
    })
}

#[test]
fn the_canonical_form_of_a_canonical_form_is_itself() {
    let page = Url::parse("https://example.org/a/b?c").unwrap();
    let mut taken = 0;
    for text in odd_texts(200_000) {
        let Ok(url) = canonical_url(&text, Some(&page)) else {
            continue;
        };
        taken += 1;
        let again = canonical_url(url.as_str(), None);
        assert_eq!(again.as_ref(), Ok(&url), "from {text:?}");
        assert_eq!(url.fragment(), None);
        assert!(
            url.username().is_empty() && url.password().is_none(),
            "{url}"
        );
    }
    assert!(taken > 50_000, "only {taken} texts were URLs");
}
