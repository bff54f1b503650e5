//! Compares this tokenizer with html5ever's, and with the HTML standard.

mod html5lib;
mod random;
mod real;
mod standard;
mod states;

use std::cell::RefCell;

use html5ever::LocalName;
use html5ever::tokenizer::{Token, TokenSink, TokenSinkResult};

use super::compare::Tokens;
use super::input::Input;
use super::{Audience, Content, Tokenizer};

/// Records all tokens. It always answers "continue", so the kind of text never changes.
#[derive(Default)]
struct Listener {
    tokens: RefCell<Tokens>,
    is_foreign: bool,
}

impl TokenSink for Listener {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        self.tokens.borrow_mut().add(&token);
        TokenSinkResult::Continue
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.is_foreign
    }
}

impl Audience for Listener {
    fn should_stop(&self) -> bool {
        false
    }

    fn should_stop_now(&self) -> bool {
        false
    }
}

/// Returns the tokens of `page` if it begins with text of the kind `content`, within the element `last_start_tag`.
fn tokens(page: &str, content: Content, last_start_tag: &str) -> Vec<Token> {
    let (input, listener) = (Input::new(page), Listener::default());
    let mut tokenizer = Tokenizer::new(&input, &listener, usize::MAX);
    tokenizer.content = content;
    tokenizer.last_start_tag = LocalName::from(last_start_tag);
    tokenizer.run();
    listener.tokens.into_inner().0
}
