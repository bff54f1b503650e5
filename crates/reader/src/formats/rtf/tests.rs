use super::*;
use crate::formats::table::parse_rows;

fn text(rtf: &[u8]) -> String {
    read(rtf, 10_000).unwrap().text
}

#[test]
fn text_is_what_a_reader_sees() {
    let rows = parse_rows(include_str!("../../../tests/data/rtf.tsv"));
    assert!(rows.len() >= 100, "{}", rows.len());
    let mut wrong = Vec::new();
    for [rtf, expected] in &rows {
        let whole = match rtf.starts_with(r"{\rtf") {
            true => rtf.clone(),
            false => format!(r"{{\rtf1\ansi {rtf}}}"),
        };
        let bytes = whole.chars().map(|c| u8::try_from(u32::from(c)).unwrap());
        let found = text(&bytes.collect::<Vec<u8>>());
        if found != *expected {
            wrong.push(format!("{rtf}\n  {expected:?}\n  {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn metadata_are_those_of_the_information_group() {
    let rtf = br"{\rtf1{\info{\title A \'e9t\'e9}{\author Ada}{\creatim\yr2024\mo1\dy31\hr9\min5}{\nofpages7}}text}";
    let content = read(rtf, 100).unwrap();
    assert_eq!(content.text, "text");
    assert_eq!(content.metadata.title.as_deref(), Some("A été"));
    assert_eq!(content.metadata.author.as_deref(), Some("Ada"));
    assert_eq!(
        content.metadata.created.as_deref(),
        Some("2024-01-31T09:05")
    );
    assert_eq!(content.metadata.pages, Some(7));

    let rtf = br"{\rtf1{\info{\upr{\title P?}{\*\ud{\title P\u345?}}}}x}";
    let content = read(rtf, 100).unwrap();
    assert_eq!(content.metadata.title.as_deref(), Some("Př"));
}

#[test]
fn groups_may_nest_a_million_deep() {
    let deep = format!("{{\\rtf1 {}deep", "{".repeat(1_000_000));
    assert_eq!(text(deep.as_bytes()), "deep");
    let closing = format!("{{\\rtf1 a{}", "}".repeat(1_000_000));
    assert_eq!(text(closing.as_bytes()), "a");
}
