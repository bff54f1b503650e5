use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::lines::MAX_LINE_BYTES;
use super::*;

mod csv_rows;

const NOW_MS: i64 = 1_700_000_000_000;

fn open(name: &str, content: &[u8]) -> Result<SeedReader, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    SeedReader::open(&path, NOW_MS)
}

fn read_seeds(name: &str, content: &[u8]) -> Vec<Result<Seed, SeedFault>> {
    open(name, content).unwrap().collect()
}

fn refusal(name: &str, content: &[u8]) -> String {
    match open(name, content) {
        Err(refusal) => refusal,
        Ok(_) => panic!("{name} was opened"),
    }
}

/// Reads a text with one line, and returns its only seed.
fn read_single_seed(name: &str, content: &str) -> Seed {
    let mut seeds = read_seeds(name, content.as_bytes());
    assert_eq!(seeds.len(), 1, "{seeds:?}");
    seeds.remove(0).unwrap()
}

/// Reads a text, and returns the reason of its only broken line.
fn read_single_reason(name: &str, content: &str) -> String {
    let mut seeds = read_seeds(name, content.as_bytes());
    assert_eq!(seeds.len(), 1, "{seeds:?}");
    seeds.remove(0).unwrap_err().reason
}

fn urls(seeds: &[Result<Seed, SeedFault>]) -> Vec<(u64, &str)> {
    let good = seeds.iter().filter_map(|seed| seed.as_ref().ok());
    good.map(|seed| (seed.line, seed.urls[0].as_str()))
        .collect()
}

fn fault_lines(seeds: &[Result<Seed, SeedFault>]) -> Vec<u64> {
    let broken = seeds.iter().filter_map(|seed| seed.as_ref().err());
    broken.map(|fault| fault.line).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_comment_may_follow_a_url_but_text_after_a_tab_is_refused() {
    let content =
        b"https://a.example/ # mine\nhttps://b.example/#part\nhttps://c.example/\tCarl\nhttps://d.example/a b";
    let seeds = read_seeds("seeds.txt", content);
    let expected = [
        (1, "https://a.example/"),
        (2, "https://b.example/"),
        (4, "https://d.example/a%20b"),
    ];
    assert_eq!(urls(&seeds), expected);
    let fault = seeds[2].as_ref().unwrap_err();
    assert_eq!(fault.line, 3);
    assert!(fault.reason.contains("tab"), "{}", fault.reason);
}

#[test]
fn text_is_a_url_per_line_with_comments() {
    let content = b"\xef\xbb\xbf# my sites\n\nhttps://a.example/\r\n  HTTP://B.example:80/x#y  \nhttps://c.example/";
    let seeds = read_seeds("seeds.txt", content);
    let expected = [
        (3, "https://a.example/"),
        (4, "http://b.example/x"),
        (5, "https://c.example/"),
    ];
    assert_eq!(urls(&seeds), expected);
    assert_eq!(seeds.len(), 3);
    assert_eq!(
        seeds[0].as_ref().unwrap(),
        &Seed::from_url(3, String::from("https://a.example/"))
    );
}

#[test]
fn the_null_fields_of_a_record_are_wanted() {
    let line = r#"{"id": "42", "urls": ["https://a.example/", "https://b.example/"], "fields": {"name": "Ada", "city": null, "born": null}}"#;
    let seed = read_single_seed("seeds", line);
    assert_eq!(seed.id.as_deref(), Some("42"));
    assert_eq!(seed.urls, ["https://a.example/", "https://b.example/"]);
    let fields = json!({"name": "Ada", "city": null, "born": null});
    assert_eq!(Value::Object(seed.fields.unwrap()), fields);
    assert_eq!(seed.want, ["city", "born"]);
    assert_eq!(seed.request, None);
}

#[test]
fn a_record_may_list_wanted_fields() {
    let line =
        r#"{"id": 42, "urls": "https://a.example/", "want": ["name"], "fields": {"city": null}}"#;
    let seed = read_single_seed("seeds.jsonl", line);
    assert_eq!(seed.id.as_deref(), Some("42"));
    assert_eq!(seed.want, ["name"]);
}

#[test]
fn the_id_of_a_record_defaults_to_its_first_url() {
    let seed = read_single_seed(
        "seeds.jsonl",
        r#"{"urls": ["HTTPS://A.example"], "want": ["name"]}"#,
    );
    assert_eq!(seed.id.as_deref(), Some("https://a.example/"));
}

#[test]
fn a_seed_without_known_or_wanted_fields_has_no_record() {
    let plain = Seed::from_url(1, String::from("https://a.example/"));
    assert_eq!(
        read_single_seed("seeds", r#"{"url": "https://a.example/"}"#),
        plain
    );
    assert_eq!(
        read_single_seed("seeds", r#"{"id": "1", "urls": ["https://a.example/"]}"#),
        plain
    );
    assert_eq!(
        read_single_seed("s.csv", "id,url\n1,https://a.example/"),
        Seed { line: 2, ..plain }
    );
}

#[test]
fn a_crawl_request_is_kept_in_the_form_that_the_dispatcher_receives() {
    let line = json!({
        "url": "https://a.example/", "appid": "app", "crawlid": "c9", "spiderid": "link",
        "maxdepth": 3, "priority": 70, "allowed_domains": ["a.example"], "allow_regex": ["/x/"],
        "deny_regex": ["y"], "deny_extensions": ["pdf"], "expires": 1_800_000_000.5,
        "useragent": "me", "attrs": {"k": 1}, "domain_max_pages": 10, "body": true,
    });
    let seed = read_single_seed("seeds", &line.to_string());
    let expected = SeedRequest {
        bytes: line.to_string().len(),
        json: line,
        needs_browser: false,
    };
    assert_eq!(seed.request.as_deref(), Some(&expected));
    assert_eq!(seed.urls, ["https://a.example/"]);
    assert_eq!((seed.id, seed.fields), (None, None));
}

/// Reads a line, and returns the JSON path and the reason of its only error.
fn read_refused_line(line: &Value) -> (String, String) {
    let mut seeds = read_seeds("seeds", line.to_string().as_bytes());
    assert_eq!(seeds.len(), 1, "{seeds:?}");
    let fault = seeds.remove(0).unwrap_err();
    (fault.path.expect("the path of a key"), fault.reason)
}

#[test]
fn invalid_values_are_refused_with_the_expected_ones() {
    let request = |key: &str, value: Value| {
        let mut line = json!({"url": "https://a.example/", "appid": "a", "crawlid": "c"});
        line[key] = value;
        let (path, reason) = read_refused_line(&line);
        assert!(path.starts_with(&format!("$.{key}")), "{key}: {path}");
        reason
    };
    assert_eq!(
        request("priority", json!(0)),
        "expected a whole number from 1 to 100"
    );
    assert_eq!(
        request("maxdepth", json!(-1)),
        "expected a whole number from 0 to 65535"
    );
    assert_eq!(
        request("maxdepth", json!(1.5)),
        "expected a whole number from 0 to 65535"
    );
    assert_eq!(request("attrs", json!([])), "expected an object");
    assert_eq!(
        request("spiderid", json!("x")),
        "expected `link` or `browser`"
    );
    assert_eq!(request("deny_regex", json!(["a", 1])), "expected text");
    assert_eq!(
        request("deny_regex", json!("a")),
        "expected a list of texts"
    );
    assert_eq!(
        request("crawlid", json!("")),
        "expected 1 to 200 characters"
    );
    assert_eq!(request("appid", json!(null)), "expected text");
    assert!(request("crawlid", json!("a/b")).contains("no `/`"));
    assert_eq!(
        request("useragent", json!("a\nb")),
        "expected printable ASCII"
    );
    assert_eq!(
        request("expires", json!(1_600_000_000)),
        "has passed already"
    );
}

#[test]
fn a_crawl_request_without_its_ids_is_refused_with_the_missing_key() {
    let missing = "missing, it is required";
    for (line, path, reason) in [
        (json!({}), "$.url", missing),
        (
            json!({"url": "https://a.example/", "crawlid": "c"}),
            "$.appid",
            missing,
        ),
        (
            json!({"url": "https://a.example/", "maxdept": 1}),
            "$.maxdept",
            "unknown key, did you mean `maxdepth`?",
        ),
        (json!({"url": 7}), "$.url", "expected text"),
    ] {
        assert_eq!(
            read_refused_line(&line),
            (path.into(), reason.into()),
            "{line}"
        );
    }
}

#[test]
fn broken_json_lines_are_reported_with_a_reason() {
    let faults = [
        (
            r#"{"url": "https://a.example/""#,
            "invalid JSON: EOF while parsing an object at column 28",
        ),
        (
            r#"{"id": "1", "fields": {}}"#,
            "no URL: `urls` is missing or empty",
        ),
        (
            r#"{"id": "1", "urls": []}"#,
            "no URL: `urls` is missing or empty",
        ),
        (
            r#"{"id": [], "urls": ["https://a.example/"]}"#,
            "`id`: expected a text or a number",
        ),
        (
            r#"{"id": 1e3, "urls": ["https://a.example/"]}"#,
            "`id` is a number that would lose digits: write it as a text",
        ),
        (
            r#"{"id": "", "urls": ["https://a.example/"]}"#,
            "`id` is empty",
        ),
        (
            r#"{"id": "1", "url": "https://a.example/", "fields": []}"#,
            "`fields`: expected an object, {name: value}",
        ),
        (
            r#"{"id": "1", "urlz": ["https://a.example/"]}"#,
            "unknown key `urlz`: did you mean `url`?",
        ),
        (
            r#"{"url": "https://a.example/", "feilds": {"name": null}}"#,
            "unknown key `feilds`: did you mean `fields`?",
        ),
        (
            r#"{"urls": ["https://a.example/"], "colour": 1}"#,
            "unknown key `colour`: known are id, url, urls, fields, want",
        ),
    ];
    for (line, expected) in faults {
        assert_eq!(read_single_reason("seeds.jsonl", line), expected);
    }
    assert_eq!(
        read_single_reason("seeds.jsonl", "12"),
        "expected a JSON object"
    );
}

#[test]
fn a_long_number_as_an_id_keeps_all_its_digits() {
    let line = r#"{"id": 12345678901234567890123, "url": "https://a.example/", "fields": {"n": 18446744073709551616, "name": null}}"#;
    let seed = read_single_seed("seeds.jsonl", line);
    assert_eq!(seed.id.as_deref(), Some("12345678901234567890123"));
    assert_eq!(seed.fields.unwrap()["n"], "18446744073709551616");
}

#[test]
fn deeply_nested_json_is_a_fault_and_no_crash() {
    let line = format!("{{\"fields\": {}", "[".repeat(500_000));
    assert!(read_single_reason("seeds", &line).contains("recursion limit"));
}

#[test]
fn the_format_is_found_without_an_extension() {
    assert_eq!(
        read_single_seed("a", "\n# people\nname,url\n,https://a.example/").want,
        ["name"]
    );
    assert_eq!(read_single_seed("b", "url\nhttps://a.example/").line, 2);
    assert_eq!(
        read_single_seed("c", "\n  {\"url\": \"https://a.example/\"}").line,
        2
    );
    assert_eq!(read_single_seed("d", "https://a.example/?x=1,url").line, 1);
    assert!(read_seeds("e", b"").is_empty());
    assert!(read_seeds("f.jsonl", b"\n\n").is_empty());
}

#[test]
fn a_gzipped_file_is_read_like_its_content() {
    let csv = gzip(b"url,name\nhttps://a.example/,\n");
    for name in ["seeds.csv.gz", "seeds.gz", "seeds"] {
        assert_eq!(urls(&read_seeds(name, &csv)), [(2, "https://a.example/")]);
    }
    let mut two_members = gzip(b"https://a.example/\n");
    two_members.extend(gzip(b"https://b.example/\n"));
    assert_eq!(read_seeds("seeds.gz", &two_members).len(), 2);
}

#[test]
fn truncated_gzip_yields_its_lines_and_then_a_fault() {
    let lines: String = (0..20_000)
        .map(|n| format!("https://a.example/{}\n", n * 7_919))
        .collect();
    let mut content = gzip(lines.as_bytes());
    content.truncate(content.len() / 2);
    let seeds = read_seeds("seeds.gz", &content);
    assert!(seeds.len() > 1_000);
    let (last, good) = seeds.split_last().unwrap();
    assert!(good.iter().all(Result::is_ok));
    assert!(
        last.as_ref()
            .unwrap_err()
            .reason
            .contains("the rest was not read")
    );
}

#[test]
fn a_thousand_broken_lines_hold_up_none_of_the_good_ones() {
    let mut content = Vec::new();
    for number in 0..1_000 {
        let broken: &[u8] = match number % 5 {
            0 => b"ftp://a.example/",
            1 => b"not a url",
            2 => b"https://\xff\xfe/",
            3 => b"https://",
            _ => b"{\"url\": \"https://a.example/\"}",
        };
        content.extend_from_slice(broken);
        content.extend(format!("\nhttps://a.example/{number}\n").bytes());
    }
    let seeds = read_seeds("seeds.txt", &content);
    let expected_faults: Vec<u64> = (0..1_000).map(|number| 2 * number + 1).collect();
    assert_eq!(fault_lines(&seeds), expected_faults);
    let good = urls(&seeds);
    assert_eq!(good.len(), 1_000);
    assert!(
        good.iter()
            .enumerate()
            .all(|(number, (line, _))| *line == 2 * number as u64 + 2)
    );
}

#[test]
fn one_bad_url_of_a_record_is_reported_and_the_others_are_kept() {
    let line = br#"{"id": "1", "urls": ["https://a.example/", "mailto:x@y"], "want": ["n"]}"#;
    let seeds = read_seeds("seeds", line);
    assert_eq!(fault_lines(&seeds), [1]);
    assert_eq!(urls(&seeds), [(1, "https://a.example/")]);
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let mut content = b"https://a.example/\nhttps://b.example/".to_vec();
    content.resize(content.len() + 3 * MAX_LINE_BYTES, b'x');
    content.extend_from_slice(b"\nhttps://c.example/\n");
    let seeds = read_seeds("seeds", &content);
    assert_eq!(
        urls(&seeds),
        [(1, "https://a.example/"), (3, "https://c.example/")]
    );
    let fault = seeds[1].as_ref().unwrap_err();
    assert_eq!(fault.line, 2);
    assert!(fault.reason.contains("1048576 bytes"), "{}", fault.reason);
    assert!(fault.text.chars().count() <= SHOWN_CHARS + 1);
}

#[test]
fn faults_contain_no_control_characters() {
    let seeds = read_seeds("seeds", b"bad\x1b[31m\x07\0line\n");
    let text = &seeds[0].as_ref().unwrap_err().text;
    assert!(
        text.starts_with("bad") && !text.chars().any(char::is_control),
        "{text:?}"
    );
}

#[test]
fn unreadable_inputs_are_refused_before_anything_starts() {
    let missing = SeedReader::open(Path::new("/no/such/seeds.txt"), NOW_MS)
        .err()
        .unwrap();
    assert!(
        missing.starts_with("cannot read seeds from /no/such/seeds.txt: No such file"),
        "{missing}"
    );
    let folder = tempfile::tempdir().unwrap();
    assert!(
        SeedReader::open(folder.path(), NOW_MS)
            .err()
            .unwrap()
            .ends_with("is a folder")
    );
    assert!(refusal("s", b"\xff\xfe\0\0h\0\0\0").contains("UTF-32"));
    assert!(refusal("s.gz", &gzip(b"x")[..6]).contains("broken gzip"));
    assert!(refusal("s.json", b"[\n{\"url\": \"https://a.example/\"}]").contains("jq -c"));
    assert!(refusal("s.csv", b"").contains("no header"));
    let columns = refusal("s.csv", b"id,link\n1,https://a.example/");
    assert!(
        columns.ends_with(
            "rename the one with links (there are `id`, `link`), or export with `--sources`"
        ),
        "{columns}"
    );
    assert!(refusal("s.csv", b"url,a,a\n").contains("two columns are named `a`"));
    assert!(refusal("s.csv", b"url,,a\n").contains("column 2 has no name"));
    assert!(refusal("s.csv", b"url,\"a\n").contains("unclosed quote"));
}

#[test]
fn a_cell_of_invisible_characters_is_empty() {
    for blank in ["", " ", "\u{a0}", "\u{200b}", "\" \u{3000}\""] {
        let content = format!("id, url, name\n1, http://t.example/a,{blank}\n");
        let seed = read_single_seed("people.csv", &content);
        assert_eq!(seed.want, ["name"], "{blank:?}");
        assert_eq!(seed.urls, ["http://t.example/a"]);
        assert_eq!(seed.fields.unwrap()["name"], serde_json::Value::Null);
    }
}

#[test]
fn seeds_in_utf16_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |text: &str, is_big: bool| -> Vec<u8> {
        let units = text.encode_utf16();
        let order = |unit: u16| {
            if is_big {
                unit.to_be_bytes()
            } else {
                unit.to_le_bytes()
            }
        };
        units.flat_map(order).collect()
    };
    let list = "https://a.example/é\r\n# comment\r\nhttps://b.example/\r\n";
    let table = "id,url,name\n1,https://a.example/%C3%A9,\n2,https://b.example/,x\n";
    for mark in ["", "\u{feff}"] {
        for is_big in [false, true] {
            for text in [list, table] {
                let path = folder.path().join("seeds");
                std::fs::write(&path, bytes(&format!("{mark}{text}"), is_big)).unwrap();
                let seeds = SeedReader::open(&path, NOW_MS).unwrap();
                let urls: Vec<String> = seeds.flat_map(|seed| seed.unwrap().urls).collect();
                let expected = ["https://a.example/%C3%A9", "https://b.example/"];
                assert_eq!(urls, expected, "{text} {is_big}");
            }
        }
    }
}
