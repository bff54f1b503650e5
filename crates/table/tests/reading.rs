//! Tests reading text tables: format, columns, rows and faults.

use std::io::Write;

use crate::common::{lines, table};

/// A text, and the expected results of reading it.
struct Case {
    name: &'static str,
    text: Vec<u8>,
    format: &'static str,
    columns: &'static [&'static str],
    rows: &'static [&'static str],
    /// The line number of each fault, and a part of its reason.
    faults: &'static [(u64, &'static str)],
}

fn case(
    name: &'static str,
    text: impl AsRef<[u8]>,
    format: &'static str,
    columns: &'static [&'static str],
    rows: &'static [&'static str],
    faults: &'static [(u64, &'static str)],
) -> Case {
    Case {
        name,
        text: text.as_ref().to_vec(),
        format,
        columns,
        rows,
        faults,
    }
}

fn utf16(text: &str, is_big_endian: bool) -> Vec<u8> {
    let bytes = |unit: u16| match is_big_endian {
        true => unit.to_be_bytes(),
        false => unit.to_le_bytes(),
    };
    text.encode_utf16().flat_map(bytes).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn assert_cases_read(cases: Vec<Case>) {
    for case in cases {
        let written = table(case.name, &case.text);
        let mut text = String::from_utf8_lossy(&case.text).into_owned();
        text.truncate(text.floor_char_boundary(120));
        let reader =
            webfill_table::open(&written.path).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let columns: Vec<&str> = reader
            .columns()
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        assert_eq!(columns, case.columns, "{text:?}");
        let (rows, faults) = written.read().unwrap();
        assert_eq!(lines(&rows), case.rows, "{text:?}");
        let expected: Vec<u64> = case.faults.iter().map(|(line, _)| *line).collect();
        let found: Vec<u64> = faults.iter().map(|fault| fault.number).collect();
        assert_eq!(found, expected, "{text:?}: {faults:?}");
        for (fault, (_, reason)) in faults.iter().zip(case.faults) {
            assert!(fault.reason.contains(reason), "{text:?}: {fault:?}");
        }
        let mut reader = webfill_table::open(&written.path).unwrap();
        while reader.next_row().is_some() {}
        assert_eq!(reader.format().to_string(), case.format, "{text:?}");
    }
}

#[test]
fn the_dialect_is_found_from_the_content() {
    assert_cases_read(vec![
        case(
            "a.csv",
            "id,name\n1,x\n2,\n",
            "CSV, UTF-8",
            &["id", "name"],
            &["2: 1 · x", "3: 2 · ∅"],
            &[],
        ),
        case(
            "a.csv",
            "id,name\r\n1,x\r\n",
            "CSV, UTF-8",
            &["id", "name"],
            &["2: 1 · x"],
            &[],
        ),
        case(
            "a.csv",
            "id,name\r1,x\r2,y",
            "CSV, UTF-8",
            &["id", "name"],
            &["2: 1 · x", "3: 2 · y"],
            &[],
        ),
        case(
            "a.csv",
            "id;price\n1;1,5\n2;2,75\n",
            "CSV with semicolons, UTF-8",
            &["id", "price"],
            &["2: 1 · 1,5", "3: 2 · 2,75"],
            &[],
        ),
        case(
            "a.txt",
            "id|name\n1|x, y\n2|z\n",
            "CSV with pipes, UTF-8",
            &["id", "name"],
            &["2: 1 · x, y", "3: 2 · z"],
            &[],
        ),
        case(
            "a.tsv",
            "id\tname\n1\tx, y\n",
            "TSV, UTF-8",
            &["id", "name"],
            &["2: 1 · x, y"],
            &[],
        ),
        case(
            "a.tsv",
            "name\tq\n\"Big\" Joe\t1\nAl \"X\"\t2\n",
            "TSV, UTF-8",
            &["name", "q"],
            &["2: \"Big\" Joe · 1", "3: Al \"X\" · 2"],
            &[],
        ),
        case(
            "a.csv",
            "a,b\n\"x, \"\"y\"\"\",\"l1\nl2\"\nz,\n",
            "CSV, UTF-8",
            &["a", "b"],
            &["2: x, \"y\" · l1\nl2", "4: z · ∅"],
            &[],
        ),
        case(
            "a.csv",
            "a,b\n\"x \\\"y, z\\\" \",1\n\"q\\\\\",2\n",
            "CSV, backslash escapes, UTF-8",
            &["a", "b"],
            &["2: x \"y, z\"  · 1", "3: q\\ · 2"],
            &[],
        ),
        case(
            "a.csv",
            "a,b\n'x, y',1\n'it''s',2\n",
            "CSV, single quotes, UTF-8",
            &["a", "b"],
            &["2: x, y · 1", "3: it's · 2"],
            &[],
        ),
        case(
            "a.csv",
            "a,b\nit's,1\n'tis,2\n",
            "CSV, UTF-8",
            &["a", "b"],
            &["2: it's · 1", "3: 'tis · 2"],
            &[],
        ),
        case(
            "a.csv",
            "a, b\n1, \"x, y\"\n2, \"z\"\n",
            "CSV, UTF-8",
            &["a", "b"],
            &["2: 1 · x, y", "3: 2 · z"],
            &[],
        ),
        case(
            "a.csv",
            "sep=;\na;b\n1;x,y\n",
            "CSV with semicolons, UTF-8",
            &["a", "b"],
            &["3: 1 · x,y"],
            &[],
        ),
        case(
            "a.csv",
            "one\nx\ny\n",
            "CSV, UTF-8",
            &["one"],
            &["2: x", "3: y"],
            &[],
        ),
        case(
            "a.csv",
            "\n\nid,name\n\n1,x\n\n",
            "CSV, UTF-8",
            &["id", "name"],
            &["5: 1 · x"],
            &[],
        ),
        case(
            "a.csv",
            "1,http://a.example/1\n2,http://a.example/2\n",
            "CSV, no header, UTF-8",
            &["column1", "column2"],
            &["1: 1 · http://a.example/1", "2: 2 · http://a.example/2"],
            &[],
        ),
        case(
            "a.csv",
            "7,Emma,1815\n9,Dune,1965\n",
            "CSV, no header, UTF-8",
            &["column1", "column2", "column3"],
            &["1: 7 · Emma · 1815", "2: 9 · Dune · 1965"],
            &[],
        ),
        case(
            "a.csv",
            "name,2019,2020\nx,5,6\ny,7,8\n",
            "CSV, no header, UTF-8",
            &["column1", "column2", "column3"],
            &["1: name · 2019 · 2020", "2: x · 5 · 6", "3: y · 7 · 8"],
            &[],
        ),
    ]);
}

#[test]
fn the_encoding_is_found_from_the_content() {
    let text = "id,name\n1,Zoë €\n2,\n";
    let columns: &[&str] = &["id", "name"];
    let rows: &[&str] = &["2: 1 · Zoë €", "3: 2 · ∅"];
    let with_mark = |mark: &[u8], text: Vec<u8>| [mark, &text].concat();
    assert_cases_read(vec![
        case("a.csv", text, "CSV, UTF-8", columns, rows, &[]),
        case(
            "a.csv",
            format!("\u{feff}{text}"),
            "CSV, UTF-8",
            columns,
            rows,
            &[],
        ),
        case(
            "a.csv",
            with_mark(&[0xff, 0xfe], utf16(text, false)),
            "CSV, UTF-16",
            columns,
            rows,
            &[],
        ),
        case(
            "a.csv",
            with_mark(&[0xfe, 0xff], utf16(text, true)),
            "CSV, UTF-16",
            columns,
            rows,
            &[],
        ),
        case(
            "a.csv",
            utf16(text, false),
            "CSV, UTF-16",
            columns,
            rows,
            &[],
        ),
        case(
            "a.csv",
            utf16(text, true),
            "CSV, UTF-16",
            columns,
            rows,
            &[],
        ),
        case(
            "a.csv",
            b"id,name\n1,Zo\xeb \x80\n2,\n",
            "CSV, windows-1252",
            columns,
            rows,
            &[],
        ),
        case(
            "a.csv",
            encoding_rs::WINDOWS_1251
                .encode("id,name\n1,Книги и авторы\n2,\n")
                .0,
            "CSV, windows-1251",
            columns,
            &["2: 1 · Книги и авторы", "3: 2 · ∅"],
            &[],
        ),
        case("a.csv", gzip(text), "CSV, UTF-8, gzip", columns, rows, &[]),
        case(
            "a.csv.zst",
            zstd::encode_all(text.as_bytes(), 0).unwrap(),
            "CSV, UTF-8, zstd",
            columns,
            rows,
            &[],
        ),
    ]);
}

#[test]
fn an_encoding_that_becomes_clear_late_is_found_too() {
    let mut text = b"id,name\n".to_vec();
    for number in 0..200_000 {
        writeln!(text, "{number},abc").unwrap();
    }
    text.extend_from_slice(b"x,Zo\xeb\n");
    let written = table("a.csv", &text);
    let (rows, faults) = written.read().unwrap();
    assert_eq!(faults, []);
    assert_eq!(lines(&rows[200_000..]), ["200002: x · Zoë"]);
    assert!(written.understand().to_string().contains("windows-1252"));
}

#[test]
fn rows_that_cannot_be_used_are_faults_and_the_others_are_read() {
    let long = "x".repeat(1_100_000);
    let long_row = format!("a,b\n1,{long}\n2,y\n");
    let quoted_long_row = format!("a,b\n1,\"{long}\n{long}\"\n2,y\n");
    assert_cases_read(vec![
        case("a.csv", "a,b\n1\n2,y\n3,4,5\n6,z\n", "CSV, UTF-8", &["a", "b"], &["3: 2 · y", "5: 6 · z"], &[(2, "1 cell, but the table 2 columns"), (4, "3 cells")]),
        case("a.csv", "a,b\n\"1\"x,2\n3,\"4\"\n5,\"6,\"\n", "CSV, UTF-8", &["a", "b"], &["3: 3 · 4", "4: 5 · 6,"], &[(2, "closing quote")]),
        case("a.csv", "a,b\n1,\"x\n2,y\n3,z\n4,\"q,\"\n", "CSV, UTF-8", &["a", "b"], &["3: 2 · y", "4: 3 · z", "5: 4 · q,"], &[(2, "not closed")]),
        case("a.csv", "a,b\n1,\"x,\"\n2,y\n3,\"z\n", "CSV, UTF-8", &["a", "b"], &["2: 1 · x,", "3: 2 · y"], &[(4, "not closed")]),
        case("a.csv", "a,b\n1,ü\n2,\u{fc}\n3,ö\n", "CSV, UTF-8", &["a", "b"], &["2: 1 · ü", "3: 2 · ü", "4: 3 · ö"], &[]),
        case("a.csv", [&b"a,b\n1,\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\n"[..], b"2,\xfc\n3,y\n"].concat(), "CSV, UTF-8", &["a", "b"], &["2: 1 · üüüüüüüüüüü", "4: 3 · y"], &[(3, "not valid")]),
        case("a.csv", "a,b\n1,\0\n2,y\n", "CSV, UTF-8", &["a", "b"], &["3: 2 · y"], &[(2, "NUL")]),
        case("a.csv", &long_row, "CSV, UTF-8", &["a", "b"], &["3: 2 · y"], &[(2, "`b` is longer than 1 MiB")]),
        case("a.csv", &quoted_long_row, "CSV, UTF-8", &["a", "b"], &["4: 2 · y"], &[(2, "`b` is longer than 1 MiB")]),
        case("a.csv", [utf16("a,b\n1,x\n2,", false), vec![0, 0xd8], utf16("\n3,z\n", false)].concat(), "CSV, UTF-16", &["a", "b"], &["2: 1 · x", "4: 3 · z"], &[(3, "not valid")]),
    ]);
}

#[test]
fn json_is_read_in_both_layouts() {
    let columns: &[&str] = &["id", "name", "n", "tags", "o"];
    assert_cases_read(vec![
        case(
            "a.jsonl",
            "{\"id\": 1, \"name\": \"x\"}\n\n{\"id\":12345678901234567890,\"n\":1.50,\"name\":null}\r\n{\"tags\":[\"a\",2],\"o\":{\"p\":1},\"id\":true}",
            "JSON lines, UTF-8",
            columns,
            &[
                "1: #1 · x · ∅ · ∅ · ∅",
                "3: #12345678901234567890 · ∅ · #1.50 · ∅ · ∅",
                "4: #true · ∅ · ∅ · [a #2] · {\"p\":1}",
            ],
            &[],
        ),
        case(
            "a.jsonl",
            "{\"id\":1}\n{\"id\":}\n[1]\n{\"id\":1,\"id\":2}\n{\"id\":2}\nnonsense\n",
            "JSON lines, UTF-8",
            &["id"],
            &["1: #1", "5: #2"],
            &[
                (2, "invalid JSON"),
                (3, "no object"),
                (4, "two members"),
                (6, "invalid JSON"),
            ],
        ),
        case(
            "a.json",
            " [ {\"id\": 1, \"n\": \"],{\"},\n  {\"id\": 2}, 7, {\"id\": \"x\\\"\"} ] \n",
            "JSON array, UTF-8",
            &["id", "n"],
            &["1: #1 · ],{", "2: #2 · ∅", "4: x\" · ∅"],
            &[(3, "no object")],
        ),
        case(
            "a.json",
            "[{\"id\":1},{\"id\":2",
            "JSON array, UTF-8",
            &["id"],
            &["1: #1"],
            &[(2, "invalid JSON"), (3, "cut off")],
        ),
        case(
            "a.json",
            gzip("[{\"id\":\"ü\"}]"),
            "JSON array, UTF-8, gzip",
            &["id"],
            &["1: ü"],
            &[],
        ),
        case(
            "a.json",
            utf16("[{\"id\":\"ü\"}]", true),
            "JSON array, UTF-16",
            &["id"],
            &["1: ü"],
            &[],
        ),
    ]);
}

#[test]
fn lines_above_the_table_are_not_rows() {
    assert_cases_read(vec![
        case(
            "a.csv",
            "Books 2024\nExported on 3 May\n\nid,name,year\n1,x,1990\n2,y,1991\n3,z,1992\n",
            "CSV, 2 lines above the table, UTF-8",
            &["id", "name", "year"],
            &[
                "5: 1 \u{b7} x \u{b7} 1990",
                "6: 2 \u{b7} y \u{b7} 1991",
                "7: 3 \u{b7} z \u{b7} 1992",
            ],
            &[],
        ),
        case(
            "a.csv",
            "List of books;;\n;;\nid;name;year\n1;x;1990\n2;y;1991\n3;z;1992\n",
            "CSV with semicolons, 2 lines above the table, UTF-8",
            &["id", "name", "year"],
            &[
                "4: 1 \u{b7} x \u{b7} 1990",
                "5: 2 \u{b7} y \u{b7} 1991",
                "6: 3 \u{b7} z \u{b7} 1992",
            ],
            &[],
        ),
    ]);
}

#[test]
fn tables_without_rows_and_odd_headers_are_tables() {
    assert_cases_read(vec![
        case(
            "a.csv",
            "id,name\n",
            "CSV, UTF-8",
            &["id", "name"],
            &[],
            &[],
        ),
        case("a.csv", "id,name", "CSV, UTF-8", &["id", "name"], &[], &[]),
        case(
            "a.csv",
            "id,,name,\n1,2,x,3\n",
            "CSV, UTF-8",
            &["id", "", "name", ""],
            &["2: 1 · 2 · x · 3"],
            &[],
        ),
        case(
            "a.csv",
            "a,a\n1,x\n",
            "CSV, UTF-8",
            &["a", "a"],
            &["2: 1 · x"],
            &[],
        ),
        case(
            "a.csv",
            "\"a\nb\",c\n1,x\n",
            "CSV, UTF-8",
            &["a\nb", "c"],
            &["3: 1 · x"],
            &[],
        ),
    ]);
}

#[test]
fn files_that_are_no_tables_are_refused_by_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    let all_bytes: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    for (name, content, reason) in [
        (
            "a.csv",
            &b"<html><body><table><tr><td>1</table>"[..],
            "an HTML page",
        ),
        ("b.csv", b"\n <!DOCTYPE html>\n<p>x", "an HTML page"),
        ("c.csv", b"%PDF-1.4\nx", "a PDF"),
        ("d.csv", &all_bytes, "not text"),
        (
            "e.json",
            br#"[["1", "x"], ["2", "y"]]"#,
            "no array of objects",
        ),
        (
            "f.json",
            br#"{"n": 2, "data": [{"id": 1}, {"id": 2}]}"#,
            r#"jq -c '."data"[]'"#,
        ),
        (
            "g.json",
            b"{\n \"rows\": [\n {\"id\": 1}\n]\n}\n",
            "`rows` holds the rows",
        ),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let refusal = webfill_table::open(&path).err().unwrap().to_string();
        assert!(refusal.contains(reason), "{name}: {refusal}");
    }
    let path = folder.path().join("one.jsonl");
    let row = r#"{"id": 1, "url": "https://a.example/", "offers": [{"price": 1}]}"#;
    std::fs::write(&path, row).unwrap();
    assert!(webfill_table::open(&path).is_ok());
}
