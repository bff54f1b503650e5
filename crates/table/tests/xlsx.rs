//! Tests workbooks: reading a sheet, and keeping the rest of the file.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::Path;

use crate::common::{Table, lines, read, table};
use webfill_table::{ColumnChoices, Sample, WrittenTable};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

const SHEET: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><dimension ref="A1:G7"/><cols><col min="1" max="1" width="20"/></cols><sheetData>
<row r="1" ht="30"><c r="A1" s="2" t="s"><v>5</v></c></row>
<row r="3"><c r="A3" t="s"><v>0</v></c><c r="B3" t="s"><v>1</v></c><c r="C3" t="s"><v>2</v></c><c r="D3" t="s"><v>3</v></c><c r="E3" t="s"><v>4</v></c><c r="F3" t="inlineStr"><is><t>sum</t></is></c></row>
<row r="4" spans="1:6"><c r="A4"><v>1</v></c><c r="B4" t="s"><v>6</v></c><c r="C4"><v>300</v></c><c r="D4" s="1"><v>45292</v></c><c r="E4" t="b"><v>1</v></c><c r="F4" s="2"><f>C4*2</f><v>600</v></c></row>
<row r="5"><c r="A5"><v>2</v></c><c r="B5" s="2"/><c r="F5" t="str"><f>IF(C5&gt;1,"x","")</f><v></v></c></row>
<row r="6"/>
<row r="7"><c r="A7"><v>3</v></c><c r="B7" t="s"><v>6</v></c><c r="C7" t="e"><v>#N/A</v></c><c r="D7" s="1"><v>45293.5</v></c></row>
</sheetData><mergeCells count="1"><mergeCell ref="A1:F1"/></mergeCells><pageMargins left="0.7" right="0.7"/></worksheet>"#;

fn parts() -> BTreeMap<&'static str, String> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006/relationships";
    let relation = |id: &str, kind: &str, target: &str| {
        format!(r#"<Relationship Id="{id}" Type="{relations}/{kind}" Target="{target}"/>"#)
    };
    let texts = [
        "id",
        "title",
        "pages",
        "born",
        "sold",
        "Books of 2024",
        "Emma &amp; co",
    ];
    let texts: String = texts
        .iter()
        .map(|text| format!("<si><t>{text}</t></si>"))
        .collect();
    BTreeMap::from([
        ("[Content_Types].xml", r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>"#.into()),
        ("_rels/.rels", format!(r#"<Relationships xmlns="{package}">{}</Relationships>"#, relation("rId1", "officeDocument", "xl/workbook.xml"))),
        ("xl/_rels/workbook.xml.rels", format!(
            r#"<Relationships xmlns="{package}">{}{}{}{}</Relationships>"#,
            relation("rId1", "worksheet", "worksheets/sheet1.xml"),
            relation("rId2", "worksheet", "worksheets/sheet2.xml"),
            relation("rId3", "sharedStrings", "sharedStrings.xml"),
            relation("rId4", "styles", "styles.xml"),
        )),
        ("xl/workbook.xml", format!(r#"<workbook xmlns="{main}" xmlns:r="{relations}"><sheets><sheet name="Books" sheetId="1" r:id="rId1"/><sheet name="Other" sheetId="2" r:id="rId2"/></sheets></workbook>"#)),
        ("xl/styles.xml", format!(r#"<styleSheet xmlns="{main}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/><xf numFmtId="0"/></cellXfs></styleSheet>"#)),
        ("xl/sharedStrings.xml", format!(r#"<sst xmlns="{main}" count="7" uniqueCount="7">{texts}</sst>"#)),
        ("xl/worksheets/sheet1.xml", SHEET.into()),
        ("xl/worksheets/sheet2.xml", format!(r#"<worksheet xmlns="{main}"><sheetData><row><c t="inlineStr"><is><t>k</t></is></c><c t="inlineStr"><is><t>v</t></is></c></row><row><c><v>7</v></c></row><row><c><v>8</v></c><c><v>1.5</v></c></row></sheetData></worksheet>"#)),
        ("xl/media/image1.png", "not touched".into()),
    ])
}

fn workbook() -> Table {
    workbook_of(parts())
}

fn workbook_of(parts: BTreeMap<&'static str, String>) -> Table {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    table("a.xlsx", zip.finish().unwrap().into_inner())
}

fn parts_of(path: &Path) -> BTreeMap<String, String> {
    let mut zip = ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut parts = BTreeMap::new();
    for number in 0..zip.len() {
        let mut part = zip.by_index(number).unwrap();
        let mut text = String::new();
        part.read_to_string(&mut text).unwrap();
        parts.insert(part.name().unwrap().to_string(), text);
    }
    parts
}

fn fill(input: &Table, sheet: Option<&str>, values: &[(u64, &str, &str)]) -> WrittenTable {
    let reader = webfill_table::open_sheet(&input.path, sheet).unwrap();
    let sample = Sample::from_reader(reader).unwrap();
    let understanding = webfill_table::infer_structure(&sample, &ColumnChoices::default()).unwrap();
    let mut fill = |row: u64, column: usize| {
        let name = &understanding.columns[column].name;
        let found = values
            .iter()
            .find(|(of_row, of, _)| *of_row == row && of == name);
        found.map(|(_, _, value)| (*value).to_owned())
    };
    webfill_table::write_filled_table(&input.path, &input.output(), &understanding, &mut fill)
        .unwrap()
}

const ROWS: [&str; 3] = [
    "4: #1 · Emma & co · #300 · @2024-01-01 · #true · #600",
    "5: #2 · ∅ · ∅ · ∅ · ∅ · ∅",
    "7: #3 · Emma & co · #N/A · @2024-01-02T12:00:00 · ∅ · ∅",
];

#[test]
fn the_first_sheet_is_read_below_its_title() {
    let input = workbook();
    let (rows, faults) = input.read().unwrap();
    assert_eq!(lines(&rows), ROWS);
    assert_eq!(faults, []);
    let said = input.understand().to_string();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[0], "a.xlsx: XLSX, sheet `Books`, 3 rows");
    assert_eq!(
        said[3],
        "fields: title (text, 1 gap), pages (integer, 2 gaps, counting `#N/A`), born (time, 1 gap), \
         sold (true or false, 2 gaps), sum (integer, 2 gaps)"
    );
}

#[test]
fn only_the_cells_that_get_a_value_are_changed() {
    let input = workbook();
    let values = &[
        (5, "title", "a <b> & \"c\" "),
        (5, "pages", "250"),
        (5, "born", "2024-02-29"),
        (5, "sold", "false"),
        (7, "pages", "12"),
        (7, "sold", "true"),
    ];
    let written = fill(&input, None, values);
    assert_eq!(
        (written.filled_count, written.refused_count),
        (6, 0),
        "{written:?}"
    );
    let mut expected = parts();
    let sheet = SHEET
        .replace(
            r#"<c r="B5" s="2"/><c r="F5""#,
            r#"<c r="B5" s="2" t="inlineStr"><is><t xml:space="preserve">a &lt;b&gt; &amp; &quot;c&quot; </t></is></c><c r="C5"><v>250</v></c><c r="D5" s="1"><v>45351</v></c><c r="E5" t="b"><v>0</v></c><c r="F5""#,
        )
        .replace(r#"<c r="C7" t="e"><v>#N/A</v></c>"#, r#"<c r="C7"><v>12</v></c>"#)
        .replace(r#"<v>45293.5</v></c></row>"#, r#"<v>45293.5</v></c><c r="E7" t="b"><v>1</v></c></row>"#);
    expected.insert("xl/worksheets/sheet1.xml", sheet);
    let found = parts_of(&input.output());
    for (name, text) in expected {
        assert_eq!(found[name], text, "{name}");
    }
    let rows = lines(&read(&input.output()).unwrap().0);
    assert_eq!(
        rows[1],
        "5: #2 · a <b> & \"c\"  · #250 · @2024-02-29 · #false · ∅"
    );
    assert_eq!(
        rows[2],
        "7: #3 · Emma & co · #12 · @2024-01-02T12:00:00 · #true · ∅"
    );
}

#[test]
fn filling_nothing_keeps_all_parts() {
    let input = workbook();
    let written = fill(&input, None, &[]);
    assert_eq!((written.row_count, written.filled_count), (3, 0));
    assert_eq!(parts_of(&input.output()), parts_of(&input.path));
}

#[test]
fn values_that_do_not_fit_are_refused_and_formulas_stay() {
    let input = workbook();
    let values = &[
        (5, "title", "a\u{1}b"),
        (5, "pages", "many"),
        (5, "born", "1850-01-01"),
        (5, "sold", "yes"),
        (5, "sum", "7"),
        (7, "pages", "12345678901234567890"),
        (7, "sum", "8"),
    ];
    let written = fill(&input, None, values);
    assert_eq!(
        (written.filled_count, written.refused_count),
        (1, 6),
        "{written:?}"
    );
    let reasons: Vec<&str> = written
        .refusals
        .iter()
        .map(|one| one.reason.as_str())
        .collect();
    assert!(reasons.contains(&"the cell holds a formula"), "{reasons:?}");
    assert!(parts_of(&input.output())["xl/worksheets/sheet1.xml"].contains("<f>IF(C5&gt;1"));
}

#[test]
fn a_named_sheet_is_read_as_the_table() {
    let input = workbook();
    let written = fill(&input, Some("Other"), &[(2, "v", "2.5")]);
    assert_eq!(written.filled_count, 1);
    let parts = parts_of(&input.output());
    assert_eq!(parts["xl/worksheets/sheet1.xml"], SHEET);
    assert!(
        parts["xl/worksheets/sheet2.xml"]
            .contains(r#"<row><c><v>7</v></c><c r="B2"><v>2.5</v></c></row>"#)
    );
    let error = webfill_table::open_sheet(&input.path, Some("Book"))
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.ends_with("it has no sheet `Book`, only `Books`, `Other`"),
        "{error}"
    );
}

#[test]
fn files_that_are_not_workbooks_are_refused() {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("a.txt", SimpleFileOptions::default())
        .unwrap();
    let zip = zip.finish().unwrap().into_inner();
    let whole = std::fs::read(workbook().path).unwrap();
    let cases: [(&[u8], &str); 4] = [
        (&zip, "no XLSX"),
        (b"PK\x03\x04 and so on", "broken XLSX"),
        (&whole[..whole.len() / 2], "broken XLSX"),
        (&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1], "save it as XLSX"),
    ];
    for (content, reason) in cases {
        let input = table("a.xlsx", content);
        let error = webfill_table::open(&input.path).err().unwrap().to_string();
        assert!(error.contains(reason), "{error}");
    }
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x5a;
        let _ = table("b.xlsx", bytes).read();
    }
}

#[test]
fn a_hidden_sheet_is_not_the_first_one_and_others_are_named() {
    let mut hidden = parts();
    let book =
        hidden["xl/workbook.xml"].replace(r#"name="Books""#, r#"name="Books" state="hidden""#);
    hidden.insert("xl/workbook.xml", book);
    let hidden = workbook_of(hidden);
    assert_eq!(
        webfill_table::open(&hidden.path).unwrap().columns()[0].name,
        "k"
    );
    assert_eq!(
        webfill_table::open_sheet(&hidden.path, Some("Books"))
            .unwrap()
            .columns()[0]
            .name,
        "id"
    );

    let mut notes = parts();
    let cells = r#"<row><c t="inlineStr"><is><t>read me</t></is></c></row>"#;
    for (sheet, reason) in [(cells, "has no rows below its header"), ("", "is empty")] {
        let sheet = format!(
            r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{sheet}</sheetData></worksheet>"#
        );
        notes.insert("xl/worksheets/sheet1.xml", sheet);
        let refusal = webfill_table::open(&workbook_of(notes.clone()).path);
        let refusal = refusal.err().unwrap().to_string();
        assert!(refusal.contains(reason), "{refusal}");
        assert!(refusal.contains("with --sheet: `Other`"), "{refusal}");
    }
}

/// The sheet with links beside its texts. `texts` are the texts of its second column, and `more` follows the rows.
fn linked_workbook(titles: [&str; 3], formulas: [&str; 3], more: &str) -> Table {
    let row = |at: usize| {
        let (number, title) = (at + 2, titles[at]);
        let formula = match formulas[at] {
            "" => String::new(),
            formula => format!("<f>{formula}</f>"),
        };
        format!(
            r#"<row r="{number}"><c r="A{number}"><v>{number}</v></c><c r="B{number}" t="str">{formula}<v>{title}</v></c><c r="C{number}"/></row>"#
        )
    };
    let header = r#"<row r="1"><c r="A1" t="str"><v>id</v></c><c r="B1" t="str"><v>title</v></c><c r="C1" t="str"><v>pages</v></c></row>"#;
    let rows: String = (0..3).map(row).collect();
    let mut parts = parts();
    let sheet = format!(
        r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheetData>{header}{rows}</sheetData>{more}</worksheet>"#
    );
    parts.insert("xl/worksheets/sheet1.xml", sheet);
    let relation = |number: usize, target: &str| {
        format!(
            r#"<Relationship Id="rId{number}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink" Target="{target}" TargetMode="External"/>"#
        )
    };
    let relations: String = [
        relation(1, "https://a.example/1?a=1&amp;b=2"),
        relation(2, "HTTP://a.example/2"),
        relation(3, "mailto:a@a.example"),
    ]
    .concat();
    parts.insert("xl/worksheets/_rels/sheet1.xml.rels", format!(
        r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relations}</Relationships>"#
    ));
    workbook_of(parts)
}

const LINKS: &str = r#"<hyperlinks><hyperlink ref="B2" r:id="rId1"/><hyperlink ref="B3" r:id="rId2"/><hyperlink ref="B4" location="Other!A1"/></hyperlinks>"#;

#[test]
fn links_of_cells_are_a_column_behind_the_table() {
    let input = linked_workbook(["Emma", "Persuasion", "Lady Susan"], ["", "", ""], LINKS);
    let (rows, faults) = input.read().unwrap();
    let expected = [
        "2: #2 · Emma · ∅ · https://a.example/1?a=1&b=2",
        "3: #3 · Persuasion · ∅ · HTTP://a.example/2",
        "4: #4 · Lady Susan · ∅ · ∅",
    ];
    assert_eq!(
        (lines(&rows), faults),
        (expected.map(str::to_owned).to_vec(), Vec::new())
    );
    let understanding = input.understand();
    assert_eq!(understanding.columns[3].name, "title (link)");
    let links: Vec<usize> = understanding
        .urls
        .iter()
        .map(|links| links.column)
        .collect();
    assert_eq!(links, [3]);

    // Nothing is written into the column, as it is none of the sheet.
    let written = fill(
        &input,
        None,
        &[
            (2, "pages", "250"),
            (4, "title (link)", "http://a.example/3"),
        ],
    );
    assert_eq!(written.filled_count, 1, "{written:?}");
    let parts = parts_of(&input.output());
    let sheet = &parts["xl/worksheets/sheet1.xml"];
    assert!(sheet.contains(">250<") && sheet.contains(LINKS), "{sheet}");
    assert!(!sheet.contains("D2") && !sheet.contains("D4"), "{sheet}");
}

#[test]
fn links_of_formulas_are_read_and_links_in_texts_come_first() {
    let formulas = [
        r#"HYPERLINK("http://a.example/1?a=1&amp;b=2","Emma")"#,
        r#"HYPERLINK(&quot;http://a.example/2&quot;)"#,
        r#"HYPERLINK("http://a.example/"&amp;A4)"#,
    ];
    let input = linked_workbook(["Emma", "Persuasion", "Lady Susan"], formulas, "");
    let rows = lines(&input.read().unwrap().0);
    assert!(
        rows[0].ends_with(" · http://a.example/1?a=1&b=2"),
        "{rows:?}"
    );
    assert!(rows[1].ends_with(" · http://a.example/2"), "{rows:?}");
    assert!(rows[2].ends_with(" · ∅"), "{rows:?}");

    // A link that is the text of its cell needs no further column.
    let titles = ["https://a.example/1", "https://a.example/2", "Lady Susan"];
    let input = linked_workbook(titles, ["", "", ""], LINKS);
    let rows = lines(&input.read().unwrap().0);
    assert_eq!(rows[0], "2: #2 · https://a.example/1 · ∅");

    // Few links are of notes.
    let few = r#"<hyperlinks><hyperlink ref="B2" r:id="rId1"/></hyperlinks>"#;
    let input = linked_workbook(["Emma", "Persuasion", "Lady Susan"], ["", "", ""], few);
    assert_eq!(lines(&input.read().unwrap().0)[0], "2: #2 · Emma · ∅");
}
