//! A sitemap that is a text with a URL in each line.

use super::Found;

/// Whether every line is a URL. The last one may be cut, unless the text is whole.
pub(super) fn is_sitemap(beginning: &str, is_whole: bool) -> bool {
    let mut lines: Vec<&str> = beginning.lines().map(str::trim).collect();
    if !is_whole && lines.len() > 1 {
        lines.pop();
    }
    lines.retain(|line| !line.is_empty());
    !lines.is_empty() && lines.iter().all(|line| is_url(line))
}

pub(super) fn read(text: &str, found: &mut Found<'_>) {
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty()) {
        if !found.add(line) {
            return;
        }
    }
}

fn is_url(line: &str) -> bool {
    let begins_as_one = line.starts_with("http://") || line.starts_with("https://");
    begins_as_one && !line.contains(char::is_whitespace)
}
