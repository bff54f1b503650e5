//! Compares addresses of pages: finds the parts that do not identify the page, and the shape of the address, which
//! similar addresses share.

use std::borrow::Cow;
use std::collections::BTreeSet;

use memchr::memmem;
use webfill_urls::{Position, Url};

use super::words::{FOLDED, is_token};

/// The length, in bytes, of the shortest part of an address that is removed from the page's text before pages are
/// compared. Shorter parts may occur in any text.
const LEAST_PART_BYTES: usize = 3;

/// How many times a sequence of path segments must occur in a row to count as a cycle.
const LEAST_TURNS: usize = 3;

/// A path goes in circles if this many of its folders already occurred earlier in it.
const FOLDERS_AGAIN: usize = 2;

/// A parameter `session` holds a session id only if its value has at least this many characters. A shorter value may be
/// the number of a conference's session.
const SESSION: &str = "session";
const SESSION_CHARACTERS: usize = 8;

/// How many path segments belong to the shape of an address.
const SHAPE_SEGMENTS: usize = 2;

/// Names of parameters that do not identify the page, in lower case: session ids and cache busters.
const SAYS_NOTHING: [&str; 17] = [
    "sid",
    "sessid",
    "session",
    "sessionid",
    "session_id",
    "phpsessid",
    "aspsessionid",
    "jsessionid",
    "cfid",
    "cftoken",
    "_",
    "rnd",
    "rand",
    "random",
    "nocache",
    "cachebuster",
    "timestamp",
];

/// The parts of an address that pages are compared by.
#[derive(Debug)]
pub(super) struct Address {
    /// The address without the parts that do not identify the page, if it has any.
    pub(super) essence: Option<String>,
    /// The parts that similar addresses share: folders and the names of parameters.
    pub(super) shape: String,
    /// Whether one of the parameters is a random token, which rarely identifies the page.
    pub(super) has_token: bool,
    pub(super) numbers: Vec<u64>,
}

impl Address {
    pub(super) fn from_url(url: &Url) -> Address {
        let numbers = url[Position::BeforePath..].split(|c: char| !c.is_ascii_digit());
        Address {
            essence: identifying_part(url),
            shape: address_shape(url),
            has_token: url.query_pairs().any(|(_, value)| is_token(&value)),
            numbers: numbers.filter_map(|digits| digits.parse().ok()).collect(),
        }
    }
}

fn identifying_part(url: &Url) -> Option<String> {
    let (path, dropped) = match url.path().split_once(';') {
        Some((path, parameter)) => {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (path, is_insignificant(name, value))
        }
        None => (url.path(), false),
    };
    let path = if dropped { path } else { url.path() };
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let is_circle = is_circular(&segments);
    let mut essence = match is_circle {
        true => format!("{}/...", segments[0]),
        false => segments.join("/"),
    };
    let mut names = BTreeSet::new();
    let mut is_shorter = dropped || is_circle;
    for (name, value) in url.query_pairs() {
        // Parameters with the address of another page do not identify the page, and neither do repeated parameters.
        let is_kept =
            !is_insignificant(&name, &value) && !is_address(&value) && names.insert(name.clone());
        is_shorter |= !is_kept;
        if is_kept {
            essence.extend(["&", &name, "=", &value]);
        }
    }
    is_shorter.then_some(essence)
}

fn is_insignificant(name: &str, value: &str) -> bool {
    let is_known = SAYS_NOTHING
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name));
    is_known && (!name.eq_ignore_ascii_case(SESSION) || value.len() >= SESSION_CHARACTERS)
}

fn is_address(value: &str) -> bool {
    ["/", "http://", "https://"]
        .iter()
        .any(|begin| value.len() > 1 && value.starts_with(begin))
}

fn address_shape(url: &Url) -> String {
    let mut segments = url.path().trim_matches('/').split('/');
    let first = segments.by_ref().take(SHAPE_SEGMENTS);
    let mut shape: String = first
        .flat_map(|segment| ["/", fold_segment(segment)])
        .collect();
    let pairs = url.query_pairs();
    let kept = pairs.filter(|(name, value)| !is_insignificant(name, value));
    for name in kept.map(|(name, _)| name).collect::<BTreeSet<_>>() {
        shape.extend(["&", &name]);
    }
    shape
}

/// Replaces a path segment in the shape of an address, so that all numbers, tokens and dates become equal.
fn fold_segment(segment: &str) -> &str {
    let segment = segment.split(';').next().unwrap_or_default();
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    match 2 * digits > segment.len() || is_token(segment) {
        true => FOLDED,
        false => segment,
    }
}

/// Removes the page's own path and query values from its shown text. Numbers stay, because they distinguish the pages
/// of a list.
pub(super) fn without_address<'s>(url: &Url, shown: &'s str) -> Cow<'s, str> {
    let mut shown = Cow::Borrowed(shown);
    let values = url.query_pairs().map(|(_, value)| value.to_lowercase());
    let values = values.filter(|value| value.contains(char::is_alphabetic));
    for part in std::iter::once(url.path().to_lowercase()).chain(values) {
        if part.len() >= LEAST_PART_BYTES
            && memmem::find(shown.as_bytes(), part.as_bytes()).is_some()
        {
            shown = shown.replace(&part, "").into();
        }
    }
    shown
}

/// Whether a path ends with a repeated sequence of segments, as in `/a/b/a/b/a/b`, or returns to earlier folders.
fn is_circular(segments: &[&str]) -> bool {
    // The last segment may be the page's own name, so the path is judged without it, too.
    let mut ends = [segments.len(), segments.len().saturating_sub(1)].into_iter();
    ends.any(|end| ends_in_circles(&segments[..end])) || returns_to_folder(segments)
}

fn ends_in_circles(segments: &[&str]) -> bool {
    const LONGEST_ROW: usize = 4;
    (1..=LONGEST_ROW).any(|row| {
        let Some(start) = segments.len().checked_sub(row * LEAST_TURNS) else {
            return false;
        };
        let circle = &segments[start..];
        circle
            .iter()
            .zip(&circle[row..])
            .all(|(one, next)| one == next)
    })
}

fn returns_to_folder(segments: &[&str]) -> bool {
    let is_name = |segment: &&&str| segment.contains(char::is_alphabetic);
    let names: Vec<&&str> = segments.iter().filter(is_name).collect();
    let different: BTreeSet<_> = names.iter().collect();
    names.len() - different.len() >= FOLDERS_AGAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_repeated_segments_or_folders_are_circular() {
        for (path, expected) in [
            ("a/a/a", true),
            ("x/a/b/a/b/a/b", true),
            ("a/a/a/page.html", true),
            ("shop/cart/shop/help/about/shop", true),
            ("a/a", false),
            ("a/b/a/b", true),
            ("shop/en/help/shop", false),
            ("2020/01/01/01", true),
            ("2020/1/5/1/7/1/x", false),
            ("", false),
        ] {
            let segments: Vec<&str> = path.split('/').collect();
            assert_eq!(is_circular(&segments), expected, "{path}");
        }
    }

    #[test]
    fn the_essence_of_an_address_lacks_what_does_not_identify_the_page() {
        for (address, essence, shape) in [
            ("/p?sid=8f&id=7", Some("p&id=7"), "/p&id"),
            ("/p?id=7&page=2", None, "/p&id&page"),
            ("/p;jsessionid=8f?id=7", Some("p&id=7"), "/p&id"),
            ("/p;v=8?id=7", None, "/p&id"),
            ("/login?back=/cart&x=1", Some("login&x=1"), "/login&back&x"),
            ("/p?a=1&a=2", Some("p&a=1"), "/p&a"),
            ("/a/b/a/b/a/b/", Some("a/..."), "/a/b"),
            ("/talk?session=12", None, "/talk&session"),
            ("/events/2027/5", None, "/events/#"),
            ("/t/8fa3b1c2d4/view", None, "/t/#"),
            ("/2027/05/news-of-the-day", None, "/#/#"),
        ] {
            let url = Url::parse(&format!("https://site.example{address}")).unwrap();
            let found = Address::from_url(&url);
            assert_eq!(found.essence.as_deref(), essence, "{address}");
            assert_eq!(found.shape, shape, "{address}");
        }
    }
}
