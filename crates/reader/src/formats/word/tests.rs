use std::io::{Cursor, Write};

use encoding_rs::Encoding;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;
use crate::formats::{detect_kind, table};
use crate::kind::Kind;

/// A way to write a DOCX package. All ways yield the same document.
struct PackageStyle {
    name: &'static str,
    body: &'static str,
    is_strict: bool,
    /// The prefix of part names in references from other parts, such as `/word/`.
    base: &'static str,
    has_backslashes: bool,
    encoding: &'static str,
}

const USUAL: PackageStyle = PackageStyle {
    name: "usual",
    body: "word/document.xml",
    is_strict: false,
    base: "",
    has_backslashes: false,
    encoding: "utf-8",
};

const WAYS: [PackageStyle; 8] = [
    USUAL,
    PackageStyle {
        name: "strict",
        is_strict: true,
        ..USUAL
    },
    PackageStyle {
        name: "another body",
        body: "content/main.xml",
        ..USUAL
    },
    PackageStyle {
        name: "a body in no folder",
        body: "document.xml",
        ..USUAL
    },
    PackageStyle {
        name: "absolute names",
        base: "/word/../word/",
        ..USUAL
    },
    PackageStyle {
        name: "capitals and backslashes",
        body: "WORD/Document.xml",
        has_backslashes: true,
        ..USUAL
    },
    PackageStyle {
        name: "UTF-16",
        encoding: "utf-16le",
        ..USUAL
    },
    PackageStyle {
        name: "UTF-16, the other order",
        encoding: "utf-16be",
        ..USUAL
    },
];

impl PackageStyle {
    fn encode(&self, xml: &str) -> Vec<u8> {
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"{}\"?>{xml}",
            self.encoding
        );
        let units = |bytes: fn(u16) -> [u8; 2]| {
            "\u{feff}"
                .encode_utf16()
                .chain(text.encode_utf16())
                .flat_map(bytes)
                .collect()
        };
        match self.encoding {
            "utf-16le" => units(u16::to_le_bytes),
            "utf-16be" => units(u16::to_be_bytes),
            label => {
                let encoding = Encoding::for_label(label.as_bytes()).unwrap();
                encoding.encode(&text).0.into_owned()
            }
        }
    }

    /// Builds a package from the XML in one row of the table of cases: a body, and maybe other parts.
    fn package(&self, row: &str) -> Vec<u8> {
        let row = row
            .replace('{', "<w:r><w:t xml:space=\"preserve\">")
            .replace('}', "</w:t></w:r>")
            .replace("<p>", "<w:p>")
            .replace("</p>", "</w:p>");
        let types = match self.is_strict {
            true => "http://purl.oclc.org/ooxml/officeDocument/relationships",
            false => "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
        };
        let relation = |kind: &str, target: &str| {
            format!("<Relationship Id='r' Type='{types}/{kind}' Target='{target}'/>")
        };
        let relations = |inside: &str| format!("<Relationships>{inside}</Relationships>");
        let mut pieces = row.split("@@");
        let body = pieces.next().unwrap();
        let (folder, file) = self.body.rsplit_once('/').unwrap_or(("", self.body));
        let folder = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let mut named = relation("webSettings", "webSettings.xml");
        let mut parts = Vec::new();
        while let (Some(name), Some(inside)) = (pieces.next(), pieces.next()) {
            let kind = name.trim_end_matches(|last: char| last.is_ascii_digit());
            let root = match kind {
                "header" => "hdr",
                "footer" => "ftr",
                other => other,
            };
            named += &relation(kind, &format!("{}{name}.xml", self.base));
            let xml = format!("<w:{root} xmlns:w='w'>{inside}</w:{root}>");
            parts.push((format!("{folder}{name}.xml"), self.encode(&xml)));
        }
        let document = format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>");
        parts.push((
            "_rels/.rels".to_owned(),
            self.encode(&relations(&relation("officeDocument", self.body))),
        ));
        parts.push((
            format!("{folder}_rels/{file}.rels"),
            self.encode(&relations(&named)),
        ));
        parts.push((self.body.to_owned(), self.encode(&document)));
        parts.push((
            "[Content_Types].xml".to_owned(),
            b"<Types><Override ContentType='application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml'/></Types>".to_vec(),
        ));
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in parts {
            let name = match self.has_backslashes {
                true => name.replace('/', "\\"),
                false => name,
            };
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(&bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }
}

#[test]
fn text_is_what_a_reader_sees() {
    let rows = table::parse_rows(include_str!("../../../tests/data/docx.tsv"));
    assert!(rows.len() >= 100, "{}", rows.len());
    let mut wrong = Vec::new();
    for [row, expected] in &rows {
        for way in &WAYS {
            let package = way.package(row);
            assert_eq!(detect_kind(&package), Some(Kind::Docx), "{}", way.name);
            let found = read(&package, 10_000).unwrap().text;
            if found != *expected {
                wrong.push(format!("{}: {row}\n  {expected:?}\n  {found:?}", way.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_invalid_byte_does_not_stop_the_text_from_being_read() {
    let package = PackageStyle {
        encoding: "windows-1252",
        ..USUAL
    };
    let text = read(&package.package("<p>{5 €}</p>"), 100).unwrap().text;
    assert_eq!(text, "5 €");
    let mut part = USUAL.encode("<p>{a}</p>");
    part.push(0xff);
    let mut text = String::new();
    xml::for_each_token(&*part, |token| {
        if let Token::Text(part) = token {
            text.push_str(part);
        }
        Ok(())
    })
    .unwrap();
    assert!(text.ends_with('\u{fffd}'), "{text:?}");
}
