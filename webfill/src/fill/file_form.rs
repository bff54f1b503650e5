//! Describes the form of the table's file, for programs that read the filled table. The filled table has the same form,
//! and those programs could guess it wrongly.

use serde_json::{Value, json};
use webfill_table::{Compression, Encoding, Escape, Format, TextForm, Understanding};

/// The form of a text file; null for formats that describe themselves.
pub fn describe(understanding: &Understanding) -> Value {
    let (text, dialect) = match &understanding.format {
        Format::Delimited(text, dialect) => (text, Some(dialect)),
        Format::JsonLines(text) | Format::JsonArray(text) => (text, None),
        Format::Parquet | Format::Xlsx { .. } => return Value::Null,
    };
    let character = |byte: u8| char::from(byte).to_string();
    json!({
        "encoding": encoding(text),
        "compression": match text.compression {
            Compression::None => Value::Null,
            Compression::Gzip => json!("gzip"),
            Compression::Zstd => json!("zstd"),
        },
        "delimited": dialect.map(|dialect| json!({
            "columns": understanding.columns.iter().map(|column| &column.name).collect::<Vec<_>>(),
            "delimiter": character(dialect.delimiter),
            "quote": dialect.quote.map(character),
            "escape": match dialect.escape {
                Escape::Doubled => Value::Null,
                Escape::Backslash => json!("\\"),
            },
            "ends_with_cr": dialect.ends_with_cr,
            "skips_blanks": dialect.skips_blanks,
            "rows_above": dialect.notes,
            "has_header": dialect.has_header,
            "has_separator_line": dialect.has_separator_line,
        })),
    })
}

/// The name that Python has for the encoding.
fn encoding(text: &TextForm) -> &'static str {
    match text.encoding {
        Encoding::Utf8 => "utf-8",
        Encoding::Utf16Le => "utf-16-le",
        Encoding::Utf16Be => "utf-16-be",
        // The encodings of browsers have more characters than those of Python with the same name.
        Encoding::Legacy(encoding) => match encoding.name() {
            "windows-874" => "cp874",
            "Shift_JIS" => "cp932",
            "EUC-KR" => "cp949",
            "Big5" => "big5hkscs",
            "GBK" => "gb18030",
            name => name,
        },
    }
}
