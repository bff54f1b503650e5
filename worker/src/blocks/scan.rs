//! Scans the beginning of an HTML page in one pass, without a tree. Finds its title, how much text it shows, and which
//! features of challenges it has.
//!
//! A brief scan of a healthy page ends where enough text has been seen, which is usually within its first kilobytes.
//! The time is linear in the bytes inspected, whatever the page.

use std::hash::{DefaultHasher, Hash, Hasher};

use memchr::memmem;
use webfill_urls::Url;

use super::script;
use super::tag::{attribute, end_of_tag, tag_name};
use super::tag_kind::TagKind;
use super::target::Refresh;
use super::words::words;

/// How many bytes at the beginning of a body are inspected.
pub const BEGINNING_BYTES: usize = 64 << 10;

/// Titles are cut to this many bytes.
const TITLE_BYTES: usize = 300;

/// Types of `input` elements that people do not fill in.
const NO_FIELD: [&str; 4] = ["hidden", "submit", "button", "image"];

/// Ids of elements that applications render into. Such an application serves the same short page for all URLs.
const PLACES_OF_APPLICATIONS: [&str; 7] = [
    "root",
    "app",
    "__next",
    "__nuxt",
    "___gatsby",
    "svelte",
    "q-app",
];

/// Classes that mark the place of a captcha.
const CAPTCHA_CLASSES: [&str; 3] = ["g-recaptcha", "h-captcha", "cf-turnstile"];

/// The findings on a page.
#[derive(Debug, Default)]
pub struct Scan<'a> {
    /// The title as written, up to a bounded length.
    pub title: Option<&'a str>,
    /// Characters that are shown, without white space; not counted beyond the limit of the scan.
    pub visible: usize,
    /// The beginning of the visible text, in lower case, with single spaces.
    pub text: String,
    pub refresh: Option<Refresh<'a>>,
    /// The refresh applies only to browsers without scripts.
    pub refresh_is_for_no_script: bool,
    /// A hash of the tags of pictures, films and frames.
    pub media: u64,
    /// The addresses of pictures, films and frames; only [`scan_blocks`] collects them.
    pub sources: Vec<&'a str>,
    /// The base of the page's relative addresses, as written.
    pub base: Option<&'a str>,
    pub features: Features,
}

/// Properties and actions of a page. Only [`scan_all`] finds them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Features {
    /// An inline script loads the page again.
    pub reloads_itself: bool,
    /// An inline script goes to another page.
    pub moves_away: bool,
    pub has_script: bool,
    pub has_external_script: bool,
    pub has_captcha: bool,
    /// The page has fields to fill in besides a captcha, as a login page does.
    pub has_fields: bool,
    pub has_links: bool,
    /// Pictures, films, frames.
    pub has_media: bool,
    /// The visible content is not in this page: an application renders it, or frames hold it.
    pub is_shell: bool,
}

/// Counts characters that are shown, up to `limit`.
pub fn count_visible(page: &str, limit: usize) -> usize {
    scan_briefly(page, limit).visible
}

/// Scans for title, refresh and text, and ends after `limit` characters of text.
pub fn scan_briefly(page: &str, limit: usize) -> Scan<'_> {
    Scanner::new(page, limit, None).run()
}

/// Scans for title, pictures and the whole text, with each paragraph on a line of its own.
pub fn scan_blocks(page: &str) -> Scan<'_> {
    let mut scanner = Scanner::new(page, usize::MAX, None);
    scanner.marks_blocks = true;
    // Most pages show less than this, so their text is not moved while it grows.
    scanner.found.text.reserve(page.len() / 2);
    scanner.run()
}

/// Scans the whole of `page`, which is at `url`, for everything. Keeps up to `limit` characters of its text.
pub fn scan_all<'a>(page: &'a str, url: &Url, limit: usize) -> Scan<'a> {
    Scanner::new(page, limit, Some(url)).run()
}

struct Scanner<'a, 'u> {
    page: &'a str,
    limit: usize,
    /// The page's URL, if its features are searched for as well.
    url: Option<&'u Url>,
    found: Scan<'a>,
    /// Whether the end of a paragraph precedes the next shown text.
    after_block: bool,
    marks_blocks: bool,
    in_no_script: bool,
}

impl<'a, 'u> Scanner<'a, 'u> {
    fn new(page: &'a str, limit: usize, url: Option<&'u Url>) -> Self {
        Scanner {
            page,
            limit,
            url,
            found: Scan::default(),
            after_block: false,
            marks_blocks: false,
            in_no_script: false,
        }
    }

    fn run(mut self) -> Scan<'a> {
        let bytes = self.page.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let text_end =
                memchr::memchr(b'<', &bytes[at..]).map_or(bytes.len(), |found| at + found);
            self.add_text(&self.page[at..text_end]);
            if text_end == bytes.len() || (self.url.is_none() && self.found.visible >= self.limit) {
                break;
            }
            at = self.skip_markup(text_end);
        }
        self.found
    }

    /// Adds shown text. Anything between two texts counts as white space.
    fn add_text(&mut self, text: &str) {
        let text = text.trim_ascii();
        if text.is_empty() {
            return;
        }
        if text.len() < self.limit - self.found.visible
            && let Some(spaces) = spaces_of_plain(text.as_bytes())
        {
            return self.add_plain(text, spaces);
        }
        for word in words(text) {
            if self.found.visible >= self.limit {
                return;
            }
            self.add_word(word);
        }
    }

    /// Adds text that needs no changes besides those of case, all at once.
    fn add_plain(&mut self, text: &str, spaces: usize) {
        self.separate();
        self.found.visible += text.len() - spaces;
        let shown = &mut self.found.text;
        let from = shown.len();
        shown.push_str(text);
        shown[from..].make_ascii_lowercase();
    }

    /// Separates the text shown so far from the next.
    fn separate(&mut self) {
        let shown = &mut self.found.text;
        if !shown.is_empty() {
            let is_end = std::mem::take(&mut self.after_block) && self.marks_blocks;
            shown.push(if is_end { '\n' } else { ' ' });
        }
    }

    fn add_word(&mut self, word: &str) {
        self.separate();
        let shown = &mut self.found.text;
        let most = self.limit - self.found.visible;
        if word.is_ascii() {
            let word = &word[..word.len().min(most)];
            let from = shown.len();
            shown.push_str(word);
            shown[from..].make_ascii_lowercase();
            self.found.visible += word.len();
            return;
        }
        for character in word.chars().take(most) {
            shown.extend(character.to_lowercase());
            self.found.visible += 1;
        }
    }

    /// Notes and skips the tag or comment that begins at `start`, and the content of an element whose content is not
    /// markup or not shown. Returns where the scan continues.
    fn skip_markup(&mut self, start: usize) -> usize {
        let rest = &self.page.as_bytes()[start..];
        if rest.starts_with(b"<!--") {
            return self.find_end(start + 4, b"-->");
        }
        if rest.starts_with(b"<!") || rest.starts_with(b"<?") {
            return self.find_end(start + 2, b">");
        }
        if rest.starts_with(b"</") {
            let kind = TagKind::of_name(tag_name(self.page, start + 1));
            self.note_block(kind);
            self.in_no_script &= kind != TagKind::NoScript;
            return end_of_tag(self.page.as_bytes(), start);
        }
        let name = tag_name(self.page, start);
        if name.is_empty() {
            self.add_text("<");
            return start + 1;
        }
        let end = end_of_tag(self.page.as_bytes(), start);
        let kind = TagKind::of_name(name);
        self.note_tag(kind, name, &self.page[start..end]);
        match kind {
            TagKind::Script | TagKind::Title | TagKind::NotShown => {
                self.skip_content(kind, name, end)
            }
            _ => end,
        }
    }

    fn find_end(&self, from: usize, mark: &[u8]) -> usize {
        let bytes = self.page.as_bytes();
        memmem::find(&bytes[from..], mark).map_or(bytes.len(), |found| from + found + mark.len())
    }

    /// Skips the content of a hidden element, from `start` to its end tag.
    fn skip_content(&mut self, kind: TagKind, name: &str, start: usize) -> usize {
        let page = self.page;
        let end = memmem::find_iter(&page.as_bytes()[start..], b"</")
            .map(|found| start + found)
            .find(|at| tag_name(page, at + 1).eq_ignore_ascii_case(name))
            .unwrap_or(page.len());
        let content = &page[start..end];
        if kind == TagKind::Title && self.found.title.is_none() {
            self.found.title = Some(&content[..content.floor_char_boundary(TITLE_BYTES)]);
        }
        if let (Some(url), TagKind::Script) = (self.url, kind) {
            self.found.features.reloads_itself |= script::reloads(content, url);
            self.found.features.moves_away |= script::moves_away(content, url);
        }
        end
    }

    fn note_block(&mut self, kind: TagKind) {
        self.after_block |= self.marks_blocks && !kind.is_within_text();
    }

    fn note_tag(&mut self, kind: TagKind, name: &str, tag: &'a str) {
        self.note_block(kind);
        match kind {
            TagKind::Meta => self.note_meta(tag),
            TagKind::Base if self.found.base.is_none() => {
                self.found.base = attribute(tag, "href");
            }
            TagKind::NoScript => self.in_no_script = true,
            TagKind::Media => self.note_media(tag),
            _ => {}
        }
        if self.url.is_some() {
            self.note_features(kind, name, tag);
        }
    }

    fn note_media(&mut self, tag: &'a str) {
        let mut hasher = DefaultHasher::new();
        (self.found.media, tag).hash(&mut hasher);
        self.found.media = hasher.finish();
        if self.marks_blocks {
            self.found.sources.extend(attribute(tag, "src"));
        }
    }

    fn note_features(&mut self, kind: TagKind, name: &str, tag: &str) {
        let features = &mut self.found.features;
        features.is_shell |= is_app_shell_tag(kind, name, tag);
        features.has_links |= kind == TagKind::Link && attribute(tag, "href").is_some();
        features.has_media |= self.found.media != 0;
        if kind == TagKind::Script {
            features.has_script = true;
            features.has_external_script |= attribute(tag, "src").is_some();
        } else if kind == TagKind::Field {
            features.has_fields |= is_fillable_field(tag);
        } else if let Some(classes) = attribute(tag, "class") {
            let mut classes = classes.split_ascii_whitespace();
            features.has_captcha |= classes.any(|class| CAPTCHA_CLASSES.contains(&class));
        }
    }

    fn note_meta(&mut self, tag: &'a str) {
        let equivalent = attribute(tag, "http-equiv").unwrap_or_default();
        if self.found.refresh.is_none() && equivalent.trim().eq_ignore_ascii_case("refresh") {
            self.found.refresh = attribute(tag, "content").and_then(Refresh::read);
            self.found.refresh_is_for_no_script = self.in_no_script;
        }
    }
}

/// The number of spaces in a text that is ASCII with single spaces as its only white space; `None` for another text.
fn spaces_of_plain(text: &[u8]) -> Option<usize> {
    /// Texts up to this length are read in one loop. For longer ones, several loops are faster, because they are
    /// compiled to ones that read many bytes at a time: they do not end early, and count in one byte.
    const SHORT: usize = 32;
    let is_odd = |byte: u8| !byte.is_ascii() | matches!(byte, b'\t'..=b'\r');
    let are_spaces = |one: u8, next: u8| (one == b' ') & (next == b' ');
    let count = |part: &[u8]| {
        let spaces = part.iter().map(|byte| u8::from(*byte == b' '));
        usize::from(spaces.fold(0, u8::wrapping_add))
    };
    if text.len() <= SHORT {
        let (mut before, mut found, mut spaces) = (0, false, 0);
        for byte in text {
            found |= is_odd(*byte) | are_spaces(before, *byte);
            spaces += usize::from(*byte == b' ');
            before = *byte;
        }
        return (!found).then_some(spaces);
    }
    let pairs = text.iter().zip(&text[1..]);
    let found = text.iter().fold(false, |found, byte| found | is_odd(*byte))
        || pairs.fold(false, |found, (one, next)| found | are_spaces(*one, *next));
    (!found).then(|| text.chunks(usize::from(u8::MAX)).map(count).sum())
}

/// Whether a tag belongs to an application's shell (the element it renders into, a custom element, or a module
/// script) or to a page of frames.
fn is_app_shell_tag(kind: TagKind, name: &str, tag: &str) -> bool {
    let is = |attribute_name, values: &[&str]| {
        attribute(tag, attribute_name).is_some_and(|value| values.contains(&value))
    };
    name.contains('-')
        || name.eq_ignore_ascii_case("frameset")
        || is("id", &PLACES_OF_APPLICATIONS)
        || (kind == TagKind::Script && is("type", &["module"]))
}

/// Whether a tag of [`TagKind::Field`] is one that people fill in. Captchas bring fields of their own.
fn is_fillable_field(tag: &str) -> bool {
    let kind = attribute(tag, "type").unwrap_or_default();
    let names = ["name", "id"].map(|name| attribute(tag, name).unwrap_or_default());
    let is_captcha = |name: &&str| name.contains("captcha") || name.contains("turnstile");
    !NO_FIELD.iter().any(|none| none.eq_ignore_ascii_case(kind)) && !names.iter().any(is_captcha)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_counted_without_markup_scripts_comments_and_white_space() {
        for (page, text, count) in [
            ("<p>Hello, <b>World</b>", "hello, world", 11),
            ("<script>var a = '<p>no'</script >ja", "ja", 2),
            ("<STYLE>p{}</style><!-- no > no -->é", "é", 1),
            ("<title>no</title><template><p>no</template>yes", "yes", 3),
            ("a < b <3", "a < b < 3", 5),
            ("<!doctype html><?xml ?>x", "x", 1),
            ("<script>never closed", "", 0),
            ("<!-- never closed", "", 0),
            ("x</p", "x", 1),
            ("x<", "x <", 2),
            ("A  few\twords,<i>\nand one</i>", "a few words, and one", 16),
            ("x<é>", "x < é>", 4),
            (
                "A text that is longer than thirty-two bytes",
                "a text that is longer than thirty-two bytes",
                36,
            ),
            (
                "A  text that is longer than thirty-two\nbytes",
                "a text that is longer than thirty-two bytes",
                36,
            ),
            ("", "", 0),
        ] {
            let found = scan_briefly(page, 1000);
            assert_eq!(
                (found.text.as_str(), found.visible),
                (text, count),
                "{page}"
            );
        }
    }

    #[test]
    fn a_brief_scan_ends_where_enough_text_was_seen() {
        let page = format!(
            "<title>T</title><p>{}</p><meta http-equiv=refresh content=1>",
            "x ".repeat(500)
        );
        let found = scan_briefly(&page, 200);
        assert_eq!((found.visible, found.title), (200, Some("T")));
        assert_eq!(found.refresh, None);
    }

    #[test]
    fn a_login_form_has_fields_and_a_captcha_alone_has_none() {
        let url = Url::parse("https://site.example/").unwrap();
        let captcha = "<form><input type=hidden name=a><div class='x g-recaptcha'></div>\
            <textarea name=g-recaptcha-response></textarea><input type=submit></form>";
        let features = scan_all(captcha, &url, 200).features;
        assert!(features.has_captcha && !features.has_fields);
        let login = format!("{captcha}<input type=password name=p>");
        assert!(scan_all(&login, &url, 200).features.has_fields);
    }
}
