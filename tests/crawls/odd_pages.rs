//! Tests pages that browsers and other clients read, although they are not the usual HTML or JSON.

use serde_json::{Value, json};
use webfill_tests::site::{Page, Web, document, page};
use webfill_tests::workplace::Workplace;

const XHTML: &str = "application/xhtml+xml; charset=utf-8";

/// A mapping with one field, `value`.
fn mapping_of(processors: &[Value]) -> Value {
    json!({
        "name": "odd",
        "url_patterns": [{"type": "regex", "pattern": "."}],
        "fields": [{"name": "value", "multiple": true, "processors": processors}],
    })
}

fn step(kind: &str, parameter: &str, value: &str) -> Value {
    json!({"type": kind, "parameters": {parameter: value}})
}

/// Crawls the pages with a mapping, and compares the values that the store has.
fn check_pages(processors: &[Value], cases: &[(&str, Page, Value)]) {
    let (web, work) = (Web::start(), Workplace::new());
    let site = web.site("odd.example");
    work.write_json("odd/odd.json", &mapping_of(processors));
    for (path, page, _) in cases {
        site.serve(path, page.clone());
    }
    work.crawl(&web)
        .replace_flag("--delay", "0.01")
        .replace_flag("--mappings", work.path("odd"))
        .args(cases.iter().map(|(path, ..)| site.url(path)))
        .finish()
        .expect_code(0);
    let pages = work.stored().pages();
    for (path, _, expected) in cases {
        let page = &pages[&site.url(path)];
        assert_eq!(page.outcome, "ok", "{path}");
        assert_eq!(page.fields.get("value"), Some(expected), "{path}");
    }
}

#[test]
fn elements_keep_their_text_at_any_depth() {
    let rows = |count: usize, open: &str| -> String {
        (0..count)
            .map(|row| format!("{open}<b class=name>{row}</b>"))
            .collect()
    };
    let names = |count: usize| json!((0..count).map(|row| row.to_string()).collect::<Vec<_>>());
    check_pages(
        &[step("css", "selector", "b.name")],
        &[
            (
                "/divs",
                document("text/html", rows(900, "<div>")),
                names(900),
            ),
            (
                "/lists",
                document("text/html", rows(450, "<ul><li>")),
                names(450),
            ),
            ("/flat", document("text/html", rows(900, "<p>")), names(900)),
        ],
    );
}

#[test]
fn xhtml_may_have_empty_elements_and_sections() {
    let around = |body: &str| {
        let page = format!(
            "<?xml version='1.0' encoding='utf-8'?>\n\
             <html xmlns='http://www.w3.org/1999/xhtml'><head><title/>\
             <script type='text/javascript' src='/x.js'/></head><body>{body}</body></html>"
        );
        document(XHTML, page)
    };
    check_pages(
        &[step("css", "selector", "h1, h2")],
        &[
            ("/script", around("<h1>Ada</h1>"), json!(["Ada"])),
            (
                "/anchor",
                around("<h1><a id='a'/>Ada<i/></h1><div/><h2>Mary</h2>"),
                json!(["Ada", "Mary"]),
            ),
            (
                "/section",
                around("<h1><![CDATA[Ada <& co>]]></h1>"),
                json!(["Ada <& co>"]),
            ),
            (
                "/content-script",
                around("<script>//<![CDATA[\nif (a < b) w('<h1/>');\n//]]></script><h1>Ada</h1>"),
                json!(["Ada"]),
            ),
        ],
    );
}

#[test]
fn encodings_that_nothing_declares_are_guessed() {
    let windows_1251 = b"\xca\xed\xe8\xe3\xe8 \xe8 \xe0\xe2\xf2\xee\xf0\xfb";
    let koi8 = b"\xeb\xce\xc9\xc7\xc9 \xc9 \xc1\xd7\xd4\xcf\xd2\xd9";
    let shift_jis = b"\x93\xfa\x96{\x8c\xea\x82\xcc\x83y\x81[\x83W\x82\xc5\x82\xb7";
    let page = |kind: &str, text: &[u8]| document(kind, [&b"<h1>"[..], text, b"</h1>"].concat());
    check_pages(
        &[step("css", "selector", "h1")],
        &[
            (
                "/cyrillic",
                page("text/html", windows_1251),
                json!(["Книги и авторы"]),
            ),
            (
                "/not-utf-8",
                page("text/html; charset=utf-8", koi8),
                json!(["Книги и авторы"]),
            ),
            (
                "/japanese",
                page("text/html", shift_jis),
                json!(["日本語のページです"]),
            ),
        ],
    );
}

#[test]
fn frames_are_links_and_each_line_of_seeds_has_one_url() {
    let (web, work) = (Web::start(), Workplace::new());
    let (frames, closed) = (web.site("frames.example"), web.site("closed.example"));
    let set = "<html><head><title/><script src='x.js'/></head><frameset><frame src='left'/>\
               <frame src='/right'/></frameset></html>";
    frames.serve(
        "/html",
        document("text/html", set.replace("<title/><script src='x.js'/>", "")),
    );
    frames.serve(
        "/xhtml",
        document(
            XHTML,
            set.replace("left", "left-2").replace("right", "right-2"),
        ),
    );
    for path in ["/left", "/right", "/left-2", "/right-2"] {
        frames.serve(path, page(path));
    }
    let seeds = work.write(
        "seeds.txt",
        "http://frames.example/html\nhttp://frames.example/xhtml\n\
         http://closed.example/a HTTP://closed.example/b\n",
    );
    let run = work.crawl(&web).replace_flag("--delay", "0.01");
    let run = run
        .args(["--follow", "all", "--depth", "1"])
        .arg("--seeds")
        .arg(seeds)
        .finish();
    let outcomes = work.stored().outcomes();
    for path in ["/html", "/xhtml", "/left", "/right", "/left-2", "/right-2"] {
        assert_eq!(outcomes[&frames.url(path)], "ok", "{path}");
    }
    assert_eq!(outcomes.len(), 6);
    let broken = &run.summary().json["broken_seeds"]["first"];
    assert_eq!(broken[0]["line"], 3);
    assert_eq!(web.visits().for_host("closed.example").0.len(), 0);
    drop(closed);
}

#[test]
fn json_is_read_with_its_charset_and_as_html() {
    let latin = b"{\"name\": \"Gr\xf6\xdfe\"}".to_vec();
    let text = "{\"name\": \"Größe\"}";
    let size = json!(["Größe"]);
    check_pages(
        &[step("jsonpath", "expression", "$..name")],
        &[
            (
                "/latin",
                document("application/json; charset=iso-8859-1", latin),
                size.clone(),
            ),
            (
                "/wrong",
                document("application/json; charset=iso-8859-1", text),
                size.clone(),
            ),
            (
                "/html",
                document("text/html; charset=utf-8", text),
                size.clone(),
            ),
            (
                "/list",
                document("text/html; charset=utf-8", format!("\n[{text}]")),
                json!(["Größe"]),
            ),
        ],
    );
}

#[test]
fn values_are_read_as_the_page_shows_them() {
    let read = |kind: &str, texts: &[(&str, Value)]| {
        let paths: Vec<String> = (0..texts.len())
            .map(|number| format!("/{number}"))
            .collect();
        let cases: Vec<(&str, Page, Value)> = texts
            .iter()
            .zip(&paths)
            .map(|((text, expected), path)| {
                let page = document("text/html; charset=utf-8", format!("<p>{text}</p>"));
                (path.as_str(), page, json!([expected]))
            })
            .collect();
        let find = step("css", "selector", "p");
        check_pages(&[find, json!({"type": kind, "parameters": {}})], &cases);
    };
    read(
        "number",
        &[
            ("5<i style='display:none'>7</i>", json!(5)),
            ("<span hidden>7</span>5", json!(5)),
            ("<span hidden>7</span>", json!(7)),
        ],
    );
    read(
        "date",
        &[
            ("2024&#8209;02&#8209;03", json!("2024-02-03")),
            (
                "2024-02-03T10:00:00\u{2212}05:00",
                json!("2024-02-03T10:00:00-05:00"),
            ),
        ],
    );
    read(
        "duration",
        &[
            ("1h30", json!("90")),
            ("90 Minuten", json!("90")),
            ("1\u{bd} hours", json!("90")),
        ],
    );
}

#[test]
fn utf16_is_read_without_a_byte_order_mark() {
    let text = "<html><head><title>t</title></head><body><h1>Größe Ж 価格</h1></body></html>";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let expected = json!(["Größe Ж 価格"]);
    check_pages(
        &[step("css", "selector", "h1")],
        &[
            (
                "/little",
                document("text/html", little.clone()),
                expected.clone(),
            ),
            ("/big", document("text/html", big.clone()), expected.clone()),
            (
                "/declared",
                document("text/html; charset=utf-16", big),
                expected.clone(),
            ),
            (
                "/wrong",
                document("text/html; charset=utf-8", little),
                expected.clone(),
            ),
            (
                "/none",
                document("text/html; charset=utf-16", text),
                expected,
            ),
        ],
    );
}

#[test]
fn charsets_by_other_names_are_known() {
    let named = |label: &str, bytes: &[u8]| {
        let kind = format!("text/html; charset={label}");
        document(&kind, [&b"<h1>"[..], bytes, b"</h1>"].concat())
    };
    let declared = |label: &str, bytes: &[u8]| {
        let meta = format!("<meta charset='{label}'><h1>");
        document("text/html", [meta.as_bytes(), bytes, b"</h1>"].concat())
    };
    let shift_jis = b"\x89\xbf\x8ai";
    check_pages(
        &[step("css", "selector", "h1")],
        &[
            ("/cp932", named("cp932", shift_jis), json!(["価格"])),
            ("/ms932", declared("ms932", shift_jis), json!(["価格"])),
            (
                "/cp949",
                named("cp949", b"\xb0\xa1\xb0\xdd"),
                json!(["가격"]),
            ),
            (
                "/cp950",
                declared("cp950", b"\xbb\xf9\xae\xe6"),
                json!(["價格"]),
            ),
            (
                "/win",
                named("win-1251", b"\xd6\xe5\xed\xe0"),
                json!(["Цена"]),
            ),
            ("/latin", declared("latin-2", b"\xf5"), json!(["ő"])),
            ("/mb4", named("utf8mb4", "é".as_bytes()), json!(["é"])),
        ],
    );
}

#[test]
fn json_in_scripts_and_behind_guards_is_read() {
    let json = r#"{"name": "Ada"}"#;
    let cases = [
        (
            "/jsonp",
            "application/javascript",
            format!("callback({json});"),
        ),
        ("/comment", "text/javascript", format!("/**/cb.x({json})")),
        (
            "/typeof",
            "application/json",
            format!("/**/ typeof cb === 'function' && cb({json});"),
        ),
        (
            "/assigned",
            "application/x-javascript",
            format!("window.data = {json};"),
        ),
        ("/html", "text/html", format!("cb({json});")),
        ("/guard", "application/json", format!(")]}}',\n{json}")),
        ("/while", "application/json", format!("while(1);{json}")),
        ("/for", "text/html", format!("for (;;);{json}")),
        ("/mark", "application/json", format!("\u{feff}{json}")),
    ];
    let cases: Vec<(&str, Page, Value)> = cases
        .into_iter()
        .map(|(path, kind, text)| (path, document(kind, text), json!(["Ada"])))
        .collect();
    check_pages(&[step("jsonpath", "expression", "$.name")], &cases);
}

#[test]
fn entities_of_an_xml_page_are_replaced() {
    let page = |subset: &str, text: &str| {
        let page =
            format!("<?xml version='1.0'?><!DOCTYPE r [{subset}]><r><name>{text}</name></r>");
        document("text/xml", page)
    };
    let bomb: String = (1..12)
        .map(|level| {
            format!(
                "<!ENTITY a{level} '{}'>",
                format!("&a{};", level - 1).repeat(10)
            )
        })
        .collect();
    check_pages(
        &[step("xpath", "expression", "//name")],
        &[
            (
                "/plain",
                page("<!ENTITY co 'Example Ltd'>", "&co;"),
                json!(["Example Ltd"]),
            ),
            (
                "/nested",
                page("<!ENTITY a 'A'><!ENTITY b '&a; &#38; B'>", "&b;"),
                json!(["A & B"]),
            ),
            (
                "/file",
                page("<!ENTITY f SYSTEM 'file:///etc/hostname'>", "Ada&f;"),
                json!(["Ada&f;"]),
            ),
            (
                "/bomb",
                page(&format!("<!ENTITY a0 'lol'>{bomb}"), "&a11;"),
                json!(["&a11;"]),
            ),
        ],
    );
}

#[test]
fn readable_text_has_no_hidden_elements() {
    let hidden = "<p hidden>h</p><p style='display: none'>d</p><p style='visibility:hidden'>v</p>\
                  <template>t</template><noscript>n</noscript><script>s</script>";
    check_pages(
        &[
            step("css", "selector", "main"),
            json!({"type": "html_to_text"}),
        ],
        &[(
            "/",
            document(
                "text/html",
                format!("<main><p>Ada</p>{hidden}<p>Mary</p></main>"),
            ),
            json!(["Ada\n\nMary"]),
        )],
    );
}

#[test]
fn dates_in_further_languages_are_read() {
    let dates = [
        ("/ru", "5 марта 2024 г."),
        ("/uk", "5 березня 2024 р."),
        ("/tr", "5 MART 2024 SALI"),
        ("/cs", "úterý 5. března 2024"),
        ("/hu", "2024. március 5."),
        ("/ko", "2024년 3월 5일"),
        ("/el", "5 Μαρτίου 2024"),
        ("/ja", "2024年3月5日"),
    ];
    let cases: Vec<(&str, Page, Value)> = dates
        .iter()
        .map(|(path, date)| {
            let page = document("text/html; charset=utf-8", format!("<time>{date}</time>"));
            (*path, page, json!(["2024-03-05"]))
        })
        .collect();
    check_pages(
        &[step("css", "selector", "time"), json!({"type": "date"})],
        &cases,
    );
}
