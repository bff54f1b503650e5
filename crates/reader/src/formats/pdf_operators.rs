//! Replaces the PDF operators `'` and `"` with their equivalents. `pdf-extract` skips them, so their text would be
//! missing without an error.

use pdf_extract::content::{Content, Operation};
use pdf_extract::{Document, Object, ObjectId, Stream, dictionary};

/// Rewrites the contents of all pages and forms that use the operators `'` and `"`.
pub(super) fn expand_operators(document: &mut Document) {
    let pages: Vec<ObjectId> = document.page_iter().collect();
    for page in pages {
        let content = document.get_page_content(page).unwrap_or_default();
        if let Some(content) = expand_content(&content) {
            let stream = document.add_object(Stream::new(dictionary! {}, content));
            if let Ok(page) = document.get_dictionary_mut(page) {
                page.set("Contents", stream);
            }
        }
    }
    for object in document.objects.values_mut() {
        let Ok(stream) = object.as_stream_mut() else {
            continue;
        };
        let is_form = |stream: &Stream| {
            stream.dict.get(b"Subtype").and_then(Object::as_name).ok() == Some(b"Form")
        };
        if !is_form(stream) {
            continue;
        }
        let content = stream.decompressed_content();
        let content = content.unwrap_or_else(|_| stream.content.clone());
        if let Some(content) = expand_content(&content) {
            stream.dict.remove(b"Filter");
            stream.dict.remove(b"DecodeParms");
            stream.set_content(content);
        }
    }
}

/// The content with the operators `'` and `"` replaced by their equivalents; `None` if it has neither of them.
fn expand_content(content: &[u8]) -> Option<Vec<u8>> {
    if !may_use_shorthands(content) {
        return None;
    }
    let operations = Content::decode(content).ok()?.operations;
    if !operations.iter().any(is_shorthand) {
        return None;
    }
    let operations: Vec<Operation> = operations.into_iter().flat_map(expand_operation).collect();
    Content { operations }.encode().ok()
}

fn is_shorthand(operation: &Operation) -> bool {
    matches!(operation.operator.as_str(), "'" | "\"")
}

/// Whether a content may use the operators `'` and `"`. Both follow a string, which ends with `)` or `>`.
fn may_use_shorthands(content: &[u8]) -> bool {
    let mut before = 0;
    for byte in content {
        if matches!(byte, b'\'' | b'"') && matches!(before, b')' | b'>') {
            return true;
        }
        if !byte.is_ascii_whitespace() {
            before = *byte;
        }
    }
    false
}

/// The operations that are equivalent to a shorthand operator (ISO 32000-1, table 109).
fn expand_operation(mut operation: Operation) -> Vec<Operation> {
    if !is_shorthand(&operation) {
        return vec![operation];
    }
    let text = operation.operands.pop();
    let mut plain = Vec::new();
    if operation.operator == "\"" && operation.operands.len() == 2 {
        let characters = operation.operands.pop();
        let words = operation.operands.pop();
        plain.push(Operation::new("Tw", words.into_iter().collect()));
        plain.push(Operation::new("Tc", characters.into_iter().collect()));
    }
    plain.push(Operation::new("T*", Vec::new()));
    if let Some(text @ Object::String(..)) = text {
        plain.push(Operation::new("Tj", vec![text]));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded_operators(content: &str) -> Option<String> {
        let content = expand_content(content.as_bytes())?;
        let operations = Content::decode(&content).unwrap().operations;
        let names = operations
            .iter()
            .map(|operation| operation.operator.as_str());
        Some(names.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn both_operators_become_plain_ones() {
        for (content, expected) in [
            ("BT (a) ' ET", Some("BT T* Tj ET")),
            ("BT (a)' (b)' ET", Some("BT T* Tj T* Tj ET")),
            ("BT <61>\n' ET", Some("BT T* Tj ET")),
            ("BT 1 2 (a) \" ET", Some("BT Tw Tc T* Tj ET")),
            ("BT 1 2 <61>\" ET", Some("BT Tw Tc T* Tj ET")),
            ("BT (it's) Tj ET", None),
            ("BT (say \"a\") Tj ET", None),
            ("BT ((a) ') Tj ET", None),
            ("", None),
        ] {
            assert_eq!(
                expanded_operators(content).as_deref(),
                expected,
                "{content}"
            );
        }
    }
}
