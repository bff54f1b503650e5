//! Damages an intact document in several ways, and rebuilds it.

use pdf_extract::Stream;

use super::*;
use crate::formats::pdf;

const TEXT: &str = "good text here";

fn sound_document() -> Vec<u8> {
    let mut document = Document::with_version("1.4");
    let tree = document.new_object_id();
    let font = document.add_object(dictionary! {
        "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica",
    });
    let content = format!("BT /F1 12 Tf 9 9 Td ({TEXT}) Tj ET");
    let content = document.add_object(Stream::new(dictionary! {}, content.into_bytes()));
    let page = document.add_object(dictionary! {
        "Type" => "Page", "Parent" => tree, "Contents" => content,
        "MediaBox" => vec![0.into(), 0.into(), 99.into(), 99.into()],
        "Resources" => dictionary! { "Font" => dictionary! { "F1" => font } },
    });
    let pages = dictionary! { "Type" => "Pages", "Count" => 1, "Kids" => vec![page.into()] };
    document.objects.insert(tree, pages.into());
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => tree });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

fn replace_all(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut output = Vec::new();
    let mut at = 0;
    while let Some(found) = find_bytes(bytes, from.as_bytes(), at) {
        output.extend_from_slice(&bytes[at..found]);
        output.extend_from_slice(to.as_bytes());
        at = found + from.len();
    }
    assert!(at > 0, "{from} is there");
    output.extend_from_slice(&bytes[at..]);
    output
}

fn bytes_up_to(bytes: &[u8], word: &str) -> Vec<u8> {
    bytes[..find_bytes(bytes, word.as_bytes(), 0).unwrap()].to_vec()
}

/// The name of each kind of damage, with the damaged bytes.
fn damaged_documents() -> Vec<(&'static str, Vec<u8>)> {
    let sound = sound_document();
    let without_table = bytes_up_to(&sound, "xref\n");
    vec![
        ("nothing", sound.clone()),
        ("bytes before", [&b"junk\n"[..], &sound].concat()),
        (
            "a comment within",
            replace_all(&sound, "1 0 obj", "%x\n1 0 obj"),
        ),
        ("line ends of Windows", replace_all(&sound, "\n", "\r\n")),
        ("line ends of old Macs", replace_all(&sound, "\n", "\r")),
        (
            "a wrong place of the table",
            replace_all(&sound, "startxref\n", "startxref\n7"),
        ),
        (
            "no place of the table",
            replace_all(&sound, "startxref", "startxxxx"),
        ),
        ("zeros behind", [&sound[..], &[0; 2000]].concat()),
        ("no table", without_table),
        (
            "a wrong length",
            replace_all(&sound, "/Length ", "/Length 9"),
        ),
        (
            "a short length",
            replace_all(&sound, "/Length 4", "/Length 1"),
        ),
        (
            "a negative length",
            replace_all(&sound, "/Length ", "/Length -"),
        ),
        ("no length", replace_all(&sound, "/Length ", "/Strength ")),
        ("no end of the stream", replace_all(&sound, "endstream", "")),
        ("no ends of objects", replace_all(&sound, "endobj", "")),
        (
            "no page tree",
            replace_all(&sound, "/Type/Pages", "/Type/Pugs"),
        ),
        (
            "no catalog",
            replace_all(&sound, "/Type/Catalog", "/Type/Dog"),
        ),
        ("no end", bytes_up_to(&sound, "%%EOF")),
        (
            "one line",
            replace_all(&bytes_up_to(&sound, "xref\n"), "\nendobj\n", " endobj "),
        ),
    ]
}

#[test]
fn damaged_documents_are_read_all_the_same() {
    let read = |bytes: &[u8]| pdf::read(bytes, 1000).map(|content| content.text);
    let is_wrong = |text: &Result<String, _>| text.as_deref() != Ok(TEXT);
    let texts = damaged_documents()
        .into_iter()
        .map(|(what, bytes)| (what, read(&bytes)));
    let wrong: Vec<_> = texts.filter(|(_, text)| is_wrong(text)).collect();
    assert_eq!(wrong, []);
}

#[test]
fn any_bytes_are_rebuilt_to_something() {
    let sound = sound_document();
    for end in 0..sound.len() {
        rebuild(&sound[..end]);
        rebuild(&sound[end..]);
        let mut changed = sound.clone();
        changed[end] ^= 0x15;
        rebuild(&changed);
    }
}

#[test]
fn of_two_versions_of_an_object_the_later_one_counts() {
    let sound = sound_document();
    let begin = find_bytes(&sound, b"BT", 0).unwrap();
    let begin = sound[..begin]
        .windows(4)
        .rposition(|four| four == b" obj")
        .unwrap();
    let number = parse_object_number(&sound[..begin]).unwrap().0;
    let newer = "BT /F1 12 Tf 9 9 Td (newer) Tj ET";
    let newer = format!("\n{number} 0 obj\n<< >>\nstream\n{newer}\nendstream\nendobj\n");
    let bytes = [&sound[..], newer.as_bytes(), b"startxref\n1\n%%EOF"].concat();
    assert_eq!(pdf::read(&bytes, 1000).unwrap().text, "newer");
}
