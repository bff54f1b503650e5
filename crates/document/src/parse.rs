//! Parses a page as HTML or XML within the limits.
//!
//! The parsers have no limits of their own, and some of their steps take quadratic time in numbers that a page controls
//! (open elements, attributes of one tag). So a guard between tokenizer and tree builder stops passing on tokens once a
//! limit is reached.

use std::cell::Cell;
use std::time::{Duration, Instant};

use html5ever::buffer_queue::BufferQueue;
use html5ever::interface::{TokenizerResult, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{self as html, TokenSinkResult};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};
use xml5ever::tokenizer::{self as xml, XmlTokenizer, XmlTokenizerOpts};
use xml5ever::tree_builder::{XmlTreeBuilder, XmlTreeBuilderOpts};

use crate::growing::Growing;
use crate::limits::{Limits, Truncation};
use crate::sink::{Handle, Sink};
use crate::tokenizer::{Audience, tokenize};

/// XML is passed on in pieces of this size. HTML is passed on as a whole.
const PIECE_BYTES: usize = 16 * 1024;
/// The number of tokens between two readings of the clock. Long text counts as several, because the tree builder may
/// split it at every space.
const TOKENS_BETWEEN_CHECKS: u32 = 256;
const TEXT_BYTES_PER_TOKEN: usize = 64;
/// The limit on the bytes of HTML, because the parser's buffers count their bytes in 32 bits.
const HTML_BYTES: usize = 1 << 30;
/// Parsing of XML stops if it yields no token for this long. Even megabytes of a single comment or attribute take only
/// a few dozen milliseconds. The cause is a tag with thousands of attributes: the tokenizer compares each of them with
/// all others. (The HTML tokenizer limits attributes itself.)
const TIME_WITHOUT_TOKEN: Duration = Duration::from_millis(500);

/// The tree of the part of a page that was read, and why reading stopped before the end, if it did.
pub(crate) struct Parsed {
    pub(crate) tree: Growing,
    pub(crate) truncation: Option<Truncation>,
}

pub(crate) fn parse_html(text: &str, limits: &Limits) -> Parsed {
    let options = TreeBuilderOpts {
        scripting_enabled: false,
        drop_doctype: true,
        ..Default::default()
    };
    let readable = truncate_to_limit(text, limits.input_bytes.min(HTML_BYTES));
    let builder = TreeBuilder::new(Sink::new(limits, readable.len()), options);
    let guard = Guard::new(builder, limits);
    tokenize(readable, &guard, limits.attributes_per_element);
    let fits = (readable.len() < text.len()).then_some(Truncation::InputBytes);
    let Guard {
        builder, progress, ..
    } = guard;
    Parsed {
        tree: builder.sink.finish(),
        truncation: progress.stopped.get().or(fits),
    }
}

pub(crate) fn parse_xml(text: &str, limits: &Limits) -> Parsed {
    let builder = XmlTreeBuilder::new(
        Sink::new(limits, PIECE_BYTES),
        XmlTreeBuilderOpts::default(),
    );
    let tokenizer = XmlTokenizer::new(Guard::new(builder, limits), XmlTokenizerOpts::default());
    let fits = feed(text, limits, &tokenizer.sink.progress, |queue| {
        while let TokenizerResult::Script(_) = tokenizer.feed(queue) {}
    });
    if tokenizer.sink.progress.stopped.get().is_none() {
        tokenizer.end();
    }
    let Guard {
        builder, progress, ..
    } = tokenizer.sink;
    Parsed {
        tree: builder.sink.finish(),
        truncation: progress.stopped.get().or(fits),
    }
}

/// The beginning of `text`, which is at most `bytes` long.
fn truncate_to_limit(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Feeds `text` to the parser piece by piece until a limit is reached.
fn feed(
    text: &str,
    limits: &Limits,
    progress: &Progress,
    consume: impl Fn(&BufferQueue),
) -> Option<Truncation> {
    let readable = truncate_to_limit(text, limits.input_bytes);
    let mut rest = readable;
    let queue = BufferQueue::default();
    let (mut tokens_before, mut last_token) = (0, Instant::now());
    while !rest.is_empty() && progress.stopped.get().is_none() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES));
        rest = after;
        queue.push_back(StrTendril::from_slice(piece));
        consume(&queue);
        if progress.tokens.get() != tokens_before {
            (tokens_before, last_token) = (progress.tokens.get(), Instant::now());
        } else if last_token.elapsed() > TIME_WITHOUT_TOKEN {
            progress.stopped.set(Some(Truncation::Attributes));
        }
        progress.stop_after_deadline();
    }
    (readable.len() < text.len()).then_some(Truncation::InputBytes)
}

/// Counts tokens, and decides whether the parser must stop.
struct Progress {
    stopped: Cell<Option<Truncation>>,
    tokens: Cell<u32>,
    deadline: Instant,
}

impl Progress {
    fn stop_after_deadline(&self) {
        if self.stopped.get().is_none() && Instant::now() >= self.deadline {
            self.stopped.set(Some(Truncation::ParseTime));
        }
    }
}

struct Guard<Builder> {
    builder: Builder,
    progress: Progress,
    attributes_per_element: usize,
}

impl<Builder> Guard<Builder> {
    fn new(builder: Builder, limits: &Limits) -> Self {
        let deadline = Instant::now() + limits.parse_time;
        let progress = Progress {
            stopped: Cell::new(None),
            tokens: Cell::new(0),
            deadline,
        };
        Guard {
            builder,
            progress,
            attributes_per_element: limits.attributes_per_element,
        }
    }

    fn is_closed(&self) -> bool {
        self.progress.stopped.get().is_some()
    }

    fn count_tokens(&self, count: u32, full: Option<Truncation>) {
        let before = self.progress.tokens.get();
        let tokens = before.wrapping_add(count);
        self.progress.tokens.set(tokens);
        if full.is_some() {
            self.progress.stopped.set(full);
        } else if tokens / TOKENS_BETWEEN_CHECKS != before / TOKENS_BETWEEN_CHECKS {
            self.progress.stop_after_deadline();
        }
    }
}

impl html::TokenSink for Guard<TreeBuilder<Handle, Sink>> {
    type Handle = Handle;

    fn process_token(&self, token: html::Token, line: u64) -> TokenSinkResult<Handle> {
        if self.is_closed() {
            return TokenSinkResult::Continue;
        }
        let count = match &token {
            html::Token::CharacterTokens(text) => 1 + (text.len() / TEXT_BYTES_PER_TOKEN) as u32,
            _ => 1,
        };
        let result = self.builder.process_token(token, line);
        self.count_tokens(count, self.builder.sink.reached_limit());
        result
    }

    fn end(&self) {
        html::TokenSink::end(&self.builder);
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder
            .adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl Audience for Guard<TreeBuilder<Handle, Sink>> {
    fn should_stop(&self) -> bool {
        self.is_closed()
    }

    fn should_stop_now(&self) -> bool {
        self.progress.stop_after_deadline();
        self.is_closed()
    }
}

impl xml::TokenSink for Guard<XmlTreeBuilder<Handle, Sink>> {
    type Handle = Handle;

    fn process_token(&self, mut token: xml::Token) -> xml::ProcessResult<Handle> {
        if self.is_closed() || matches!(token, xml::Token::ParseError(_)) {
            return xml::ProcessResult::Continue;
        }
        if let xml::Token::Tag(tag) = &mut token {
            tag.attrs.truncate(self.attributes_per_element);
        }
        let result = self.builder.process_token(token);
        self.count_tokens(1, self.builder.sink.reached_limit());
        result
    }

    fn end(&self) {
        xml::TokenSink::end(&self.builder);
    }
}
