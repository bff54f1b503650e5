use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::formats::{detect_kind, table};

/// Builds an ODT package from the XML in one row of the table of cases.
fn package(row: &str) -> Vec<u8> {
    let row = row
        .replace("<p>", "<text:p>")
        .replace("<p/>", "<text:p/>")
        .replace("<p ", "<text:p ")
        .replace("</p>", "</text:p>");
    let mut pieces = row.split("@@");
    let body = pieces.next().unwrap();
    let [mut automatic, mut styles, mut master] = [""; 3];
    while let (Some(name), Some(inside)) = (pieces.next(), pieces.next()) {
        match name {
            "auto" => automatic = inside,
            "styles" => styles = inside,
            "master" => master = inside,
            other => panic!("{other}"),
        }
    }
    let content = format!(
        "<?xml version='1.0' encoding='UTF-8'?><office:document-content>\
         <office:automatic-styles>{automatic}</office:automatic-styles>\
         <office:body><office:text>{body}</office:text></office:body></office:document-content>"
    );
    let styles = format!(
        "<office:document-styles><office:styles>{styles}</office:styles><office:master-styles>\
         <style:master-page>{master}</style:master-page></office:master-styles></office:document-styles>"
    );
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in [
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        ("content.xml", &content),
        ("styles.xml", &styles),
    ] {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn text_is_what_a_reader_sees() {
    let rows = table::parse_rows(include_str!("../../../tests/data/odt.tsv"));
    assert!(rows.len() >= 100, "{}", rows.len());
    let mut wrong = Vec::new();
    for [row, expected] in &rows {
        let package = package(row);
        assert_eq!(detect_kind(&package), Some(Kind::Odt));
        let found = read(Kind::Odt, &package, 10_000).unwrap().text;
        if found != *expected {
            wrong.push(format!("{row}\n  {expected:?}\n  {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
