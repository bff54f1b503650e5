//! The path patterns of rules: normalises them like the paths of URLs, orders them by precedence, and matches them.

use std::cmp::Ordering;

use memchr::memmem;
use webfill_urls::normalise_escapes;

/// The pattern of one rule. Within the text `*` is the wildcard; every other character stands for itself, in the form
/// that [`comparable_path`] gives it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The length of the rule as written, which decides between matching rules.
    octets: usize,
    pub(super) allow: bool,
    /// Whether the rule ended in `$`, so that the pattern must match the whole path.
    pub(super) anchored: bool,
    pub(super) text: Vec<u8>,
}

impl Pattern {
    /// The pattern of a rule; `None` for an empty path, which neither forbids nor allows anything.
    ///
    /// RFC 9309 and Google's cases differ on escaped letters and digits: is `/%62ar` the same as `/bar`? Here it is for
    /// `Disallow` and is not for `Allow`, which is the stricter choice for both.
    pub(super) fn from_rule(allow: bool, path: &[u8]) -> Option<Self> {
        if path.is_empty() {
            return None;
        }
        let mut text = normalise_path(path, Special::Wildcards);
        let octets = text.len();
        let anchored = text.last() == Some(&b'$');
        if anchored {
            text.pop();
        }
        if !allow {
            text = decode_escapes(text);
        }
        text.dedup_by(|b, a| (*a, *b) == (b'*', b'*'));
        if !anchored && text.last() == Some(&b'*') {
            text.pop();
        }
        Some(Pattern {
            octets,
            allow,
            anchored,
            text,
        })
    }

    /// The pattern of a folder, if the rule allows its index page: `Allow: /folder/index.html` also allows `/folder/`,
    /// as in Google's parser.
    pub(super) fn from_index_page(allow: bool, path: &[u8]) -> Option<Self> {
        let slash = path.iter().rposition(|b| *b == b'/')?;
        if !allow || !path[slash..].starts_with(b"/index.htm") {
            return None;
        }
        Self::from_rule(true, &[&path[..=slash], b"$"].concat())
    }
}

/// Orders patterns by precedence: more octets first, `Allow` before `Disallow`.
impl Ord for Pattern {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |p: &Self| (usize::MAX - p.octets, !p.allow, p.anchored);
        key(self)
            .cmp(&key(other))
            .then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn decode_escapes(text: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(text).expect("a comparable text is ASCII");
    normalise_escapes(&text).unwrap_or(text).into_bytes()
}

/// The path and query of a URL in the form that patterns are compared with.
pub(super) fn comparable_path(path: &str) -> Vec<u8> {
    normalise_path(path.as_bytes(), Special::None)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    /// In a rule: `*` anywhere and `$` at the end are special.
    Wildcards,
    None,
}

/// Converts equivalent paths to one spelling. Escapes have upper-case digits. Characters that some URL parsers escape
/// are escaped (`{` becomes `%7B`). Characters that need no escape are plain (`%7E` becomes `~`). Letters and digits
/// stay as they are. Literal `*` and `$` become escapes, as in patterns (RFC 9309, 2.2.3). The result is ASCII.
fn normalise_path(path: &[u8], special: Special) -> Vec<u8> {
    let mut text = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [byte, behind @ ..] = rest {
        rest = behind;
        let escaped = if *byte == b'%' {
            hex_pair(behind)
        } else {
            None
        };
        match escaped {
            Some(value) => {
                rest = &behind[2..];
                if matches!(value, b'-' | b'.' | b'_' | b'~' | b'\'') {
                    text.push(value);
                } else {
                    push_escape(&mut text, value);
                }
            }
            None if stands_for_itself(*byte, behind, special) => text.push(*byte),
            None => push_escape(&mut text, *byte),
        }
    }
    text
}

fn stands_for_itself(byte: u8, behind: &[u8], special: Special) -> bool {
    match byte {
        b'*' => special == Special::Wildcards,
        b'$' => special == Special::Wildcards && behind.is_empty(),
        b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => false,
        _ => byte.is_ascii_graphic(),
    }
}

fn hex_pair(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| (*text.get(at)? as char).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

fn push_escape(text: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    text.extend([
        b'%',
        HEX[usize::from(byte >> 4)],
        HEX[usize::from(byte & 15)],
    ]);
}

/// Whether a pattern matches a path from its start. The text between two wildcards is matched at its first occurrence.
/// This leaves the most for the rest of the pattern, so one pass over the path is enough.
pub(super) fn matches(pattern: &[u8], anchored: bool, path: &[u8]) -> bool {
    let mut pieces = pattern.split(|b| *b == b'*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return !anchored || rest.is_empty();
    };
    for piece in pieces {
        let Some(at) = memmem::find(rest, piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    if anchored {
        rest.ends_with(last)
    } else {
        memmem::find(rest, last).is_some()
    }
}
