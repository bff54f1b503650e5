//! Recognises pages that only lead their readers to another page: they refresh to its address soon (`<meta
//! http-equiv="refresh">`, the header `Refresh`), and a mapping reads nothing from them. Such a page ends as a
//! redirect, as in search engines, and its target is judged like that of any redirect. Its links are kept, because they
//! may be worth following.
//!
//! A refresh is not a redirect if it leads to the page itself, or if it comes after a long time, because the page is
//! then meant to be read. A refresh for browsers without scripts counts only on a page that shows next to nothing.

use std::borrow::Cow;

use webfill_store::has_value;
use webfill_urls::Url;
use webfill_wire::Outcome;

use crate::blocks::{self, LONGEST_REFRESH_SECONDS, PageRefresh, Refresh, is_same_page};
use crate::task_result::TaskResult;

/// Ends a read page as a redirect if it only leads its readers to another page. `html` is the page's text, if it is
/// HTML.
pub(crate) fn end_if_redirecting(result: &mut TaskResult, url: &Url, html: Option<&str>) {
    let is_read = result.fields.values().any(has_value);
    if result.outcome != Outcome::Ok || is_read {
        return;
    }
    let header = result.refresh.as_deref().and_then(Refresh::read);
    let target = header
        .and_then(|refresh| refresh_target(refresh, url, None))
        .or_else(|| html.and_then(|html| target_of_page(html, url)));
    if let Some(target) = target {
        end_as_redirect(result, target);
    }
}

fn target_of_page(html: &str, url: &Url) -> Option<Url> {
    let PageRefresh {
        refresh,
        is_for_no_script,
        base,
    } = blocks::find_refresh(html)?;
    if is_for_no_script && !blocks::is_short(html) {
        return None;
    }
    refresh_target(refresh, url, base)
}

/// The target of a refresh of the page at `url`; `None` if the refresh leads to the page itself, or only after a long
/// time.
fn refresh_target(refresh: Refresh<'_>, url: &Url, base: Option<&str>) -> Option<Url> {
    if refresh.seconds > LONGEST_REFRESH_SECONDS {
        return None;
    }
    let written = decode_references(refresh.target?);
    let target = written.trim_matches(|c: char| c.is_ascii_whitespace() || c == '"' || c == '\'');
    let base = base.and_then(|base| url.join(&decode_references(base)).ok());
    let target = base.as_ref().unwrap_or(url).join(target).ok()?;
    let is_web = matches!(target.scheme(), "http" | "https");
    (is_web && !is_same_page(&target, url)).then_some(target)
}

/// Decodes the character references in an attribute's value, such as `&amp;`, that occur in addresses.
fn decode_references(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return text.into();
    }
    let mut pieces = text.split('&');
    let mut decoded = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let read = parse_numeric_reference(piece).or_else(|| parse_named_reference(piece));
        let (character, rest) = read.unwrap_or(('&', piece));
        decoded.push(character);
        decoded.push_str(rest);
    }
    decoded.into()
}

/// Reads a numeric reference such as `#47;` or `#x2F;`: the character, and the text after it.
fn parse_numeric_reference(piece: &str) -> Option<(char, &str)> {
    let number = piece.strip_prefix('#')?;
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix));
    let (digits, rest) = digits.split_at(end.unwrap_or(digits.len()));
    let character = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
    Some((character, rest.strip_prefix(';').unwrap_or(rest)))
}

fn parse_named_reference(piece: &str) -> Option<(char, &str)> {
    const NAMES: [(&str, char); 14] = [
        ("amp;", '&'),
        ("AMP;", '&'),
        ("quot;", '"'),
        ("apos;", '\''),
        ("sol;", '/'),
        ("colon;", ':'),
        ("quest;", '?'),
        ("equals;", '='),
        ("num;", '#'),
        ("period;", '.'),
        ("percnt;", '%'),
        ("plus;", '+'),
        ("lowbar;", '_'),
        ("nbsp;", '\u{a0}'),
    ];
    let mut names = NAMES.iter();
    names.find_map(|(name, character)| Some((*character, piece.strip_prefix(name)?)))
}

fn end_as_redirect(result: &mut TaskResult, target: Url) {
    result.outcome = Outcome::Redirected;
    result.error = Some("a refresh sends its readers to another page".into());
    result.redirect = Some(target.into());
    result.fields.clear();
    result.alternatives.clear();
    result.listings.clear();
    result.row_counts.clear();
    result.mapping = None;
    result.mapping_version = None;
    result.template = None;
    // The next request must be unconditional, because a 304 would hide the target.
    result.validators = None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_quick_refresh_to_another_address_is_a_redirect() {
        let url = Url::parse("https://site.example/shop/item?id=7").unwrap();
        let text = "words of a page ".repeat(30);
        let meta = |content: &str| format!("<meta http-equiv=Refresh content=\"{content}\">");
        let rows = [
            (meta("0;url=/new"), Some("https://site.example/new")),
            (meta("0; URL=new"), Some("https://site.example/shop/new")),
            (meta("10; url='//b.example/'"), Some("https://b.example/")),
            (
                meta("0;url=&#39;/a?x=1&amp;y=2&#39;"),
                Some("https://site.example/a?x=1&y=2"),
            ),
            (
                meta("0;url=&#47;a&quest;x=1&#38;amp;&#x79;=&#252;"),
                Some("https://site.example/a?x=1&amp;y=%C3%BC"),
            ),
            (
                meta("0;url=/a?x=1&copy=2&y=&#;&#xfffffff;"),
                Some("https://site.example/a?x=1&copy=2&y=&#;&#xfffffff;"),
            ),
            (meta(".5;url=/new"), Some("https://site.example/new")),
            (meta("11; url=/new"), None),
            (meta("0"), None),
            (meta("0; url="), None),
            (meta("0; url=?id=7"), None),
            (meta("0; url=#top"), None),
            (meta("0; url=mailto:a@b.example"), None),
            (meta("soon; url=/new"), None),
            (format!("<!-- {} -->", meta("0; url=/new")), None),
            (format!("<script>'{}'</script>", meta("0; url=/new")), None),
            (
                format!("{}{text}", meta("5; url=/new")),
                Some("https://site.example/new"),
            ),
            (
                format!("<base href=/deep/>{}", meta("0; url=new")),
                Some("https://site.example/deep/new"),
            ),
            (
                format!("<noscript>{}</noscript>", meta("0; url=/plain")),
                Some("https://site.example/plain"),
            ),
            (
                format!("<noscript>{}</noscript>{text}", meta("0; url=/plain")),
                None,
            ),
            (
                format!("<noscript>x</noscript>{}{text}", meta("0; url=/new")),
                Some("https://site.example/new"),
            ),
            (text.clone(), None),
        ];
        for (html, expected) in rows {
            let target = target_of_page(&html, &url);
            assert_eq!(target.as_ref().map(Url::as_str), expected, "{html}");
        }
    }
}
