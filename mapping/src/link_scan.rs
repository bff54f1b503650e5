//! The links of a page whose tree nobody needs, by its tags alone.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::{LocalName, local_name};

/// What the tags of a page say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkScan {
    /// The `href` of the first `base` element that has one.
    pub(crate) base: Option<String>,
    /// The `href` of every `a` and `area`, as written, in order.
    pub(crate) hrefs: Vec<String>,
}

/// The input is handed over in pieces, so that reading can end early.
const PIECE_BYTES: usize = 64 << 10;

/// Reads `html` until there are more than `most` links, repetitions counted twice at most.
pub(crate) fn scan_links(html: &str, most: usize) -> LinkScan {
    let tokenizer = Tokenizer::new(Tags::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = html;
    while !rest.is_empty() && tokenizer.sink.0.borrow().hrefs.len() <= most.saturating_mul(2) {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        input.push_back(StrTendril::from_slice(piece));
        let _ = tokenizer.feed(&input);
        rest = after;
    }
    tokenizer.end();
    tokenizer.sink.0.into_inner()
}

#[derive(Default)]
struct Tags(RefCell<LinkScan>);

impl TokenSink for Tags {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => self.start_tag(&tag),
            _ => TokenSinkResult::Continue,
        }
    }
}

impl Tags {
    /// Keeps links, and tells the tokenizer where text begins that holds no tags, as the tree
    /// builder would.
    fn start_tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        match tag.name {
            local_name!("a") | local_name!("area") => {
                let href = attribute(tag, &local_name!("href"));
                self.0.borrow_mut().hrefs.extend(href);
            }
            local_name!("base") => {
                let scan = &mut *self.0.borrow_mut();
                scan.base = scan.base.take().or_else(|| attribute(tag, &local_name!("href")));
            }
            local_name!("title") | local_name!("textarea") => {
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            local_name!("style") | local_name!("xmp") | local_name!("iframe")
            | local_name!("noembed") | local_name!("noframes") => {
                return TokenSinkResult::RawData(RawKind::Rawtext);
            }
            local_name!("script") => return TokenSinkResult::RawData(RawKind::ScriptData),
            local_name!("plaintext") => return TokenSinkResult::Plaintext,
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

fn attribute(tag: &Tag, name: &LocalName) -> Option<String> {
    let attribute = tag.attrs.iter().find(|attribute| attribute.name.local == *name)?;
    Some(attribute.value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_those_of_elements_and_not_of_scripts_or_comments() {
        let html = r#"<base href="/b/"><a href="x?a=1&amp;b=2">x</a><A HREF='y'>
            <script>"<a href='no1'>"</script><!-- <a href=no2> --><textarea><a href=no3></textarea>
            <style><a href=no4></style><title><a href=no5></title><a name=n><area href=z><base href=c>"#;
        let scan = scan_links(html, 100);
        assert_eq!(scan.base.as_deref(), Some("/b/"));
        assert_eq!(scan.hrefs, ["x?a=1&b=2", "y", "z"]);
    }

    #[test]
    fn the_scan_ends_soon_after_the_limit() {
        let html = "<a href=x>x</a>".repeat(200_000);
        assert!(scan_links(&html, 1000).hrefs.len() < 10_000);
    }
}
