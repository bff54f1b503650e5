//! Recognises names (classes, ids) that a program has generated. They change with the next build of the site.

/// Whether a class, an id or an attribute value looks generated: it contains a hash or a long run of digits, or a
/// suffix as made by css-modules.
pub(crate) fn looks_generated(name: &str) -> bool {
    if name.is_empty() || name.len() > 80 {
        return true;
    }
    if longest_digit_run(name) >= 4 || is_css_in_js(name) {
        return true;
    }
    name.split(['-', '_', ':', '.', ' ']).any(looks_like_a_hash)
}

fn longest_digit_run(name: &str) -> usize {
    let runs = name.split(|c: char| !c.is_ascii_digit());
    runs.map(str::len).max().unwrap_or(0)
}

/// Whether a name comes from a library that hashes styles: `css-1x2y3z`, `sc-bdVaJa`, `jss12`.
fn is_css_in_js(name: &str) -> bool {
    let after = |prefix: &str| name.strip_prefix(prefix).filter(|rest| rest.len() >= 5);
    if let Some(rest) = after("css-").or_else(|| after("sc-")) {
        return !rest.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    }
    let jss = name.strip_prefix("jss");
    jss.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether digits and letters, or upper and lower case, alternate more often in this part of a name than in a word.
fn looks_like_a_hash(part: &str) -> bool {
    if part.len() < 5 || !part.is_ascii() {
        return false;
    }
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let letters = part.bytes().filter(u8::is_ascii_alphabetic).count();
    if part.len() >= 8 && digits >= 2 && part.bytes().all(|b| b.is_ascii_hexdigit()) {
        return true;
    }
    let kind = |b: u8| match b {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let bytes: Vec<u8> = part.bytes().collect();
    let changes = bytes
        .windows(2)
        // A capital at the start of a word is not an alternation: camelCase.
        .filter(|pair| {
            kind(pair[0]) != kind(pair[1]) && !(kind(pair[0]) == 2 && kind(pair[1]) == 1)
        })
        .count();
    let vowels = part.bytes().filter(|b| b"aeiouyAEIOUY".contains(b)).count();
    (digits > 0 && letters > 0 && changes >= 3)
        || (digits == 0 && changes >= 3 && part.len() <= 8 && vowels <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_recognised_and_words_are_not() {
        for name in [
            "css-1q2w3e",
            "sc-bdVaJa",
            "jss42",
            "item-20394",
            "Price_root__3fK9d",
            "a3f9c2e1b8",
            "ember1234",
            "_1a2b3c",
        ] {
            assert!(looks_generated(name), "{name}");
        }
        for name in [
            "price",
            "product-title",
            "col-md-6",
            "h2",
            "navBarMain",
            "infobox_v2",
            "parentProfile",
            "mw-content-text",
            "stat2",
            "css-grid",
        ] {
            assert!(!looks_generated(name), "{name}");
        }
    }
}
