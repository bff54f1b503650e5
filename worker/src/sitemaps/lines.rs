//! Reads a sitemap that is a text with one URL per line.

use super::FoundEntries;

/// Whether a text is a sitemap: every line is a URL, a comment or blank. If robots.txt lists the text as a sitemap
/// (`is_named`), one URL is enough. The last line may be truncated, unless the text is whole.
pub(super) fn is_sitemap(beginning: &str, is_whole: bool, is_named: bool) -> bool {
    let is_markup = beginning.trim_start().starts_with('<');
    let mut lines: Vec<&str> = beginning.lines().collect();
    if !is_whole && lines.len() > 1 {
        lines.pop();
    }
    let mut lines = lines.into_iter().filter_map(line_content).peekable();
    match is_named {
        true => !is_markup && lines.any(is_url),
        false => lines.peek().is_some() && lines.all(is_url),
    }
}

pub(super) fn read(text: &str, found: &mut FoundEntries<'_>) {
    for line in text.lines().filter_map(line_content) {
        let has_room = match is_url(line) {
            true => found.add(line),
            false => found.count_invalid(),
        };
        if !has_room {
            return;
        }
    }
}

/// The content of a line; `None` for blank lines and comments.
fn line_content(line: &str) -> Option<&str> {
    let line = line.trim();
    (!line.is_empty() && !line.starts_with('#')).then_some(line)
}

fn is_url(line: &str) -> bool {
    let begins_with = |scheme: &str| {
        let beginning = line.as_bytes().get(..scheme.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    let begins_as_one = begins_with("http://") || begins_with("https://");
    begins_as_one && !line.contains(char::is_whitespace)
}
