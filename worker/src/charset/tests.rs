use encoding_rs::{EUC_JP, ISO_8859_2, SHIFT_JIS, UTF_16BE, UTF_16LE, WINDOWS_1250, WINDOWS_1251};

use super::*;

fn html_encoding(body: impl AsRef<[u8]>) -> &'static Encoding {
    encoding_of(body.as_ref(), Some("text/html"), Kind::Html)
}

/// Makes a page with bytes that are not valid UTF-8, so only its declaration shows its encoding.
fn page_declaring(declaration: &str) -> Vec<u8> {
    [declaration.as_bytes(), b"<p>\xcf\xf0"].concat()
}

#[test]
fn a_byte_order_mark_goes_before_everything() {
    let page = b"\xef\xbb\xbf<meta charset=windows-1251>caf\xc3\xa9";
    let text = decode(page, Some("text/html; charset=iso-8859-2"), Kind::Html);
    assert_eq!(text, "<meta charset=windows-1251>café");
    assert!(matches!(text, Cow::Borrowed(_)));
    assert_eq!(decode(b"\xff\xfeh\0\xe9\0", None, Kind::Html), "hé");
    assert_eq!(decode(b"\xfe\xff\0h\0\xe9", None, Kind::Json), "hé");
}

#[test]
fn the_header_goes_before_the_page() {
    for header in [
        "text/html; charset=windows-1251",
        "text/html;Charset=\"Windows-1251\"",
        "text/html; boundary=x; charset= cp1251 ; x=y",
        "text/html; charset=cp1251, text/html",
        "text/plain; charset=koi8-r, text/html; charset=cp1251",
    ] {
        let page = page_declaring("<meta charset=shift_jis>");
        assert_eq!(
            encoding_of(&page, Some(header), Kind::Html),
            WINDOWS_1251,
            "{header}"
        );
    }
    for header in [
        "text/html; charset=",
        "text/html; charset=no-such",
        "text/html",
        "charset=cp1251",
        "text/html; charset='cp1251'",
        "text/plain; charset=cp1251, text/html",
    ] {
        let page = page_declaring("<meta charset=shift_jis>");
        assert_eq!(
            encoding_of(&page, Some(header), Kind::Html),
            SHIFT_JIS,
            "{header}"
        );
    }
    assert_eq!(
        decode(b"\xcf\xf0", Some("text/plain; charset=cp1251"), Kind::Text),
        "Пр"
    );
}

#[test]
fn a_page_may_declare_its_encoding() {
    for (declaration, expected) in [
        ("<meta charset=windows-1251>", WINDOWS_1251),
        ("<html><head><META CHARSET = 'cp1251' />", WINDOWS_1251),
        ("<meta/charset=\"cp1251\"/>", WINDOWS_1251),
        (
            "<meta http-equiv=Content-Type content='text/html; charset=shift_jis'>",
            SHIFT_JIS,
        ),
        (
            "<meta content=\"text/html; charset='euc-jp'\" http-equiv=\"content-type\">",
            EUC_JP,
        ),
        (
            "<meta content='charset; charset = euc-jp;x' http-equiv=content-type>",
            EUC_JP,
        ),
        (
            "<?xml version='1.0' encoding='iso-8859-2'?><html>",
            ISO_8859_2,
        ),
        (
            "<?xml version=\"1.0\" encoding = \"iso-8859-2\" ?><html>",
            ISO_8859_2,
        ),
        (
            "<!-- <meta charset=shift_jis> --><meta charset=cp1251>",
            WINDOWS_1251,
        ),
        ("<!--><meta charset=cp1251><!-- -->", WINDOWS_1251),
        (
            "<a title='<meta charset=shift_jis>'></a><meta charset=cp1251>",
            WINDOWS_1251,
        ),
        (
            "<!doctype html><?x?></x y='>'><meta name=x charset=cp1251>",
            WINDOWS_1251,
        ),
        ("<meta charset=no-such><meta charset=cp1251>", WINDOWS_1251),
        (
            "<script>w('<meta charset=shift_jis>')</SCRIPT ><meta charset=cp1251>",
            WINDOWS_1251,
        ),
        (
            "<TITLE>a</titles><meta charset=shift_jis></title><meta charset=cp1251>",
            WINDOWS_1251,
        ),
        (
            "<style><!-- </style><meta charset=cp1251><!-- -->",
            WINDOWS_1251,
        ),
    ] {
        assert_eq!(
            html_encoding(page_declaring(declaration)),
            expected,
            "{declaration}"
        );
    }
}

#[test]
fn invalid_declarations_are_ignored() {
    for declaration in [
        "",
        "<meta",
        "<meta charset",
        "<meta charset=",
        "<meta charset=\"cp1251",
        "<metacharset=cp1251>",
        "<meta content='text/html; charset=cp1251'>",
        "<meta http-equiv=refresh content='charset=cp1251'>",
        "<!-- <meta charset=cp1251>",
        "<!-- > <meta charset=cp1251> -->",
        "</meta charset=cp1251>",
        "meta charset=cp1251>",
        "<<<<</</<!<?",
        " <?xml encoding='cp1251'?>",
        "<?xml encoding=cp1251?>",
        "<?xml encoding='cp1251",
        "<script>document.write(\"<meta charset=cp1251>\")</script>",
        "<title><meta charset=cp1251></title>",
        "<title><meta charset=cp1251>",
        "<textarea><meta charset=cp1251></textarea>",
        "<script><meta charset=cp1251></scr",
    ] {
        assert_eq!(
            html_encoding(page_declaring(declaration)),
            WINDOWS_1252,
            "{declaration}"
        );
    }
}

#[test]
fn a_declared_utf_16_means_utf_8() {
    for label in ["utf-16", "utf-16le", "utf-16be"] {
        let page = format!("<meta charset={label}><p>caf\u{e9}");
        assert_eq!(html_encoding(page), UTF_8, "{label}");
    }
    assert_eq!(
        html_encoding(page_declaring("<meta charset=x-user-defined>")),
        WINDOWS_1252
    );
    assert_eq!(encoding_of(b"<\0?\0x\0m\0l\0", None, Kind::Xml), UTF_16LE);
    assert_eq!(encoding_of(b"\0<\0?\0x\0m\0l", None, Kind::Xml), UTF_16BE);
}

#[test]
fn an_encoding_that_nothing_declares_is_guessed_by_its_letters() {
    let table = [
        (WINDOWS_1251, "Книги и их авторы на русском языке"),
        (encoding_rs::KOI8_U, "Книги и их авторы на русском языке"),
        (
            WINDOWS_1250,
            "Zażółć gęślą jaźń, książki i autorzy, źródło, środa",
        ),
        (
            ISO_8859_2,
            "Zażółć gęślą jaźń, książki i autorzy, źródło, środa",
        ),
        (SHIFT_JIS, "日本語のページです。本と著者について。"),
        (EUC_JP, "日本語のページです。本と著者について。"),
        (encoding_rs::GBK, "这是一个关于书籍和作者的网页"),
        (encoding_rs::BIG5, "這是一個關於書籍和作者的網頁"),
        (encoding_rs::EUC_KR, "이것은 책과 저자에 관한 페이지입니다"),
        (
            encoding_rs::WINDOWS_1253,
            "Αυτή είναι μια σελίδα για βιβλία",
        ),
        (WINDOWS_1252, "Größe, Straße, Übergröße, schön, für Mädchen"),
        (
            WINDOWS_1252,
            "Le garçon était là où l’été s’achève déjà, œuvre",
        ),
        (
            WINDOWS_1252,
            "« un » – « deux » – « trois » – « quatre » • cinq • six",
        ),
    ];
    for (encoding, text) in table {
        let page = encoding.encode(text).0;
        assert_eq!(html_encoding(&page), encoding, "{text}");
        if encoding == WINDOWS_1251 {
            let header = Some("text/html; charset=utf-8");
            assert_eq!(encoding_of(&page, header, Kind::Html), encoding, "{text}");
        }
    }
}

#[test]
fn json_is_utf_8_unless_it_is_not() {
    let header = Some("application/json; charset=iso-8859-2");
    let encoding = |body: &[u8], header| encoding_of(body, header, Kind::Json);
    assert_eq!(encoding("\"é\"".as_bytes(), header), UTF_8);
    assert_eq!(encoding(b"\"\xe9\"", header), ISO_8859_2);
    assert_eq!(encoding(b"\"\xe9\"", Some("application/json")), UTF_8);
}

#[test]
fn a_declaration_that_the_body_refutes_is_not_followed() {
    for label in ["iso-8859-1", "windows-1252", "latin1", "us-ascii"] {
        let declaration = format!("<meta charset={label}>");
        assert_eq!(html_encoding(format!("{declaration}caf\u{e9}")), UTF_8);
        assert_eq!(html_encoding(page_declaring(&declaration)), WINDOWS_1252);
        assert_eq!(html_encoding(declaration), WINDOWS_1252);
    }
    let header = Some("text/html; charset=utf-8");
    let encoding = |body: &[u8]| encoding_of(body, header, Kind::Html);
    assert_eq!(encoding(b"B\xf6ll, caf\xe9"), WINDOWS_1252);
    // UTF-8 with one damaged byte is still read as UTF-8.
    assert_eq!(encoding(b"caf\xc3\xa9, B\xf6ll"), UTF_8);
    assert_eq!(encoding(b"Boell"), UTF_8);
}

#[test]
fn without_a_declaration_it_is_utf_8_if_valid() {
    for kind in [Kind::Html, Kind::Xml, Kind::Text] {
        assert_eq!(decode("naïve €".as_bytes(), None, kind), "naïve €");
        assert_eq!(decode(b"na\xefve \x80", None, kind), "naïve €");
    }
}

#[test]
fn a_late_declaration_is_better_than_a_guess() {
    let late = format!("{}<meta charset=windows-1251>", " ".repeat(5000));
    assert_eq!(html_encoding(page_declaring(&late)), WINDOWS_1251);
    assert_eq!(html_encoding(late + "é"), UTF_8);
}

#[test]
fn a_late_declaration_of_a_7_bit_encoding_is_tried() {
    let page = |label: &str| {
        let padding = " ".repeat(5000);
        format!("<title>{padding}</title><meta charset={label}>\u{1b}$B$\"\u{1b}(B")
    };
    assert!(decode(page("iso-2022-jp").as_bytes(), None, Kind::Html).ends_with("あ"));
    for label in ["utf-8", "hz-gb-2312", "windows-1251", "no-such"] {
        let page = page(label);
        assert_eq!(decode(page.as_bytes(), None, Kind::Html), page, "{label}");
    }
}

#[test]
fn json_is_utf_8_and_keeps_its_valid_parts() {
    let header = Some("application/json; charset=iso-8859-1");
    assert_eq!(
        decode(b"[\"\xc3\xa9\", \"\xe9\", \"\0\"]", header, Kind::Json),
        "[\"é\", \"\u{fffd}\", \"\0\"]"
    );
}

#[test]
fn any_bytes_become_text() {
    let mut random = fastrand::Rng::with_seed(1);
    let pieces = [
        "<meta ",
        "charset=",
        "<!--",
        "-->",
        "<?xml",
        " encoding='",
        "\"",
        "=",
        ">",
        "<a/",
    ];
    for round in 0..20_000 {
        let mut body = Vec::new();
        for byte in std::iter::repeat_with(|| random.u8(..)).take(round % 12) {
            match pieces.get(byte as usize % 16) {
                Some(piece) => body.extend_from_slice(piece.as_bytes()),
                None => body.push(byte),
            }
        }
        for kind in [Kind::Html, Kind::Xml, Kind::Json, Kind::Text] {
            let text = decode(&body, None, kind);
            assert!(text.len() <= 3 * body.len());
        }
        content_kind(None, &body);
    }
}

#[test]
fn the_header_decides_the_kind() {
    for (header, expected) in [
        ("text/html", Some(Kind::Html)),
        (" Text/HTML ; charset=utf-8", Some(Kind::Html)),
        ("text/html, text/html", Some(Kind::Html)),
        ("image/png, text/html", Some(Kind::Html)),
        ("text/html, image/png", Some(Kind::Unsupported)),
        ("text/html, html", Some(Kind::Html)),
        ("application/xhtml+xml", Some(Kind::Html)),
        ("text/xml", Some(Kind::Xml)),
        ("application/rss+xml;charset=utf-8", Some(Kind::Xml)),
        ("image/svg+xml", Some(Kind::Xml)),
        ("application/json", Some(Kind::Json)),
        ("application/ld+json", Some(Kind::Json)),
        ("text/plain", Some(Kind::Text)),
        ("text/csv", Some(Kind::Text)),
        ("image/png", Some(Kind::Unsupported)),
        ("application/pdf", Some(Kind::Unsupported)),
        ("application/octet-stream", Some(Kind::Unsupported)),
        ("html", None),
        ("", None),
        ("*/*", None),
        ("; charset=utf-8", None),
    ] {
        assert_eq!(declared_kind(header), expected, "{header}");
        assert_eq!(
            is_supported_type(header),
            expected != Some(Kind::Unsupported),
            "{header}"
        );
    }
}

#[test]
fn a_binary_is_unsupported_whatever_the_header_says() {
    let tar = [&[b'x'; 257][..], b"ustar\x0000"].concat();
    for body in [
        &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
        b"GIF89a\x01\0",
        b"\xff\xd8\xff\xe0\0\x10JFIF",
        b"%PDF-1.7\n",
        b"PK\x03\x04\x14\0",
        b"\x1f\x8b\x08\0\0",
        b"\x7fELF\x02\x01\x01",
        b"\0\0\0\x18ftypmp42",
        b"RIFF\x10\0\0\0WEBPVP8 ",
        b"OggS\0\x02",
        b"BZh91AY&SY",
        &tar,
    ] {
        for header in [Some("text/html"), Some("application/json"), None] {
            assert_eq!(
                content_kind(header, body),
                Kind::Unsupported,
                "{}",
                body.escape_ascii()
            );
        }
    }
    assert_eq!(content_kind(Some("text/html"), b"\0\0<p>\0"), Kind::Html);
    assert_eq!(content_kind(Some("text/html"), b""), Kind::Html);
}

#[test]
fn without_a_header_the_body_decides_the_kind() {
    let utf_16: Vec<u8> = "\u{feff}<html> "
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (body, expected) in [
        (&b" \n<!DOCTYPE HTML>"[..], Kind::Html),
        (b"<html lang=en>", Kind::Html),
        (b"<!-- hello -->", Kind::Html),
        (b"<p>hello", Kind::Html),
        (b"\xef\xbb\xbf<body>", Kind::Html),
        (&utf_16, Kind::Html),
        (b"<?xml version='1.0'?>", Kind::Xml),
        (b"{\"a\": 1}", Kind::Json),
        (b"[ {} ]", Kind::Json),
        (b"[1, 2]", Kind::Json),
        (b"[see below] text", Kind::Text),
        (b"<person> is no tag of HTML", Kind::Text),
        (b"hello", Kind::Text),
        (b"", Kind::Text),
        (b"hello \0\x01\x02", Kind::Unsupported),
    ] {
        assert_eq!(
            content_kind(None, body),
            expected,
            "{}",
            body.escape_ascii()
        );
        assert_eq!(
            content_kind(Some("*/*"), body),
            expected,
            "{}",
            body.escape_ascii()
        );
    }
}
