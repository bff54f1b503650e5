use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::*;
use crate::archive::exchange::Truncated;

fn exchange(url: &str, payload: &[u8]) -> Exchange {
    Exchange {
        url: url.into(),
        started_ms: 1_795_412_440_007,
        protocol: "http/1.1",
        peer: Some([127, 0, 0, 1].into()),
        status: 200,
        request_head: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        response_head: b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        payload: payload.to_vec(),
        truncated: None,
    }
}

/// Returns the text of each file in the folder, in the order of their names.
fn read_texts(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let text = |path: &PathBuf| {
        let mut text = String::new();
        let file = std::fs::File::open(path).unwrap();
        MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
        text
    };
    paths.iter().map(text).collect()
}

/// Writes exchanges, each with a sync of its own, and returns the texts of the files.
fn write_all(most_bytes: u64, exchanges: Vec<Exchange>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(
        folder.path().into(),
        most_bytes,
        "software: test\r\n".into(),
    );
    for exchange in exchanges {
        writer.write(exchange).unwrap();
        writer.sync().unwrap();
    }
    writer.finish().unwrap();
    read_texts(folder.path())
}

/// The values of a field, in the order of the records.
fn field_values<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let fields = text.lines().filter_map(|line| line.split_once(": "));
    let named = fields.filter(|(field, _)| *field == name);
    named.map(|(_, value)| value).collect()
}

#[test]
fn an_exchange_is_a_response_and_a_request_that_belong_together() {
    let files = write_all(1 << 20, vec![exchange("http://a.org/", b"body")]);
    let [text] = &files[..] else {
        panic!("{files:?}")
    };
    let kinds = ["warcinfo", "response", "request"];
    assert_eq!(field_values(text, "WARC-Type"), kinds);
    let ids = field_values(text, "WARC-Record-ID");
    assert_eq!(field_values(text, "WARC-Concurrent-To"), [ids[1]]);
    assert_eq!(field_values(text, "WARC-Warcinfo-ID"), [ids[0], ids[0]]);
    assert_eq!(field_values(text, "WARC-IP-Address"), ["127.0.0.1"; 2]);
    assert_eq!(field_values(text, "WARC-Payload-Digest").len(), 1);
    assert!(
        text.contains("HTTP/1.1 200 OK\r\n\r\nbody\r\n\r\n"),
        "{text}"
    );
}

#[test]
fn the_same_payload_is_kept_once() {
    let mut cut = exchange("http://c.org/", b"body");
    cut.truncated = Some(Truncated::Length);
    let exchanges = vec![
        exchange("http://a.org/", b"body"),
        exchange("http://b.org/", b"body"),
        cut,
        exchange("http://d.org/", b""),
        exchange("http://e.org/", b""),
    ];
    let text = &write_all(1 << 20, exchanges)[0];
    let kinds: Vec<_> = field_values(text, "WARC-Type")
        .into_iter()
        .filter(|kind| *kind != "request")
        .collect();
    let expected = [
        "warcinfo", "response", "revisit", "response", "response", "response",
    ];
    assert_eq!(kinds, expected, "what is cut or empty is no revisit");
    assert_eq!(field_values(text, "WARC-Profile"), [SAME_PAYLOAD]);
    assert_eq!(
        field_values(text, "WARC-Refers-To"),
        [field_values(text, "WARC-Record-ID")[1]]
    );
    assert_eq!(
        field_values(text, "WARC-Refers-To-Target-URI"),
        ["http://a.org/"]
    );
    assert_eq!(
        field_values(text, "WARC-Refers-To-Date"),
        ["2026-11-23T05:40:40.007Z"]
    );
    assert_eq!(field_values(text, "WARC-Truncated"), ["length"]);
}

#[test]
fn an_unmodified_page_refers_to_its_earlier_record() {
    let not_modified = |url: &str| Exchange {
        status: 304,
        ..exchange(url, b"")
    };
    let exchanges = vec![
        exchange("http://a.org/", b"body"),
        not_modified("http://a.org/"),
        not_modified("http://unknown.org/"),
    ];
    let text = &write_all(1 << 20, exchanges)[0];
    assert_eq!(field_values(text, "WARC-Profile"), [NOT_MODIFIED; 2]);
    let digests = field_values(text, "WARC-Payload-Digest");
    assert_eq!(digests.len(), 2, "that of the unknown page is not known");
    assert_eq!(digests[0], digests[1]);
    assert_eq!(
        field_values(text, "WARC-Refers-To-Target-URI"),
        ["http://a.org/"]
    );
}

#[test]
fn a_file_of_full_size_is_followed_by_another() {
    let exchanges = (0..3_u8).map(|number| exchange("http://a.org/", &[b'a' + number; 10]));
    let texts = write_all(1, exchanges.collect());
    assert_eq!(texts.len(), 3);
    for text in texts {
        assert_eq!(
            field_values(&text, "WARC-Type"),
            ["warcinfo", "response", "request"]
        );
    }
}
