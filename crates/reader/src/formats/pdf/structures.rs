//! Tests that the same page is read in all the ways that real PDF files store it.

use super::*;

const TEXT: &str = "good text here";
const CONTENT: &str = "BT /F1 12 Tf 20 50 Td (good text here) Tj ET";
const SIZE: &str = "/MediaBox [0 0 200 100]";
const FONTS: &str = "/Resources << /Font << /F1 5 0 R >> >>";

/// The content stream [`CONTENT`] in several encodings.
const BY_LZW: &str = "80108a820179186220188c84054330806430100d62054320805067379be2a74329e0e82034194e46514c2cd42022952020";
const BY_FLATE: &str = "789c730a51d0773354303452084953303250303550084951d048cfcf4f512849ad2851c8482d4ad55408c952700d0100f5470bf3";
const BY_FLATE_WITH_PREDICTOR: &str = "789c013600c9ff024254202f4631203102f0cc3437da0110ef020310ccee44eef847023a3f44cc1045500d02b1f90152f1c4a8e0024ab8e0e2bbf700cc0bc716b0";
const IN_BASE_85: &str = "6<#'\\7PQ#?1*BP.+>PVn2)$.PA0<:5Df9//FCf]=+D>>,ALSa$C*5rE~>";

fn decode_hex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn stream(data: &[u8], entries: &str) -> Vec<u8> {
    let begin = format!("<< /Length {} {entries} >>\nstream\n", data.len());
    [begin.as_bytes(), data, b"\nendstream"].concat()
}

fn text_stream(dictionary: &str) -> Vec<u8> {
    format!("<< {dictionary} >>\nstream\n{CONTENT}\nendstream").into_bytes()
}

/// Builds a file with a page (object 3), its contents (4) and its font (5). `others` adds objects, or replaces some of
/// these.
fn build_file(page: &str, others: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut objects: Vec<(usize, Vec<u8>)> = vec![
        (1, b"<< /Type /Catalog /Pages 2 0 R >>".to_vec()),
        (2, b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_vec()),
        (
            3,
            format!("<< /Type /Page /Parent 2 0 R /Contents 4 0 R {page} >>").into_bytes(),
        ),
        (4, stream(CONTENT.as_bytes(), "")),
        (
            5,
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
        ),
    ];
    for (number, object) in others {
        objects.retain(|(known, _)| known != number);
        objects.push((*number, object.clone()));
    }
    objects.sort_by_key(|(number, _)| *number);
    let mut bytes = b"%PDF-1.5\n".to_vec();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (number, object) in &objects {
        table += &format!("{:010} 00000 n \n", bytes.len());
        bytes.extend(format!("{number} 0 obj\n").into_bytes());
        bytes.extend(object);
        bytes.extend(b"\nendobj\n");
    }
    let begin = bytes.len();
    bytes.extend(table.into_bytes());
    let size = objects.len() + 1;
    let end = format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n");
    bytes.extend(end.into_bytes());
    bytes
}

fn page_entries() -> String {
    format!("{SIZE} {FONTS}")
}

fn file_with(others: &[(usize, Vec<u8>)]) -> Vec<u8> {
    build_file(&page_entries(), others)
}

fn file_with_content(data: &[u8], entries: &str) -> Vec<u8> {
    file_with(&[(4, stream(data, entries))])
}

fn file_with_page_tree(entries: &str) -> Vec<u8> {
    file_with(&[(2, entries.as_bytes().to_vec())])
}

fn size_cases() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("as usual", file_with(&[])),
        ("no size", build_file(FONTS, &[])),
        (
            "a size of two numbers",
            build_file(&format!("/MediaBox [0 0] {FONTS}"), &[]),
        ),
        (
            "a size of names",
            build_file(&format!("/MediaBox [/A /B /C /D] {FONTS}"), &[]),
        ),
        (
            "a size of null",
            build_file(&format!("/MediaBox null {FONTS}"), &[]),
        ),
        (
            "a size upside down",
            build_file(&format!("/MediaBox [200.5 100.5 -0.0 0] {FONTS}"), &[]),
        ),
        (
            "a size elsewhere",
            build_file(
                &format!("/MediaBox 6 0 R {FONTS}"),
                &[(6, b"[0 0 200 100]".to_vec())],
            ),
        ),
        (
            "size and fonts of the parent",
            build_file(
                "",
                &[(
                    2,
                    format!("<< /Type /Pages /Count 1 /Kids [3 0 R] {SIZE} {FONTS} >>")
                        .into_bytes(),
                )],
            ),
        ),
        (
            "a turned page",
            build_file(&format!("{} /Rotate 90", page_entries()), &[]),
        ),
    ]
}

fn tree_cases() -> Vec<(&'static str, Vec<u8>)> {
    let page_without =
        |entries: &str| format!("<< {entries} /Contents 4 0 R {SIZE} {FONTS} >>").into_bytes();
    let parts = |first: &str, second: &str| {
        let page =
            format!("<< /Type /Page /Parent 2 0 R /Contents [4 0 R 6 0 R] {SIZE} {FONTS} >>");
        file_with(&[
            (3, page.into_bytes()),
            (4, stream(first.as_bytes(), "")),
            (6, stream(second.as_bytes(), "")),
        ])
    };
    vec![
        (
            "its own grandparent",
            build_file(
                FONTS,
                &[(
                    2,
                    b"<< /Type /Pages /Count 1 /Kids [3 0 R] /Parent 2 0 R >>".to_vec(),
                )],
            ),
        ),
        (
            "its own descendant",
            file_with_page_tree("<< /Type /Pages /Count 1 /Kids [3 0 R 2 0 R] >>"),
        ),
        (
            "a page twice",
            file_with_page_tree("<< /Type /Pages /Count 2 /Kids [3 0 R 3 0 R] >>"),
        ),
        (
            "kids that are none",
            file_with_page_tree("<< /Type /Pages /Count 3 /Kids [null 3 0 R 99 0 R] >>"),
        ),
        (
            "a wrong count",
            file_with_page_tree("<< /Type /Pages /Count 0 /Kids [3 0 R] >>"),
        ),
        (
            "pages without type",
            file_with_page_tree("<< /Count 1 /Kids [3 0 R] >>"),
        ),
        (
            "a page without type",
            file_with(&[(3, page_without("/Parent 2 0 R"))]),
        ),
        (
            "a page without parent",
            file_with(&[(3, page_without("/Type /Page"))]),
        ),
        (
            "contents in parts",
            parts("BT /F1 12 Tf 20 50 Td", "(good text here) Tj ET"),
        ),
    ]
}

fn text_filter_cases() -> Vec<(&'static str, Vec<u8>)> {
    let run_lengths = {
        let (first, rest) = CONTENT.split_at(20);
        let mut data = vec![19];
        data.extend(first.bytes());
        for byte in rest.bytes() {
            data.extend([0, byte]);
        }
        // In the run-length format: seven blanks, then the end.
        data.extend([250, b' ', 128, 3]);
        data
    };
    let digits: String = CONTENT
        .bytes()
        .map(|byte| format!("{byte:02X} \n"))
        .collect();
    vec![
        (
            "run lengths",
            file_with_content(&run_lengths, "/Filter /RunLengthDecode"),
        ),
        ("RL", file_with_content(&run_lengths, "/Filter [/RL]")),
        (
            "hexadecimal",
            file_with_content(format!("{digits}>").as_bytes(), "/Filter /ASCIIHexDecode"),
        ),
        (
            "AHx without an end",
            file_with_content(digits.as_bytes(), "/Filter /AHx"),
        ),
        (
            "base 85",
            file_with_content(IN_BASE_85.as_bytes(), "/Filter /ASCII85Decode"),
        ),
        (
            "base 85 with signs",
            file_with_content(
                format!("<~{IN_BASE_85}").as_bytes(),
                "/Filter /ASCII85Decode",
            ),
        ),
        (
            "A85",
            file_with_content(IN_BASE_85.as_bytes(), "/Filter /A85"),
        ),
    ]
}

fn compression_cases() -> Vec<(&'static str, Vec<u8>)> {
    let flate = decode_hex(BY_FLATE);
    let cut = &flate[..flate.len() - 6];
    let digits_of_flate: String = flate.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![
        (
            "LZW",
            file_with_content(&decode_hex(BY_LZW), "/Filter /LZWDecode"),
        ),
        ("Flate", file_with_content(&flate, "/Filter /FlateDecode")),
        ("Fl", file_with_content(&flate, "/Filter [/Fl]")),
        (
            "a filter elsewhere",
            file_with(&[
                (4, stream(&flate, "/Filter 6 0 R")),
                (6, b"/FlateDecode".to_vec()),
            ]),
        ),
        (
            "two filters",
            file_with_content(
                digits_of_flate.as_bytes(),
                "/Filter [/ASCIIHexDecode /FlateDecode]",
            ),
        ),
        (
            "a predictor",
            file_with_content(
                &decode_hex(BY_FLATE_WITH_PREDICTOR),
                "/Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns 8 >>",
            ),
        ),
        (
            "a predictor in a list",
            file_with_content(
                &decode_hex(BY_FLATE_WITH_PREDICTOR),
                "/Filter [/FlateDecode] /DecodeParms [<< /Predictor 12 /Columns 8 >>]",
            ),
        ),
        ("cut off", file_with_content(cut, "/Filter /FlateDecode")),
    ]
}

fn length_cases() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("no length", file_with(&[(4, text_stream(""))])),
        (
            "a short length",
            file_with(&[(4, text_stream("/Length 5"))]),
        ),
        (
            "a long length",
            file_with(&[(4, text_stream("/Length 5000"))]),
        ),
        (
            "a length elsewhere",
            file_with(&[(4, text_stream("/Length 6 0 R")), (6, b"44".to_vec())]),
        ),
        (
            "a length nowhere",
            file_with(&[(4, text_stream("/Length 9 0 R"))]),
        ),
    ]
}

#[test]
fn the_text_of_a_page_does_not_depend_on_how_it_is_stored() {
    let cases = [
        size_cases(),
        tree_cases(),
        text_filter_cases(),
        compression_cases(),
        length_cases(),
    ]
    .concat();
    let mut wrong = Vec::new();
    for (what, bytes) in cases {
        let read = read(&bytes, 1 << 16).map(|content| (content.text, content.unread));
        if read != Ok((TEXT.to_owned(), 0)) {
            wrong.push((what, read));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unreadable_files_are_reported() {
    let without_fonts = build_file(SIZE, &[]);
    assert!(matches!(
        read(&without_fonts, 1 << 16),
        Err(Trouble::Broken(_))
    ));
    let unknown = file_with_content(b"\x01\x02", "/Filter /JBIG2Decode");
    assert_eq!(
        read(&unknown, 1 << 16).map(|content| content.text),
        Ok(String::new())
    );
}
