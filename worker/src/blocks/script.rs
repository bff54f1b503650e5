//! Whether an inline script loads its own page again, or goes to another page.

use memchr::memmem;
use webfill_urls::Url;

use super::target::{is_same_page, is_same_path, names_a_challenge};

/// How many address changes are inspected in one script, and how long an address in one may be. Both bound the time
/// that a hostile script costs.
const MOST_MOVES: usize = 100;
const LONGEST_ADDRESS: usize = 2048;

/// A parameter value is a token, not a word, from these lengths on: the long one applies to any value, the short one to
/// a value that mixes digits and letters.
const LONG_TOKEN: usize = 16;
const SHORT_TOKEN: usize = 6;

/// The text after `location` when a script reads its own page's address.
const OWN_ADDRESS: [&str; 4] = [".href", ".pathname", ".toString", ".search"];

/// Whether `script` contains a statement that loads the page at `url` again: `location.reload()`,
/// or an assignment of the page's own address. A script that moves on to another address is an
/// ordinary redirect. Challenges that set a cookie may add a query to the address.
pub fn reloads(script: &str, url: &Url) -> bool {
    address_changes(script).any(|found| match found {
        AddressChange::Reload => true,
        AddressChange::To(target) => is_own_address(target, script, url),
    })
}

/// Whether `script` contains an ordinary redirect: a statement that goes to another, literal address that does not
/// name a challenge.
pub fn moves_away(script: &str, url: &Url) -> bool {
    address_changes(script).any(|found| {
        let AddressChange::To(target) = found else {
            return false;
        };
        let target = parse_literal(target).and_then(|target| url.join(target).ok());
        target.is_some_and(|target| {
            !is_same_path(&target, url)
                && !names_a_challenge(&target, url)
                && !submits_token(&target, url)
        })
    })
}

/// Whether an address is the front page of the same host with a token, which is how challenges submit their result.
/// Anything the script appends to the address is ignored.
fn submits_token(target: &Url, url: &Url) -> bool {
    let is_front = target.host_str() == url.host_str() && target.path() == "/";
    is_front && target.query_pairs().any(|(_, value)| is_token(&value))
}

fn is_token(value: &str) -> bool {
    let has = |is: fn(&char) -> bool| value.chars().any(|character| is(&character));
    let is_mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    value.is_empty() || value.len() >= LONG_TOKEN || (is_mixed && value.len() >= SHORT_TOKEN)
}

fn address_changes(script: &str) -> impl Iterator<Item = AddressChange<'_>> {
    let places = memmem::find_iter(script.as_bytes(), b"location");
    let moves = places
        .filter(|at| !is_inside_a_name(script, *at))
        .filter_map(|at| AddressChange::read(&script[at + "location".len()..]));
    moves.take(MOST_MOVES)
}

/// The string literal that an expression begins with.
fn parse_literal(expression: &str) -> Option<&str> {
    let quote = expression.chars().next()?;
    if !matches!(quote, '"' | '\'' | '`') {
        return None;
    }
    let end = expression.floor_char_boundary(LONGEST_ADDRESS);
    Some(expression[1..end].split_once(quote)?.0)
}

/// A statement that changes the address.
enum AddressChange<'a> {
    Reload,
    /// Goes to a new address, which the text begins with.
    To(&'a str),
}

impl<'a> AddressChange<'a> {
    /// Reads the text after `location`; `None` if it does not change the address.
    fn read(after: &'a str) -> Option<AddressChange<'a>> {
        if parse_call(after, ".reload").is_some() {
            return Some(AddressChange::Reload);
        }
        parse_call(after, ".replace")
            .or_else(|| parse_call(after, ".assign"))
            .or_else(|| parse_assignment(after.strip_prefix(".href").unwrap_or(after)))
            .map(AddressChange::To)
    }
}

fn parse_call<'a>(after: &'a str, method: &str) -> Option<&'a str> {
    let arguments = after.strip_prefix(method)?.trim_ascii_start();
    Some(arguments.strip_prefix('(')?.trim_ascii_start())
}

fn parse_assignment(after: &str) -> Option<&str> {
    let value = after.trim_ascii_start().strip_prefix('=')?;
    (!value.starts_with('=')).then(|| value.trim_ascii_start())
}

fn is_own_address(target: &str, script: &str, url: &Url) -> bool {
    if target.starts_with(['"', '\'', '`']) {
        let Some(literal) = parse_literal(target) else {
            return false;
        };
        return url.join(literal).is_ok_and(|target| {
            is_same_page(&target, url) || (is_same_path(&target, url) && sets_cookie(script))
        });
    }
    let expression = target
        .trim_start_matches("window.")
        .trim_start_matches("document.")
        .trim_start_matches("self.");
    let Some(rest) = expression.strip_prefix("location") else {
        return expression.starts_with("URL");
    };
    match rest.as_bytes().first() {
        Some(b'.') => OWN_ADDRESS.iter().any(|name| rest.starts_with(name)),
        Some(next) => !next.is_ascii_alphanumeric(),
        None => true,
    }
}

fn sets_cookie(script: &str) -> bool {
    const COOKIE: &str = "document.cookie";
    memmem::find_iter(script.as_bytes(), COOKIE)
        .any(|at| parse_assignment(&script[at + COOKIE.len()..]).is_some())
}

/// Whether the name at `at` is the end of a longer one, as in `geolocation`.
fn is_inside_a_name(script: &str, at: usize) -> bool {
    let before = script.as_bytes()[..at].last();
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reloads_its_page_by_any_of_the_usual_statements() {
        let url = Url::parse("https://site.example/shop/item?id=7").unwrap();
        for (script, expected) in [
            ("location.reload()", true),
            (
                "setTimeout(function(){window.location.reload (true)},9)",
                true,
            ),
            ("location.href = location.href", true),
            ("window.location=window.location", true),
            ("location.replace(document.location.href+'&x=1')", true),
            ("location.assign(document.URL)", true),
            ("location.href='/shop/item?id=7'", true),
            (
                "document.cookie='a=b';location.href='https://site.example/shop/item?id=7&i=1'",
                true,
            ),
            ("document.cookie = 'lang=en'; location.href = '/en/'", false),
            ("location.href='/shop/item?id=8'", false),
            ("location.href=location.protocol+'//m.site.example/'", false),
            ("if (location.href == location.href) {}", false),
            ("geolocation.reload()", false),
            ("document.cookie == location.pathname", false),
            ("location", false),
            ("location.href='é", false),
            ("", false),
        ] {
            assert_eq!(reloads(script, &url), expected, "{script}");
        }
    }
}
