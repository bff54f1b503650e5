//! Compares the tokens of this tokenizer, and the trees made of them, with those of html5ever. Only tests and fuzzing
//! use it.

use std::cell::RefCell;
use std::fmt::Write;

use html5ever::buffer_queue::BufferQueue;
use html5ever::interface::{TokenizerResult, TreeSink};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{self as html, Token, TokenSink, TokenSinkResult, TokenizerOpts};
use html5ever::tree_builder::{TreeBuilder, TreeBuilderOpts};

use super::{Audience, tokenize};
use crate::growing::{DOCUMENT, Data, Growing, NONE};
use crate::limits::Limits;
use crate::sink::{Handle, Sink};

/// What one tokenizer has read: its tokens, and the tree made of them.
#[derive(PartialEq)]
struct Reading {
    tokens: Vec<Token>,
    /// The nodes in document order, one per line.
    tree: String,
}

/// Panics, with the page and the first difference, if the two tokenizers read `page` differently.
pub fn assert_tokenizers_agree(page: &str) {
    let (ours, theirs) = (read(page), read_by_html5ever(page));
    if ours == theirs {
        return;
    }
    let start = &page[..page.floor_char_boundary(2_000)];
    let place = first_difference(ours.tokens.iter(), theirs.tokens.iter());
    if let Some((ours, theirs)) = place {
        panic!("{start:?} is read as {ours:?}, not {theirs:?}");
    }
    let nodes = first_difference(ours.tree.lines(), theirs.tree.lines());
    panic!("{start:?} becomes another tree: {nodes:?}");
}

type Difference<T> = (Option<T>, Option<T>);

fn first_difference<T: PartialEq>(
    mut ours: impl Iterator<Item = T>,
    mut theirs: impl Iterator<Item = T>,
) -> Option<Difference<T>> {
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return None,
            (ours, theirs) if ours != theirs => return Some((ours, theirs)),
            _ => {}
        }
    }
}

fn read(page: &str) -> Reading {
    let recorder = Recorder::new();
    tokenize(page, &recorder, usize::MAX);
    recorder.finish()
}

fn read_by_html5ever(page: &str) -> Reading {
    // The option keeps byte order marks. By default, html5ever drops one at the beginning of every piece.
    let options = TokenizerOpts {
        discard_bom: false,
        ..TokenizerOpts::default()
    };
    let tokenizer = html::Tokenizer::new(Recorder::new(), options);
    let queue = BufferQueue::default();
    let page = page.strip_prefix('\u{feff}').unwrap_or(page);
    queue.push_back(StrTendril::from_slice(page));
    while !matches!(tokenizer.feed(&queue), TokenizerResult::Done) {}
    tokenizer.end();
    tokenizer.sink.finish()
}

/// Records the tokens, and passes them to a tree builder, because the builder decides how scripts and other raw texts
/// are read.
struct Recorder {
    builder: TreeBuilder<Handle, Sink>,
    tokens: RefCell<Tokens>,
}

impl Recorder {
    fn new() -> Self {
        let options = TreeBuilderOpts {
            scripting_enabled: false,
            drop_doctype: true,
            ..TreeBuilderOpts::default()
        };
        Recorder {
            builder: TreeBuilder::new(Sink::new(&Limits::default(), 0), options),
            tokens: RefCell::new(Tokens::default()),
        }
    }

    fn finish(self) -> Reading {
        Reading {
            tokens: self.tokens.into_inner().0,
            tree: format_tree(&self.builder.sink.finish()),
        }
    }
}

impl TokenSink for Recorder {
    type Handle = Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Handle> {
        if let Token::ParseError(_) = token {
            return TokenSinkResult::Continue;
        }
        self.tokens.borrow_mut().add(&token);
        self.builder.process_token(token, line)
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder
            .adjusted_current_node_present_but_not_in_html_namespace()
    }
}

impl Audience for Recorder {
    fn should_stop(&self) -> bool {
        false
    }

    fn should_stop_now(&self) -> bool {
        false
    }
}

/// The recorded tokens. Adjacent texts are joined, because tokenizers may split text anywhere.
#[derive(Default)]
pub(super) struct Tokens(pub(super) Vec<Token>);

impl Tokens {
    pub(super) fn add(&mut self, token: &Token) {
        match (token, self.0.last_mut()) {
            (Token::CharacterTokens(more), Some(Token::CharacterTokens(text))) => {
                text.push_slice(more);
            }
            (Token::CharacterTokens(text), _) if text.is_empty() => {}
            _ => self.0.push(copy_token(token)),
        }
    }
}

fn copy_token(token: &Token) -> Token {
    match token {
        Token::DoctypeToken(doctype) => Token::DoctypeToken(doctype.clone()),
        Token::TagToken(tag) => Token::TagToken(tag.clone()),
        Token::CommentToken(text) => Token::CommentToken(text.clone()),
        Token::CharacterTokens(text) => Token::CharacterTokens(text.clone()),
        Token::NullCharacterToken => Token::NullCharacterToken,
        Token::EOFToken => Token::EOFToken,
        Token::ParseError(message) => Token::ParseError(message.clone()),
    }
}

fn format_tree(tree: &Growing) -> String {
    let mut written = String::new();
    let mut open = vec![(0, DOCUMENT)];
    while let Some((depth, place)) = open.pop() {
        let node = &tree.nodes[place as usize];
        if node.next != NONE {
            open.push((depth, node.next));
        }
        if node.first_child != NONE {
            open.push((depth + 1, node.first_child));
        }
        writeln!(written, "{depth} {}", format_node(&node.data)).expect("strings take everything");
    }
    written
}

fn format_node(data: &Data) -> String {
    match data {
        Data::Document => "document".to_owned(),
        Data::Element {
            name, attributes, ..
        } => {
            let attributes = attributes
                .iter()
                .map(|attribute| (&attribute.name, &*attribute.value));
            format!("{name:?} {:?}", Vec::from_iter(attributes))
        }
        Data::Text(text) => format!("{:?}", &**text),
        Data::Comment(text) => format!("comment {:?}", &**text),
        Data::Instruction { target, data } => format!("{:?} {:?}", &**target, &**data),
    }
}
