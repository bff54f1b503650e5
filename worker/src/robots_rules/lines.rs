//! Parses the lines of a robots.txt, and selects those that concern an agent.
//!
//! It is as lenient as Google's parser, and accepts any line end, missing colons, misspelt keys, and text after the
//! agent's name.

use std::borrow::Cow;

use encoding_rs::{UTF_16BE, UTF_16LE};

use super::MAX_ROBOTS_BYTES;

/// Lines are cut at this length. It is the same as in Google's parser (eight times the longest URL of Internet
/// Explorer).
const MAX_LINE_BYTES: usize = 2083 * 8 - 1;

/// An `Allow` or `Disallow` line.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleLine<'a> {
    pub(super) allow: bool,
    pub(super) path: &'a [u8],
}

impl RuleLine<'_> {
    /// Whether the line counts. An `Allow` with a blank in its path is ignored: RFC 9309 has no such paths, and parsers
    /// read them differently. A `Disallow` counts: `Disallow: /a b` forbids `/a%20b`. Both are the stricter choice.
    pub(super) fn is_effective(&self) -> bool {
        !(self.allow && self.path.iter().any(|b| matches!(b, b' ' | b'\t')))
    }
}

/// The lines of a robots.txt that concern one agent, with their values as written.
#[derive(Debug, Default)]
pub(super) struct Selected<'a> {
    pub(super) rules: Vec<RuleLine<'a>>,
    pub(super) crawl_delays: Vec<&'a [u8]>,
    pub(super) sitemaps: Vec<&'a [u8]>,
}

/// The part of a file that counts (the first 500 KiB), in an encoding that extends ASCII. UTF-16, with or without its
/// byte order mark, is converted to UTF-8, because otherwise its rules would be unreadable and forbid nothing.
pub(super) fn readable_text(bytes: &[u8]) -> Cow<'_, [u8]> {
    let bytes = whole_lines(bytes);
    let utf16 = match bytes {
        [0xff, 0xfe, ..] | [1..=0xff, 0, ..] => UTF_16LE,
        [0xfe, 0xff, ..] | [0, 1..=0xff, ..] => UTF_16BE,
        _ => return Cow::Borrowed(strip_byte_order_mark(bytes)),
    };
    Cow::Owned(utf16.decode_with_bom_removal(bytes).0.into_owned().into())
}

/// The first bytes of compressed files: gzip, zstd, zip, bzip2 and xz.
const PACKED: [&[u8]; 5] = [
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"PK\x03\x04",
    b"BZh",
    b"\xfd7zXZ",
];

/// Whether a file is text; a few binary bytes in it are tolerated. A compressed file without a `Content-Encoding`, for
/// example, is not text.
pub fn is_text(bytes: &[u8]) -> bool {
    if PACKED.iter().any(|magic| bytes.starts_with(magic)) {
        return false;
    }
    let text = readable_text(bytes);
    // These are the "binary data bytes" of the MIME Sniffing Standard, which do not occur in text.
    let is_binary = |b: &u8| matches!(b, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    if !text.iter().any(is_binary) {
        return true;
    }
    let text = text.to_ascii_lowercase();
    let has = |key: &str| memchr::memmem::find(&text, key.as_bytes()).is_some();
    has("user-agent") || has("disallow")
}

/// The bytes up to the size limit, without a truncated last line: half a path could allow more than the whole path
/// does.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let Some(counted) = bytes.get(..MAX_ROBOTS_BYTES) else {
        return bytes;
    };
    match counted.iter().rposition(|b| is_line_end(*b)) {
        Some(end) => &counted[..end],
        None => counted,
    }
}

/// The UTF-8 byte order mark.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Removes the byte order mark at the beginning, even if some of its last bytes are missing.
fn strip_byte_order_mark(bytes: &[u8]) -> &[u8] {
    let length = bytes.iter().zip(MARK).take_while(|(b, m)| *b == m).count();
    &bytes[length..]
}

/// Trims white space, non-breaking spaces (U+00A0), and byte order marks, which remain where files were concatenated.
fn trim(mut bytes: &[u8]) -> &[u8] {
    const WIDE: [&[u8]; 2] = ["\u{a0}".as_bytes(), &MARK];
    loop {
        bytes = bytes.trim_ascii();
        let strip = |wide: &&[u8]| bytes.strip_prefix(*wide).or(bytes.strip_suffix(*wide));
        let Some(inner) = WIDE.iter().find_map(strip) else {
            return bytes;
        };
        bytes = inner;
    }
}

/// Whether a byte ends a line. NUL does, too: the rule before it then counts, which forbids more.
fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | 0)
}

/// Selects the lines of the agent's group, which may have several parts. If the agent has no group, selects that of `*`
/// (RFC 9309, 2.2.1).
pub(super) fn select_group<'a>(text: &'a [u8], agent_token: &str) -> Selected<'a> {
    let mut reading = GroupReader::default();
    for line in text.split(|b| is_line_end(*b)) {
        let line = &line[..line.len().min(MAX_LINE_BYTES)];
        if let Some((key, value)) = key_and_value(line) {
            reading.read_line(Key::from_key(key), value, agent_token);
        }
    }
    reading.finish()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
    Other,
}

impl Key {
    /// The kind of a line, by its key. Keys are recognised by their beginnings. The list with its misspellings is that
    /// of Google's parser.
    fn from_key(key: &[u8]) -> Self {
        const KEYS: [(Key, &[&str]); 5] = [
            (Key::UserAgent, &["user-agent", "useragent", "user agent"]),
            (Key::Allow, &["allow"]),
            (
                Key::Disallow,
                &[
                    "disallow",
                    "dissallow",
                    "dissalow",
                    "disalow",
                    "diasllow",
                    "disallaw",
                ],
            ),
            (
                Key::CrawlDelay,
                &["crawl-delay", "crawldelay", "crawl delay"],
            ),
            (Key::Sitemap, &["sitemap", "site-map"]),
        ];
        let begins = |name: &&str| {
            key.get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        };
        KEYS.iter()
            .find(|(_, names)| names.iter().any(&begins))
            .map_or(Key::Other, |(key, _)| *key)
    }
}

/// Splits a line `key: value`, without its comment, into key and value. The colon may be missing if blanks separate key
/// and value.
fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = trim(line.split(|b| *b == b'#').next()?);
    if let Some(colon) = line.iter().position(|b| *b == b':') {
        return Some((trim(&line[..colon]), trim(&line[colon + 1..])));
    }
    let blank = line.iter().position(|b| matches!(b, b' ' | b'\t'))?;
    let value = line[blank..].trim_ascii();
    let is_one_word = !value.iter().any(|b| matches!(b, b' ' | b'\t'));
    is_one_word.then_some((&line[..blank], value))
}

#[derive(Debug, Default)]
struct Group<'a> {
    rules: Vec<RuleLine<'a>>,
    crawl_delays: Vec<&'a [u8]>,
}

/// The rules read so far. A group begins with one or more agent lines and ends at the first agent line after a
/// rule; other lines do not end it (RFC 9309, 2.2.4).
#[derive(Debug, Default)]
struct GroupReader<'a> {
    ours: Group<'a>,
    everyones: Group<'a>,
    sitemaps: Vec<&'a [u8]>,
    /// Delays before the first agent line, which some crawlers apply to all agents.
    leading_delays: Vec<&'a [u8]>,
    in_ours: bool,
    in_everyones: bool,
    has_ours: bool,
    has_agents: bool,
    behind_rule: bool,
}

impl<'a> GroupReader<'a> {
    fn read_line(&mut self, key: Key, value: &'a [u8], agent_token: &str) {
        match key {
            Key::UserAgent => self.enter_agent(value, agent_token),
            Key::Allow | Key::Disallow => self.add_rule(RuleLine {
                allow: key == Key::Allow,
                path: value,
            }),
            Key::CrawlDelay => self.add_delay(value),
            Key::Sitemap => self.sitemaps.push(value),
            Key::Other => {}
        }
    }

    fn enter_agent(&mut self, agent: &[u8], agent_token: &str) {
        if self.behind_rule {
            self.in_ours = false;
            self.in_everyones = false;
            self.behind_rule = false;
        }
        self.has_agents = true;
        let is_everyone = matches!(agent, [b'*'] | [b'*', b' ' | b'\t', ..]);
        if is_everyone {
            self.in_everyones = true;
        } else if product_token(agent).eq_ignore_ascii_case(agent_token.as_bytes()) {
            self.in_ours = true;
            self.has_ours = true;
        }
    }

    fn add_rule(&mut self, rule: RuleLine<'a>) {
        self.behind_rule = self.has_agents;
        if self.in_ours {
            self.ours.rules.push(rule);
        }
        if self.in_everyones {
            self.everyones.rules.push(rule);
        }
    }

    fn add_delay(&mut self, delay: &'a [u8]) {
        if !self.has_agents {
            self.leading_delays.push(delay);
        }
        if self.in_ours {
            self.ours.crawl_delays.push(delay);
        }
        if self.in_everyones {
            self.everyones.crawl_delays.push(delay);
        }
    }

    fn finish(self) -> Selected<'a> {
        let group = if self.has_ours {
            self.ours
        } else {
            self.everyones
        };
        let crawl_delays = if group.crawl_delays.is_empty() {
            self.leading_delays
        } else {
            group.crawl_delays
        };
        Selected {
            rules: group.rules,
            crawl_delays,
            sitemaps: self.sitemaps,
        }
    }
}

/// The name of an agent, without a version or other text: `Name` of `Name/2.1`.
fn product_token(agent: &[u8]) -> &[u8] {
    let end = agent
        .iter()
        .position(|b| !(b.is_ascii_alphabetic() || matches!(b, b'-' | b'_')));
    &agent[..end.unwrap_or(agent.len())]
}
