//! The HTML tokenizer (HTML standard, 13.2.5): turns a whole page into the tokens that html5ever's tree builder
//! accepts.
//!
//! It replaces html5ever's own tokenizer, which is made for input that arrives in pieces: it takes characters one by
//! one from a queue of buffers, and can pause after each. Here the whole page is in memory, so each state is a search
//! for the next significant byte. The text before that byte is passed on as a slice of one shared buffer. On real pages
//! (149 KB on average), parsing takes 5.5 instead of 14 million instructions per page, and a page with its mapping
//! takes half the time. Both tokenizers produce the same tokens: the tests compare them, and the resulting trees, on
//! real, hand-written and random pages.
//!
//! A state of the standard is a position in this code. Parse errors are not reported, and states that differ only in
//! their errors are merged. Every function consumes input, in linear time. The number of tokens is bounded by the page,
//! and the number of attributes of a token by a limit. Long texts are split.

mod class;
#[cfg(any(test, feature = "compare"))]
pub(crate) mod compare;
mod declaration;
mod input;
mod names;
mod reference;
mod run;
mod script;
mod tag;
mod text;

#[cfg(test)]
mod tests;

use html5ever::LocalName;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};

use input::Input;
use names::Names;

/// The length of the longest text token. Longer text is split, so that the receiver can check its time limit in
/// between.
const TEXT_BYTES_PER_TOKEN: usize = 16 * 1024;

/// The line number of every token. Lines are not counted, because no receiver needs them.
const LINE: u64 = 1;

/// A receiver of tokens that may stop the tokenizer.
pub(crate) trait Audience: TokenSink {
    /// Whether to stop. The tokenizer calls this after every few tokens.
    fn should_stop(&self) -> bool;

    /// Whether to stop, after a look at the clock. The tokenizer calls this within long input that yields no token.
    fn should_stop_now(&self) -> bool;
}

/// Passes the tokens of `page` to `audience` until the end of the page, or until the audience stops.
/// At most `attribute_cap` attributes of a tag are read; repeated ones do not count.
pub(crate) fn tokenize(page: &str, audience: &impl Audience, attribute_cap: usize) {
    let input = Input::new(page);
    Tokenizer::new(&input, audience, attribute_cap).run();
}

/// The kind of text between tags. The tree builder decides it at each start tag, because text in a script, for example,
/// is read differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Data,
    Rcdata,
    Rawtext,
    Script,
    Plaintext,
}

struct Tokenizer<'i, A> {
    input: &'i Input,
    /// The input as text and as bytes. The tokenizer stops only at ASCII bytes, so always at a character boundary.
    text: &'i str,
    bytes: &'i [u8],
    /// The current position, in bytes.
    at: usize,
    audience: &'i A,
    attribute_cap: usize,
    names: Names,
    content: Content,
    /// The name of the last start tag. Only its end tag ends text that is not [`Content::Data`].
    last_start_tag: LocalName,
}

impl<'i, A: Audience> Tokenizer<'i, A> {
    fn new(input: &'i Input, audience: &'i A, attribute_cap: usize) -> Self {
        let text = input.text();
        Tokenizer {
            input,
            text,
            bytes: text.as_bytes(),
            at: 0,
            audience,
            attribute_cap,
            names: Names::default(),
            content: Content::Data,
            last_start_tag: LocalName::default(),
        }
    }

    fn run(&mut self) {
        while self.at < self.bytes.len() && !self.audience.should_stop() {
            match self.content {
                Content::Data => self.read_data(),
                Content::Rcdata => self.read_raw_text(true),
                Content::Rawtext => self.read_raw_text(false),
                Content::Script => self.read_script_data(),
                Content::Plaintext => self.read_plain_text(),
            }
        }
        if !self.audience.should_stop() {
            self.emit(Token::EOFToken);
            self.audience.end();
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn byte_at(&self, place: usize) -> Option<u8> {
        self.bytes.get(place).copied()
    }

    fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(class::is_whitespace) {
            self.at += 1;
        }
    }

    /// Moves to the end of the page, which also ends the current token.
    fn skip_to_end(&mut self) {
        self.at = self.bytes.len();
    }

    /// Whether the input continues with `word` (in lower case) at `place`, ignoring case.
    fn has_word(&self, place: usize, word: &str) -> bool {
        self.bytes
            .get(place..place + word.len())
            .is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
    }

    fn emit(&self, token: Token) {
        // The receiver's answer is needed only for tags; for other tokens it is always "continue".
        let _ = self.audience.process_token(token, LINE);
    }

    fn emit_text(&self, mut text: StrTendril) {
        while text.len() > TEXT_BYTES_PER_TOKEN {
            let piece = text.floor_char_boundary(TEXT_BYTES_PER_TOKEN) as u32;
            self.emit(Token::CharacterTokens(text.subtendril(0, piece)));
            text.pop_front(piece);
        }
        if !text.is_empty() {
            self.emit(Token::CharacterTokens(text));
        }
    }

    fn emit_tag(&mut self, tag: Tag) {
        if tag.kind == TagKind::StartTag {
            self.last_start_tag = tag.name.clone();
        }
        self.content = match self.audience.process_token(Token::TagToken(tag), LINE) {
            TokenSinkResult::Plaintext => Content::Plaintext,
            TokenSinkResult::RawData(RawKind::Rcdata) => Content::Rcdata,
            TokenSinkResult::RawData(RawKind::Rawtext) => Content::Rawtext,
            TokenSinkResult::RawData(RawKind::ScriptData | RawKind::ScriptDataEscaped(_)) => {
                Content::Script
            }
            TokenSinkResult::Continue
            | TokenSinkResult::Script(_)
            | TokenSinkResult::EncodingIndicator(_) => Content::Data,
        };
    }
}
