//! Quotes words of shell commands that are suggested to people.

/// Formats a text as one word of a shell command, quoted if necessary.
pub fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_split_are_quoted() {
        assert_eq!(quote("https://a.example/x_1?"), "'https://a.example/x_1?'");
        assert_eq!(quote("https://a.example/1"), "https://a.example/1");
        assert_eq!(quote("?a=1&b=$(reboot)"), "'?a=1&b=$(reboot)'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }
}
