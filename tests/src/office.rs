//! Documents made by hand: PDF, DOCX, XLSX, ODT, ODS.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A PDF with these objects. The first object is the catalog, and the last one is the document information.
pub fn pdf_of(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(bytes.len());
        bytes.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        bytes.extend_from_slice(object);
        bytes.extend_from_slice(b"\nendobj\n");
    }
    let table = bytes.len();
    let count = objects.len() + 1;
    let mut end = format!("xref\n0 {count}\n0000000000 65535 f \n");
    for place in places {
        end += &format!("{place:010} 00000 n \n");
    }
    end += &format!(
        "trailer\n<< /Size {count} /Root 1 0 R /Info {} 0 R >>\n",
        count - 1
    );
    end += &format!("startxref\n{table}\n%%EOF\n");
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

/// A PDF with one page, which shows this text.
pub fn pdf(title: &str, text: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    pdf_with_content(title, pdf_stream("", content.as_bytes()))
}

/// A PDF with one page, whose content is this stream.
pub fn pdf_with_content(title: &str, content: Vec<u8>) -> Vec<u8> {
    let info = format!("<< /Title ({title}) /Author (Ada) /CreationDate (D:20240131120000Z) >>");
    pdf_of(&[
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
          /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_vec(),
        content,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_vec(),
        info.into_bytes(),
    ])
}

/// A PDF stream with these additional entries in its dictionary.
pub fn pdf_stream(entries: &str, bytes: &[u8]) -> Vec<u8> {
    let mut object = format!("<< /Length {} {entries} >>\nstream\n", bytes.len()).into_bytes();
    object.extend_from_slice(bytes);
    object.extend_from_slice(b"\nendstream");
    object
}

/// A PDF stream of this many blanks, which is compressed twice to a few hundred bytes.
pub fn pdf_bomb_of_blanks(bytes: usize) -> Vec<u8> {
    let blanks = vec![b' '; 1 << 20];
    let mut once = ZlibEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..bytes >> 20 {
        once.write_all(&blanks).unwrap();
    }
    let mut twice = ZlibEncoder::new(Vec::new(), Compression::best());
    twice.write_all(&once.finish().unwrap()).unwrap();
    pdf_stream(
        "/Filter [/FlateDecode /FlateDecode]",
        &twice.finish().unwrap(),
    )
}

/// A compressed PDF stream that decodes to this many digits. A PDF reader with too little memory for them skips the
/// stream.
pub fn pdf_bomb_of_digits(bytes: usize) -> Vec<u8> {
    let digits = vec![b'2'; 1 << 20];
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..bytes >> 20 {
        packed.write_all(&digits).unwrap();
    }
    pdf_stream(
        "/Filter [/FlateDecode /ASCIIHexDecode]",
        &packed.finish().unwrap(),
    )
}

/// A zip file with these parts, given by name and content.
pub fn zip_package(parts: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        let options = SimpleFileOptions::default().large_file(false);
        zip.start_file(*name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const CORE: &str = "<cp:coreProperties xmlns:cp='a' xmlns:dc='b' xmlns:dcterms='c'>\
    <dc:title>A title</dc:title><dc:creator>Ada</dc:creator>\
    <dcterms:created>2024-01-31T12:00:00Z</dcterms:created></cp:coreProperties>";

pub fn docx(body: &str) -> Vec<u8> {
    let document = format!("<w:document xmlns:w='w'><w:body>{body}</w:body></w:document>");
    zip_package(&[
        ("[Content_Types].xml", b"<Types/>".to_vec()),
        ("word/document.xml", document.into_bytes()),
        ("docProps/core.xml", CORE.into()),
    ])
}

/// A workbook with one sheet. `rows` is the XML of its rows.
pub fn xlsx(dimension: &str, rows: &str) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package_relations = "http://schemas.openxmlformats.org/package/2006/relationships";
    let workbook = format!(
        "<workbook xmlns='{main}' xmlns:r='{relations}'><sheets>\
         <sheet name='Prices' sheetId='1' r:id='rId1'/></sheets></workbook>"
    );
    let sheet = format!(
        "<worksheet xmlns='{main}'><dimension ref='{dimension}'/><sheetData>{rows}</sheetData></worksheet>"
    );
    let of_workbook = format!(
        "<Relationships xmlns='{package_relations}'><Relationship Id='rId1' \
         Type='{relations}/worksheet' Target='worksheets/sheet1.xml'/></Relationships>"
    );
    let of_package = format!(
        "<Relationships xmlns='{package_relations}'><Relationship Id='rId1' \
         Type='{relations}/officeDocument' Target='xl/workbook.xml'/></Relationships>"
    );
    zip_package(&[
        ("[Content_Types].xml", b"<Types/>".to_vec()),
        ("_rels/.rels", of_package.into_bytes()),
        ("xl/workbook.xml", workbook.into_bytes()),
        ("xl/_rels/workbook.xml.rels", of_workbook.into_bytes()),
        ("xl/worksheets/sheet1.xml", sheet.into_bytes()),
        ("docProps/core.xml", CORE.into()),
    ])
}

/// An ODT document if `kind` is `text`, or an ODS document if it is `spreadsheet`.
pub fn open_document(kind: &str, body: &str) -> Vec<u8> {
    let content = format!(
        "<office:document-content xmlns:office='o' xmlns:text='t' xmlns:table='b'>\
         <office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    );
    let meta = "<office:document-meta xmlns:office='o' xmlns:dc='d' xmlns:meta='m'><office:meta>\
        <dc:title>A title</dc:title><meta:initial-creator>Ada</meta:initial-creator>\
        <meta:document-statistic meta:page-count='3'/></office:meta></office:document-meta>";
    let media_type = format!("application/vnd.oasis.opendocument.{kind}");
    zip_package(&[
        ("mimetype", media_type.into_bytes()),
        ("content.xml", content.into_bytes()),
        ("meta.xml", meta.into()),
    ])
}
