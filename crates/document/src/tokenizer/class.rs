//! Classes of bytes for the tokenizer, such as white space or the bytes that end a name.

/// Tab, line feed, form feed and space. Carriage returns have been replaced in the input.
pub(super) const WHITESPACE: u8 = 1;
/// The byte ends the name of a tag.
pub(super) const ENDS_TAG_NAME: u8 = 1 << 1;
/// The byte ends the name of an attribute, unless it is its first character.
pub(super) const ENDS_ATTRIBUTE_NAME: u8 = 1 << 2;
/// The byte ends an attribute value without quotes, or needs special treatment in it.
pub(super) const STOPS_BARE_VALUE: u8 = 1 << 3;
/// The byte must be replaced in a name: a capital letter or NUL.
pub(super) const CHANGES_IN_NAME: u8 = 1 << 4;

static CLASSES: [u8; 256] = class_table();

const fn class_table() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'\t' | b'\n' | 0x0c | b' ' => {
                WHITESPACE | ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | STOPS_BARE_VALUE
            }
            b'>' => ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME | STOPS_BARE_VALUE,
            b'/' => ENDS_TAG_NAME | ENDS_ATTRIBUTE_NAME,
            b'=' => ENDS_ATTRIBUTE_NAME,
            b'&' => STOPS_BARE_VALUE,
            0 => STOPS_BARE_VALUE | CHANGES_IN_NAME,
            b'A'..=b'Z' => CHANGES_IN_NAME,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

pub(super) fn classes_of(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

pub(super) fn is_whitespace(byte: u8) -> bool {
    classes_of(byte) & WHITESPACE != 0
}

/// Returns the position of the first byte that is of a class in `wanted`, and the classes of all bytes before it.
pub(super) fn find(bytes: &[u8], wanted: u8) -> (usize, u8) {
    let mut before = 0;
    for (place, byte) in bytes.iter().enumerate() {
        let class = classes_of(*byte);
        if class & wanted != 0 {
            return (place, before);
        }
        before |= class;
    }
    (bytes.len(), before)
}
