//! Percent-encoding in its one normal form (RFC 3986, 6.2.2.1 and 6.2.2.2).

/// `text` with upper-case hex digits in its escapes, and with the escapes of unreserved characters (letters, digits,
/// `-`, `.`, `_`, `~`) decoded; `None` if it already has this form. A `%` that starts no escape stays. Nothing is
/// decoded right after it, because that could complete an escape: `%4%31` is not `%41`.
pub fn normalise_escapes(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let first = bytes.iter().position(|b| *b == b'%')?;
    let mut normal = Vec::with_capacity(bytes.len());
    normal.extend_from_slice(&bytes[..first]);
    // While the output is shorter than this, a decoded byte could complete an escape with a stray '%'.
    let mut stray_until = 0;
    let mut at = first;
    while at < bytes.len() {
        match escaped_byte(&bytes[at..]) {
            Some(byte) if is_unreserved(byte) && normal.len() >= stray_until => normal.push(byte),
            Some(byte) => normal.extend_from_slice(&escape(byte)),
            None => {
                if bytes[at] == b'%' {
                    stray_until = normal.len() + 3;
                }
                normal.push(bytes[at]);
                at += 1;
                continue;
            }
        }
        at += 3;
    }
    (normal != bytes).then(|| String::from_utf8(normal).expect("only ASCII was replaced, by ASCII"))
}

/// The byte that an escape at the start of `bytes` stands for.
fn escaped_byte(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else {
        return None;
    };
    Some(hex_value(*high)? << 4 | hex_value(*low)?)
}

fn hex_value(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

fn escape(byte: u8) -> [u8; 3] {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    [b'%', HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::normalise_escapes;

    #[test]
    fn hex_is_upper_case_and_unreserved_characters_are_decoded() {
        assert_eq!(
            normalise_escapes("/%7euser/%c3%a9").as_deref(),
            Some("/~user/%C3%A9")
        );
        assert_eq!(normalise_escapes("/%41%2fb").as_deref(), Some("/A%2Fb"));
    }

    #[test]
    fn normal_text_is_left_alone() {
        for text in ["", "/a/b", "/a%2Fb%20c", "/100%", "/%zz", "/é%C3"] {
            assert_eq!(normalise_escapes(text), None, "{text}");
        }
    }

    #[test]
    fn decoding_never_makes_a_new_escape() {
        for text in [
            "%4%31",
            "%%34%31",
            "%2%35",
            "%%32%35",
            "%4G%31",
            "%25%34%31",
        ] {
            let once = normalise_escapes(text).unwrap_or(text.into());
            assert_eq!(normalise_escapes(&once), None, "{text} became {once}");
        }
        assert_eq!(normalise_escapes("%4%31"), None);
        assert_eq!(normalise_escapes("%4G%31").as_deref(), Some("%4G1"));
        assert_eq!(normalise_escapes("%2541"), None);
    }
}
