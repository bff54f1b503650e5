//! Tests with files that are not tables, that are cut off, or that would cost much time and memory.

use std::io::Write;

use crate::common::{lines, table};

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn files_that_are_not_tables_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        webfill_table::open(folder.path())
            .err()
            .unwrap()
            .to_string()
            .contains("folder")
    );
    let cases: [(&[u8], &str); 5] = [
        (b"", "empty"),
        (b"\x00\x01\x02\x03\x00\x00\x00\x04\x00\x05\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "not text"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "UTF-32"),
        (b"\x1f\x8b\x08\x00broken", ""),
        (b"[]", "no array of objects"),
    ];
    for (text, reason) in cases {
        let written = table("a.csv", text);
        let error = webfill_table::open(&written.path)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(reason), "{text:?}: {error}");
    }
}

#[test]
fn a_quote_that_is_never_closed_costs_neither_time_nor_memory_nor_rows() {
    let mut text = String::from("a,b\n");
    for number in 0..300_000 {
        let (open, close) = if number % 3 == 0 {
            ("\"", "")
        } else {
            ("\"x, ", "\"")
        };
        text.push_str(&format!(
            "{number},{open}value of some length {number}{close}\n"
        ));
    }
    let started = std::time::Instant::now();
    let (rows, faults) = table("a.csv", &text).read().unwrap();
    assert_eq!((rows.len(), faults.len()), (200_000, 100_000));
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_million_columns_are_read() {
    let names: Vec<String> = (0..1_000_000).map(|number| format!("c{number}")).collect();
    let text = format!("{}\n{}\n", names.join(","), ",".repeat(999_999));
    let written = table("a.csv", &text);
    let (rows, faults) = written.read().unwrap();
    assert_eq!((rows.len(), faults.len()), (1, 0));
    assert_eq!(rows[0].cells.len(), 1_000_000);
    assert!(written.understand().to_string().len() < 2_000);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_one_fault() {
    let mut text = b"a,b\n1,x\n".to_vec();
    text.resize(100 << 20, b'y');
    text.extend_from_slice(b"\n2,z\n");
    let (rows, faults) = table("a.csv", &text).read().unwrap();
    assert_eq!(lines(&rows), ["2: 1 · x", "4: 2 · z"]);
    assert_eq!(faults.len(), 1);
}

#[test]
fn a_truncated_file_ends_in_a_fault_that_names_the_reason() {
    let whole = gzip(&"id,name\n1,x\n".repeat(100_000));
    let written = table("a.csv.gz", &whole[..whole.len() / 2]);
    if let Ok((_, faults)) = written.read() {
        assert!(faults.last().unwrap().is_end);
    }
}
