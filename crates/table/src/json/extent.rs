//! Finds where the next object of a text ends.

use super::Layout;

/// What comes next in a JSON text, and how many bytes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Bytes that belong to no entry (object), such as commas and blanks.
    Between(usize),
    /// An entry of this many bytes.
    Entry(usize),
    /// The end of the array, with its number of bytes. Only blanks may follow.
    End(usize),
    Unfinished,
}

/// Finds out what the bytes begin with. `is_whole` means that the text ends with them, and `has_begun` that the opening
/// bracket of the array was taken before.
pub(super) fn next_extent(bytes: &[u8], is_whole: bool, layout: Layout, has_begun: bool) -> Extent {
    match layout {
        Layout::Lines => line_extent(bytes, is_whole),
        Layout::Array => entry_extent(bytes, is_whole, has_begun),
    }
}

fn line_extent(bytes: &[u8], is_whole: bool) -> Extent {
    let end = memchr::memchr(b'\n', bytes).map(|end| end + 1);
    match end.or(is_whole.then_some(bytes.len())) {
        None => Extent::Unfinished,
        Some(end) if bytes[..end].trim_ascii().is_empty() => Extent::Between(end),
        Some(end) => Extent::Entry(end),
    }
}

fn entry_extent(bytes: &[u8], is_whole: bool, has_begun: bool) -> Extent {
    let is_between = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
    let between = bytes.iter().take_while(is_between).count();
    if between > 0 {
        return Extent::Between(between);
    }
    match bytes.first() {
        None => Extent::Unfinished,
        Some(b'[') if !has_begun => Extent::Between(1),
        Some(b']') => Extent::End(1),
        Some(_) => entry_end(bytes, is_whole),
    }
}

/// Finds the end of an entry of an array. An object ends with its closing bracket, another value before the next comma
/// or bracket.
fn entry_end(bytes: &[u8], is_whole: bool) -> Extent {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => match string_end(bytes, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => break,
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b'}' | b']' if depth == 1 => return Extent::Entry(at + 1),
            b',' | b']' if depth == 0 && at > 0 => return Extent::Entry(at),
            _ => {}
        }
        at += 1;
    }
    match is_whole {
        true => Extent::Entry(bytes.len()),
        false => Extent::Unfinished,
    }
}

fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}
