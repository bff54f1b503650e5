use pdf_extract::dictionary;

use crate::formats::pdf;

use super::*;

/// Builds a PDF with a page that shows these bytes, given in hexadecimal digits, in one font.
fn document(
    shown: &str,
    font: Dictionary,
    others: impl FnOnce(&mut Document) -> Dictionary,
) -> Vec<u8> {
    let mut document = Document::with_version("1.5");
    let tree = document.new_object_id();
    let mut font = font;
    font.extend(&others(&mut document));
    let font = document.add_object(font);
    let content = format!("BT /F1 12 Tf 9 99 Td <{shown}> Tj ET");
    let content = document.add_object(Stream::new(dictionary! {}, content.into_bytes()));
    let page = document.add_object(dictionary! {
        "Type" => "Page", "Parent" => tree, "Contents" => content,
        "MediaBox" => vec![0.into(), 0.into(), 999.into(), 999.into()],
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

fn descendant(ordering: &str) -> Dictionary {
    dictionary! {
        "Type" => "Font", "Subtype" => "CIDFontType0", "BaseFont" => "Any", "DW" => 1000,
        "CIDSystemInfo" => dictionary! {
            "Registry" => Object::string_literal("Adobe"),
            "Ordering" => Object::string_literal(ordering),
            "Supplement" => 2,
        },
    }
}

fn font(encoding: &str, ordering: &str) -> Dictionary {
    dictionary! {
        "Type" => "Font", "Subtype" => "Type0", "BaseFont" => "Any", "Encoding" => encoding,
        "DescendantFonts" => vec![descendant(ordering).into()],
    }
}

fn text(bytes: &[u8]) -> String {
    pdf::read(bytes, 1000).unwrap().text
}

#[test]
fn the_codes_that_pdf_defines_are_read() {
    let mut wrong = Vec::new();
    for (encoding, ordering, shown, expected) in [
        ("UniGB-UCS2-H", "GB1", "4E2D6587002000310032", "中文 12"),
        ("UniGB-UCS2-V", "GB1", "4E2D6587", "中文"),
        ("UniGB-UTF16-H", "GB1", "4E2D6587", "中文"),
        ("UniJIS-UCS2-H", "Japan1", "65E5672C002000310032", "日本 12"),
        ("UniJIS-UCS2-HW-H", "Japan1", "65E5672C00310032", "日本12"),
        ("UniJIS-UTF16-H", "Japan1", "65E5D840DC0B672C", "日𠀋本"),
        ("UniJIS-UTF16-V", "Japan1", "65E5672C", "日本"),
        ("UniCNS-UCS2-H", "CNS1", "4E2D6587", "中文"),
        ("UniCNS-UTF16-H", "CNS1", "4E2D6587", "中文"),
        ("UniKS-UCS2-H", "Korea1", "D55CAE00", "한글"),
        ("UniKS-UTF16-H", "Korea1", "D55CAE0000200035", "한글 5"),
        (
            "90ms-RKSJ-H",
            "Japan1",
            "89BF8A6920312C323334897E20B1",
            "価格 1,234円 ｱ",
        ),
        ("90ms-RKSJ-V", "Japan1", "93FA967B", "日本"),
        ("90msp-RKSJ-H", "Japan1", "93FA967B204142", "日本 AB"),
        ("90pv-RKSJ-H", "Japan1", "93FA967B204142", "日本 AB"),
        ("83pv-RKSJ-H", "Japan1", "93FA967B204142", "日本 AB"),
        ("Ext-RKSJ-H", "Japan1", "93FA967B204142", "日本 AB"),
        ("Add-RKSJ-H", "Japan1", "93FA967B204142", "日本 AB"),
        ("EUC-H", "Japan1", "C6FCCBDC204142", "日本 AB"),
        ("GBK-EUC-H", "GB1", "BCDBB8F120312C323334", "价格 1,234"),
        ("GBK-EUC-V", "GB1", "D6D0CEC4", "中文"),
        ("GBKp-EUC-H", "GB1", "D6D0CEC4204142", "中文 AB"),
        ("GB-EUC-H", "GB1", "D6D0CEC4204142", "中文 AB"),
        ("GBpc-EUC-H", "GB1", "D6D0CEC4204142", "中文 AB"),
        ("GBK2K-H", "GB1", "D6D08139EF31CEC4204142", "中㐂文 AB"),
        ("ETen-B5-H", "CNS1", "A4A4A4E5204142", "中文 AB"),
        ("ETenms-B5-H", "CNS1", "A4A4A4E5204142", "中文 AB"),
        ("B5pc-H", "CNS1", "A4A4A4E5204142", "中文 AB"),
        ("HKscs-B5-H", "CNS1", "A4A4A4E5204142", "中文 AB"),
        ("KSC-EUC-H", "Korea1", "C7D1B1DB204142", "한글 AB"),
        (
            "KSCms-UHC-H",
            "Korea1",
            "C7D1B1DB208C63204142",
            "한글 똠 AB",
        ),
        ("KSCms-UHC-HW-H", "Korea1", "C7D1B1DB", "한글"),
        ("KSCpc-EUC-H", "Korea1", "C7D1B1DB204142", "한글 AB"),
        ("H", "Japan1", "467C4B5C", "日本"),
        ("V", "Japan1", "467C4B5C", "日本"),
        ("Identity-H", "Japan1", "034B034D", "あい"),
        ("Identity-V", "Japan1", "034B", "あ"),
        ("Identity-H", "Japan1", "034BFFF0034B", "あ\u{fffd}あ"),
        ("Identity-H", "Identity", "034B", "\u{fffd}"),
        ("No-Such-H", "Japan1", "93FA", "\u{fffd}"),
        ("90ms-RKSJ-H", "Japan1", "3193", "1"),
        ("90ms-RKSJ-H", "Japan1", "3181AD32", "1\u{fffd}2"),
    ] {
        let mut font = font(encoding, ordering);
        if ordering == "Identity" {
            // A font that gets no new table is read by the library. It needs a descriptor, as the standard demands.
            let mut descendant = descendant(ordering);
            descendant.set("FontDescriptor", Dictionary::new());
            font.set("DescendantFonts", vec![Object::from(descendant)]);
        }
        let found = text(&document(shown, font, |_| Dictionary::new()));
        if found != expected {
            wrong.push(format!("{encoding} {shown}: {expected:?} {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reads codes that the file defines, and characters that the font defines.
#[test]
fn a_code_in_the_file_is_read() {
    let of_two = "begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange \
        2 begincidrange <0041> <0042> 1 <8141> <8142> 843 endcidrange endcmap";
    let mixed = "begincmap 2 begincodespacerange <00> <80> <8140> <9FFC> endcodespacerange \
        2 begincidrange <20> <7e> 1 <8141> <8142> 843 endcidrange endcmap";
    let based = "/90ms-RKSJ-H usecmap begincmap 1 begincidchar <8740> 843 endcidchar endcmap";
    let own = "begincmap 1 beginbfchar <8142> <0058> endbfchar endcmap";
    for (cmap, own, shown, expected) in [
        (of_two, None, "81418142", "あぃ"),
        (of_two, Some(own), "81418142", "あX"),
        (mixed, None, "2181418142", "!あぃ"),
        (based, None, "93FA874031", "日あ1"),
    ] {
        let mut font = font("", "Japan1");
        font.remove(b"Encoding");
        let bytes = document(shown, font, |document| {
            let mut add = |cmap: &str| {
                let stream = Stream::new(dictionary! {}, cmap.as_bytes().to_vec());
                document.add_object(stream)
            };
            let mut entries = dictionary! { "Encoding" => add(cmap) };
            if let Some(own) = own {
                entries.set("ToUnicode", add(own));
            }
            entries
        });
        assert_eq!(text(&bytes), expected, "{cmap} {shown}");
    }
}
