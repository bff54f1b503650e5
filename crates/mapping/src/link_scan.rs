//! Finds the links of an HTML page in its tags, without building a tree.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::{LocalName, local_name};

use crate::robots_directives;

/// The links found in a page's tags.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkScan {
    /// The `href` of the first `base` element that has one.
    pub(crate) base: Option<String>,
    /// The `href` of every `a` and `area`, and the `src` of every `frame`, as written, in order.
    pub(crate) hrefs: Vec<String>,
    /// Whether the page forbids following its links.
    pub(crate) is_nofollow: bool,
    /// Whether the scan ended before the end of the page.
    pub(crate) cut: bool,
}

const PIECE_BYTES: usize = 16 << 10;

/// The scan ends if it gets no token for this long. A hostile tag may have so many attributes that comparing each with
/// all earlier ones takes too long.
const TIME_WITHOUT_TOKEN: Duration = Duration::from_millis(300);

/// Scans `html` for links until the deadline, or until it has twice as many as wanted, because some are duplicates.
pub(crate) fn scan_links(html: &str, most: usize, deadline: Option<Instant>) -> LinkScan {
    let tokenizer = Tokenizer::new(Tags::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    let (mut tokens, mut last_token) = (0, Instant::now());
    let mut rest = html;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES));
        input.push_back(StrTendril::from_slice(piece));
        let _ = tokenizer.feed(&input);
        rest = after;
        let now = Instant::now();
        if tokenizer.sink.tokens.get() != tokens {
            (tokens, last_token) = (tokenizer.sink.tokens.get(), now);
        }
        let enough = tokenizer.sink.link_count() > most.saturating_mul(2);
        let stuck = now.duration_since(last_token) > TIME_WITHOUT_TOKEN;
        if enough || stuck || deadline.is_some_and(|deadline| now >= deadline) {
            break;
        }
    }
    if rest.is_empty() {
        tokenizer.end();
    }
    let mut scan = tokenizer.sink.scan.into_inner();
    scan.cut = !rest.is_empty();
    scan
}

#[derive(Default)]
struct Tags {
    scan: RefCell<LinkScan>,
    tokens: Cell<u64>,
}

impl TokenSink for Tags {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        self.tokens.set(self.tokens.get() + 1);
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => self.read_start_tag(&tag),
            _ => TokenSinkResult::Continue,
        }
    }
}

impl Tags {
    fn link_count(&self) -> usize {
        self.scan.borrow().hrefs.len()
    }

    /// Collects the link or the base of a start tag, and notes `nofollow`. Also informs the tokenizer where raw text
    /// begins, as a tree builder does.
    fn read_start_tag(&self, tag: &Tag) -> TokenSinkResult<()> {
        match tag.name {
            local_name!("a") | local_name!("area") => {
                let href = attribute(tag, &local_name!("href"));
                self.scan.borrow_mut().hrefs.extend(href);
            }
            local_name!("frame") => {
                let source = attribute(tag, &local_name!("src"));
                self.scan.borrow_mut().hrefs.extend(source);
            }
            local_name!("base") => {
                let scan = &mut *self.scan.borrow_mut();
                scan.base = scan
                    .base
                    .take()
                    .or_else(|| attribute(tag, &local_name!("href")));
            }
            local_name!("meta") => {
                let name = attribute(tag, &local_name!("name"));
                if name.is_some_and(|name| robots_directives::is_for_us(&name)) {
                    let content = attribute(tag, &local_name!("content")).unwrap_or_default();
                    self.scan.borrow_mut().is_nofollow |= robots_directives::is_nofollow(&content);
                }
            }
            local_name!("title") | local_name!("textarea") => {
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            local_name!("style")
            | local_name!("xmp")
            | local_name!("iframe")
            | local_name!("noembed")
            | local_name!("noframes") => {
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
    let attribute = tag
        .attrs
        .iter()
        .find(|attribute| attribute.name.local == *name)?;
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
        let scan = scan_links(html, 100, None);
        assert_eq!(scan.base.as_deref(), Some("/b/"));
        assert_eq!(scan.hrefs, ["x?a=1&b=2", "y", "z"]);
    }

    #[test]
    fn the_scan_ends_soon_after_the_limit() {
        let html = "<a href=x>x</a>".repeat(200_000);
        let scan = scan_links(&html, 1000, None);
        assert!(scan.cut && scan.hrefs.len() < 10_000);
    }

    #[test]
    fn a_tag_of_a_million_attributes_is_given_up() {
        let attributes: String = (0..1_000_000).map(|number| format!(" a{number}")).collect();
        let start = Instant::now();
        let scan = scan_links(&format!("<a href=x>x</a><a{attributes}>"), 100, None);
        assert!(scan.cut && scan.hrefs == ["x"]);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
