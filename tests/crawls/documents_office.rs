//! Tests office documents written by other programs. Python libraries write the cells of `tests/office/cells.json` into
//! files of each kind.

use std::process::Command;

use serde_json::{Value, json};
use webfill_test_needs::needs;
use webfill_tests::office::{pdf_of, pdf_stream, xlsx};
use webfill_tests::run::Run;
use webfill_tests::workplace::Workplace;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The document of this kind that `tests/office/tables.py` has written.
fn write_document(kind: &str) -> Vec<u8> {
    let python = format!("{REPOSITORY}/.cache/office-tools/venv/bin/python");
    let script = format!("{REPOSITORY}/tests/office/tables.py");
    let written = Command::new(python).args([&script, kind]).output();
    let written = written.expect("Python");
    assert!(written.status.success(), "{written:?}");
    written.stdout
}

/// The lines that are read from the document of this kind.
fn lines_of(kind: &str) -> Vec<String> {
    let work = Workplace::new();
    let name = format!("document.{kind}");
    work.write(&name, write_document(kind));
    lines_in(&work, &name)
}

fn lines_in(work: &Workplace, name: &str) -> Vec<String> {
    serde_json::from_value(run_mapping_test(work, name)["fields"]["lines"].clone()).expect("lines")
}

/// The output of `webfill mapping test` on this document, with a mapping that reads all lines.
fn run_mapping_test(work: &Workplace, name: &str) -> Value {
    let lines = json!({"type": "regex", "parameters": {"pattern": "(?m)^.+$"}});
    let text = json!({"name": "lines", "multiple": true, "processors": [lines]});
    let everywhere = json!({"type": "prefix", "pattern": "https://office.example/"});
    let mapping = json!({"name": "all", "url_patterns": [everywhere], "fields": [text]});
    work.write_json("mapping.json", &mapping);
    let files = [work.path("mapping.json"), work.path(name)];
    let run = Run::new(["mapping", "test"]).args(files);
    let ended = run.args(["--url", "https://office.example/"]).finish();
    serde_json::from_str(&ended.expect_code(0).stdout).expect("JSON")
}

#[needs(office_tools)]
#[test]
fn cells_are_read_as_they_are_stored() {
    let cells = std::fs::read(format!("{REPOSITORY}/tests/office/cells.json")).unwrap();
    let cells: Vec<Value> = serde_json::from_slice(&cells).unwrap();
    assert!(cells.len() > 100, "{}", cells.len());
    for kind in ["xlsx", "xls", "ods"] {
        let lines = lines_of(kind);
        for (index, cell) in cells.iter().enumerate() {
            let text = cell["text"].as_str().unwrap();
            let number = index + 1;
            assert_eq!(
                lines[number],
                format!("cell {number}\t\t{text}"),
                "{kind}: {cell}"
            );
        }
        let rest = [&lines[..1], &lines[cells.len() + 1..]].concat();
        let rest: Vec<&str> = rest.iter().map(|line| line.trim()).collect();
        let expected = ["Cells", "Second", "away from the corner"];
        assert_eq!(rest, expected, "{kind}");
    }
}

#[needs(office_tools)]
#[test]
fn a_letter_is_read_with_headers_footers_and_notes() {
    let expected = [
        "Page header",
        "Call 555-1234, 1-24 hours",
        "Cooperation",
        "one tab",
        "next line",
        "name\t\tprice",
        "x\tmiddle",
        "over two\t\tlast",
        "after the table",
        "Page footer",
    ];
    assert_eq!(lines_of("docx"), expected);
}

/// Excel itself stores no numbers with so many digits, but exporters that write the XML themselves do.
#[test]
fn an_integer_of_a_sheet_keeps_its_digits() {
    let cells = "<row r='1'><c r='A1'><v>9007199254740993</v></c><c r='C1'><v>-12345678901234567890</v></c></row>\
        <row r='2'><c r='A2'><v>12345678901234567.89</v></c><c r='B2'><v>-0</v></c></row>\
        <row r='3'><c r='A3'><v>0.10000000000000001</v></c><c r='B3'><v>1E+15</v></c></row>";
    let work = Workplace::new();
    work.write("ids.xlsx", xlsx("A1:C3", cells));
    assert_eq!(
        lines_in(&work, "ids.xlsx"),
        [
            "Prices",
            "9007199254740993\t\t-12345678901234567890",
            "12345678901234567.89\t0",
            "0.1\t1000000000000000",
        ]
    );
}

/// The encrypted files are written by `tests/office/encrypted.py`.
#[test]
fn a_pdf_is_decrypted_with_the_empty_password_and_no_other() {
    for way in ["rc4_40", "rc4_128", "aes_128", "aes_256", "aes_256_r5"] {
        let file = |password: &str| {
            let name = format!("{REPOSITORY}/tests/office/encrypted/{way}_{password}.pdf");
            std::fs::read(name).expect("a PDF")
        };
        let work = Workplace::new();
        work.write("open.pdf", file("empty"));
        assert_eq!(
            lines_in(&work, "open.pdf"),
            ["Contract number 4711"],
            "{way}"
        );
        work.write("locked.pdf", file("secret"));
        let files = [work.path("mapping.json"), work.path("locked.pdf")];
        let run = Run::new(["mapping", "test"]).args(files);
        let ended = run.args(["--url", "https://office.example/"]).finish();
        let output = format!("{}{}", ended.stdout, ended.stderr);
        assert!(
            output.contains("it is encrypted: it asks for a password"),
            "{way}: {output}"
        );
    }
}

/// If a font does not name its glyphs, the characters of a text are unknown. The reader must not guess them from their
/// codes.
#[test]
fn no_character_of_a_pdf_is_made_up() {
    let table = b"1 begincodespacerange <0000> <FFFF> endcodespacerange\n\
        2 beginbfchar <0014> <0031> <0017> <0034> endbfchar";
    let identity = |table: &str| {
        format!(
            "<</Type/Font/Subtype/Type0/BaseFont/ABCDEF+A/Encoding/Identity-H/DescendantFonts[6 0 R]{table}>>"
        )
    };
    let descendant = "<</Type/Font/Subtype/CIDFontType2/BaseFont/ABCDEF+A/FontDescriptor 7 0 R/DW 500\
        /CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>>>";
    let descriptor = "<</Type/FontDescriptor/FontName/ABCDEF+A/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0\
        /Ascent 800/Descent -200/CapHeight 700/StemV 80>>";
    let named = |names: &str| {
        format!(
            "<</Type/Font/Subtype/Type1/BaseFont/ABCDEF+A/FirstChar 65/LastChar 68/Widths[500 500 500 500]\
             /FontDescriptor 7 0 R/Encoding<</Type/Encoding/Differences[65{names}]>>>>"
        )
    };
    for (font, shown, expected) in [
        (identity(""), "<0014001500160017>", ""),
        (identity("/ToUnicode 8 0 R"), "<001400150017>", "1\u{fffd}4"),
        (named("/uni0050/u0072/e.alt/f_i"), "(ABCD)", "Prefi"),
        (named("/P/g7/r/C0044"), "(ABCD)", "P\u{fffd}rD"),
        (named("/g1/g2/g3/g4"), "(ABCD)", ""),
    ] {
        let content = format!("BT /F1 12 Tf 72 720 Td {shown} Tj ET");
        let objects = [
            "<</Type/Catalog/Pages 2 0 R>>".into(),
            "<</Type/Pages/Kids[3 0 R]/Count 1>>".into(),
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>".into(),
            pdf_stream("", content.as_bytes()),
            font.clone().into_bytes(),
            descendant.into(),
            descriptor.into(),
            pdf_stream("", table),
            "<<>>".into(),
        ];
        let work = Workplace::new();
        work.write("fonts.pdf", pdf_of(&objects));
        let lines = run_mapping_test(&work, "fonts.pdf");
        let text = lines["fields"]["lines"][0].as_str().unwrap_or_default();
        assert_eq!(text, expected, "{font}");
    }
}
