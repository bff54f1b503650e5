//! Recognises when a site blocks the crawler instead of serving the requested page.
//!
//! [`find_block`] judges one response and keeps no state. [`RepeatedPages`] compares a site's short pages with each
//! other, and its redirects to addresses that are named like a challenge. Both only recognise blocks; nothing here
//! tries to get past one. The consequences for the task are in [`crate::block_outcome`].
//!
//! A [`Sign`] has one of these grades:
//!
//! - *certain*: the response says that it is a challenge or a refusal of robots. It says so by a header, by a status
//!   that exists for nothing else, by a vendor's own title or text, or by a redirect to a challenge;
//! - *structural*: the page was served with a status of success, shows next to nothing, and does
//!   what challenges do (reloads itself, holds a captcha and nothing else, speaks of robots);
//! - *statistical*: the answer alone may be healthy, but the site answers different URLs with it;
//! - *suspicion*: the first occurrence of an answer that would count as a block at the second. It proves nothing yet.
//!
//! The vendor is never the verdict: a site behind a bot manager serves healthy pages with the same headers, cookies
//! and scripts. The first two grades match on data in `signatures.json`, where each signature names a sample page of
//! its own and a healthy page that resembles it.

mod evidence;
mod inspected;
mod repeated;
mod sample;
mod scan;
mod script;
mod signatures;
mod tag;
mod tag_kind;
mod target;
mod words;

use serde::{Deserialize, Serialize};
use webfill_urls::Url;

pub use inspected::Inspected;
pub use repeated::RepeatedPages;
pub use reqwest::header::HeaderMap;
pub use sample::Sample;
pub use scan::BEGINNING_BYTES;
pub use signatures::{Signature, Signatures};
pub use target::{Refresh, is_same_page};
pub(crate) use words::words;

/// Pages that show fewer characters than this are short. White space does not count.
pub const SHORT_CHARACTERS: usize = 200;

/// A page that stays longer than this before it refreshes is meant to be read, such as a page of news.
pub const LONGEST_REFRESH_SECONDS: u32 = 10;

/// An answer to a request for a page.
#[derive(Debug, Clone, Copy)]
pub struct Response<'a> {
    pub status: u16,
    pub headers: &'a HeaderMap,
    /// The requested URL.
    pub url: &'a Url,
    /// `Location` as the server sent it, if the response is a redirect.
    pub redirect: Option<&'a str>,
    /// The decoded body. Only its first [`BEGINNING_BYTES`] are inspected. If the body was not read it is empty, and
    /// only headers, status and redirect are judged.
    pub body: &'a str,
    /// Whether the body is HTML. Other bodies are not judged.
    pub is_html: bool,
}

/// How much a sign proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    Certain,
    Structural,
    Statistical,
    Suspicion,
}

impl Grade {
    /// The name used in the list of signatures and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Grade::Certain => "certain",
            Grade::Structural => "structural",
            Grade::Statistical => "statistical",
            Grade::Suspicion => "suspicion",
        }
    }
}

/// Why a response is considered a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sign {
    /// The id of a signature, or of the rule of [`RepeatedPages`].
    pub signature: &'static str,
    pub grade: Grade,
    /// The finding, in a few words for a log, without any of the page's text.
    pub evidence: String,
}

impl Sign {
    /// A description for people: what was seen, and which rule recognised it.
    pub fn describe(&self) -> String {
        let (evidence, name) = (&self.evidence, self.signature);
        match self.grade {
            Grade::Statistical | Grade::Suspicion => format!("{evidence} (rule {name})"),
            Grade::Certain | Grade::Structural => {
                let version = Signatures::built_in().version;
                format!("{evidence} (signature {name} of list {version})")
            }
        }
    }
}

/// Judges a response by the built-in signatures and returns the strongest sign of a block.
pub fn find_block(inspected: &Inspected<'_>) -> Option<Sign> {
    Signatures::built_in().find_block(inspected)
}

/// Whether an HTML body shows fewer than [`SHORT_CHARACTERS`] characters. Bodies of more than
/// [`BEGINNING_BYTES`] never count as short.
pub fn is_short(body: &str) -> bool {
    body.len() <= BEGINNING_BYTES && scan::count_visible(body, SHORT_CHARACTERS) < SHORT_CHARACTERS
}

/// Whether the beginning of an HTML body shows fewer than `characters` characters.
pub fn has_less_text_than(body: &str, characters: usize) -> bool {
    let beginning = &body[..body.floor_char_boundary(BEGINNING_BYTES)];
    scan::count_visible(beginning, characters) < characters
}

/// The visible content of an HTML page.
#[derive(Debug)]
pub struct Shown<'a> {
    /// The page's title and text, in lower case.
    pub text: String,
    /// The page's title and text, with each paragraph, cell or item on a line of its own.
    pub blocks: String,
    /// A hash of the tags of its pictures, films and frames.
    pub media: u64,
    sources: Vec<&'a str>,
}

impl<'a> Shown<'a> {
    /// The addresses of its pictures, films and frames, without queries, which often only defeat caches.
    pub fn pictures(&self) -> impl Iterator<Item = &'a str> {
        let sources = self.sources.iter();
        sources.map(|source| source.split('?').next().unwrap_or_default())
    }
}

pub fn visible_content(body: &str) -> Shown<'_> {
    let found = scan::scan_blocks(body);
    let title = found.title.unwrap_or_default().to_lowercase();
    let blocks = [on_one_line(&title).as_str(), "\n", &found.text].concat();
    Shown {
        text: on_one_line(&blocks),
        blocks,
        media: found.media,
        sources: found.sources,
    }
}

/// The text with spaces for all line feeds.
fn on_one_line(text: &str) -> String {
    let spaced = |byte: &u8| if *byte == b'\n' { b' ' } else { *byte };
    let bytes: Vec<u8> = text.as_bytes().iter().map(spaced).collect();
    String::from_utf8(bytes).expect("a line feed became a space")
}

/// A refresh (`<meta http-equiv=refresh>`) found in the beginning of an HTML page.
#[derive(Debug, Clone, Copy)]
pub struct PageRefresh<'a> {
    pub refresh: Refresh<'a>,
    /// Whether the refresh applies only to browsers without scripts.
    pub is_for_no_script: bool,
    /// The base of the page's relative addresses, as written.
    pub base: Option<&'a str>,
}

/// The first refresh in the beginning of an HTML page.
pub fn find_refresh(body: &str) -> Option<PageRefresh<'_>> {
    let beginning = &body[..body.floor_char_boundary(BEGINNING_BYTES)];
    let found = scan::scan_briefly(beginning, SHORT_CHARACTERS);
    Some(PageRefresh {
        refresh: found.refresh?,
        is_for_no_script: found.refresh_is_for_no_script,
        base: found.base,
    })
}

#[cfg(test)]
mod tests;
