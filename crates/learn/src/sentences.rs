//! Recognises words of sentences. A description has words of all kinds, so it is weak evidence if a known value is one
//! of them.

/// The fewest words of a sentence. A shorter text is a name, a label with its value, or a heading.
const FEWEST_WORDS: usize = 8;

/// Whether the value at this place of the text is a single word of a sentence. A value of several words, or with
/// digits, is seldom in a sentence by chance.
pub fn is_word_of_sentence(text: &str, start: usize, length: usize) -> bool {
    let value = &text[start..start + length];
    let (before, after) = (&text[..start], &text[start + length..]);
    let follows_word = before.ends_with(' ') && before.trim_end().ends_with(char::is_alphabetic);
    let precedes_word = after
        .strip_prefix(' ')
        .is_some_and(|after| after.starts_with(char::is_alphabetic));
    value.chars().all(char::is_alphabetic)
        && (follows_word || precedes_word)
        && text.split_whitespace().nth(FEWEST_WORDS - 1).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_sentences_are_told_from_values() {
        let is_one = |text: &str, value: &str| {
            let start = text.find(value).unwrap();
            is_word_of_sentence(text, start, value.len())
        };
        let sentence =
            "The menu has eggs, a Mexican egg dish called migas, and Salads for 12 people";
        assert!(is_one(sentence, "Mexican") && is_one(sentence, "Salads"));
        // These are not words of a sentence: a number, several words, a word in a short text, in a list, and in an
        // object of a script.
        assert!(!is_one(sentence, "12") && !is_one(sentence, "egg dish"));
        assert!(!is_one("Cuisine: Mexican", "Mexican"));
        let list = "American, Chinese, French, Greek, Indian, Italian, Japanese, Mexican, Thai";
        assert!(!is_one(list, "Mexican"));
        let script =
            r#"var a = {"name": "Ada's", "kind": "Mexican", "open": "at noon and at night"}"#;
        assert!(!is_one(script, "Mexican"));
    }
}
