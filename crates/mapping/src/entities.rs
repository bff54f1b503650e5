//! Resolves HTML's character references (`&eacute;`, `&#233;`).

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{RawKind, State};
use html5ever::tokenizer::{
    BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};

/// Resolves the character references in `text`. Tags and all other text are unchanged.
pub(crate) fn decode_references(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    // In this state of the tokenizer (RCDATA), only references have a special meaning.
    let options = TokenizerOpts {
        initial_state: Some(State::RawData(RawKind::Rcdata)),
        discard_bom: false,
        ..TokenizerOpts::default()
    };
    let tokenizer = Tokenizer::new(Characters::default(), options);
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(text));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner()
}

#[derive(Default)]
struct Characters(RefCell<String>);

impl TokenSink for Characters {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) => self.0.borrow_mut().push_str(&text),
            Token::NullCharacterToken => self.0.borrow_mut().push('\u{fffd}'),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_as_browsers_do() {
        for (text, expected) in [
            ("&lt;b&gt; &notit; &copy 2024", "<b> ¬it; © 2024"),
            ("&#0; &#128; &#x1F600;", "\u{fffd} € 😀"),
            (
                "</title> &amp;amp; </textarea>",
                "</title> &amp; </textarea>",
            ),
            ("a & b &unknown; &", "a & b &unknown; &"),
            ("line\nbreak &nbsp;", "line\nbreak \u{a0}"),
        ] {
            assert_eq!(decode_references(text), expected);
        }
    }
}
