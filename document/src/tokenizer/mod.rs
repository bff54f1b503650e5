//! The HTML tokenizer (HTML standard, 13.2.5): a page as one piece of text becomes the tokens that
//! html5ever's tree builder takes.
//!
//! It is our own because html5ever's took 60 % of the time of a page (real ones, 149 KB on
//! average). That one is made for a network that delivers pieces: it takes characters from a
//! queue of buffers one by one, grows names and values a character at a time and is ready to wait
//! for more after each. Here the whole page is at hand, so each state is a search for the next
//! byte that means something, and what lies before it is handed on as a part of one shared
//! buffer. Measured on the same pages: parsing takes 5.5 million instructions a page, not 14, and
//! a page with its mapping half the time. The tokens are the same; the tests compare both
//! tokenizers, and the trees that come of them, on real, written and random pages.
//!
//! What the standard calls states is here the place in the code. Parse errors are not reported,
//! since nobody reads them; states that differ only in the errors they report are one. Every
//! function takes time linear in what it consumes and consumes something; tokens are bounded by
//! the page, their attributes by a cap, long texts come in pieces.

mod attribute;
mod class;
mod comment;
#[cfg(any(test, feature = "compare"))]
pub(crate) mod compare;
mod doctype;
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

/// Longer text is handed on in several tokens, so that its reader can look at the clock between.
const TEXT_BYTES_PER_TOKEN: usize = 16 * 1024;

/// The tree builder passes lines on to a sink that wants them. Ours does not, so none are counted.
const LINE: u64 = 1;

/// A taker of tokens that may end the reading.
pub(crate) trait Audience: TokenSink {
    /// Whether no further token is wanted; asked after every token.
    fn has_left(&self) -> bool;

    /// The same after a look at the clock; asked within what yields no token for long.
    fn has_left_by_now(&self) -> bool;
}

/// Hands the tokens of `page` to `audience`, to the end of the page unless the audience leaves
/// before. Of one tag, `attribute_cap` attributes are read; a repeated one does not count.
pub(crate) fn tokenize(page: &str, audience: &impl Audience, attribute_cap: usize) {
    let input = Input::new(page);
    Tokenizer::new(&input, audience, attribute_cap).run();
}

/// What the text between tags is, which the tree builder decides at each start tag.
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
    /// The input as text and as bytes. All that steers a tokenizer is ASCII, so every place where
    /// it stops is a boundary of characters.
    text: &'i str,
    bytes: &'i [u8],
    /// What has been read, in bytes.
    at: usize,
    audience: &'i A,
    attribute_cap: usize,
    names: Names,
    content: Content,
    /// The only tag that ends a text other than [`Content::Data`].
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
        while self.at < self.bytes.len() && !self.audience.has_left() {
            match self.content {
                Content::Data => self.data(),
                Content::Rcdata => self.raw_text(true),
                Content::Rawtext => self.raw_text(false),
                Content::Script => self.script_data(),
                Content::Plaintext => self.plain_text(),
            }
        }
        if !self.audience.has_left() {
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

    /// Reads nothing further: what was begun is not finished within the page.
    fn skip_to_end(&mut self) {
        self.at = self.bytes.len();
    }

    /// Whether the input goes on with `word` (in lower case) at `place`, letters' case aside.
    fn has_word(&self, place: usize, word: &str) -> bool {
        self.bytes
            .get(place..place + word.len())
            .is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
    }

    fn emit(&self, token: Token) {
        // Only tags are answered with more than "go on".
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
