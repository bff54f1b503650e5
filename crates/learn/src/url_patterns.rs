//! Learns URL patterns: regular expressions that match the URLs of a group of pages, but not other URLs of the site.

use std::collections::BTreeSet;

use regex::Regex;
use webfill_urls::Url;

use crate::types::Page;

/// Merges groups of one site if no pattern distinguishes their URLs, because a crawl finds the mapping of a page by its
/// URL.
pub(crate) fn merge_inseparable_groups(
    mut groups: Vec<Vec<usize>>,
    pages: &[Page],
) -> Vec<Vec<usize>> {
    let mut at = 0;
    while at < groups.len() {
        let own: Vec<&Url> = groups[at].iter().map(|&page| &pages[page].url).collect();
        let mut others: Vec<&Url> = Vec::new();
        for (other, group) in groups.iter().enumerate() {
            if other != at {
                others.extend(group.iter().map(|&page| &pages[page].url));
            }
        }
        let patterns = compile(&patterns(&own, &others));
        let meets = |group: &Vec<usize>| {
            let urls = group.iter().map(|&page| pages[page].url.as_str());
            urls.into_iter()
                .any(|url| patterns.iter().any(|pattern| pattern.is_match(url)))
        };
        match (0..groups.len()).find(|&other| other != at && meets(&groups[other])) {
            Some(other) => {
                let (first, second) = (at.min(other), at.max(other));
                let joined = groups.remove(second);
                groups[first].extend(joined);
                groups[first].sort_unstable();
                at = 0;
            }
            None => at += 1,
        }
    }
    groups
}

fn compile(patterns: &[String]) -> Vec<Regex> {
    patterns
        .iter()
        .filter_map(|pattern| Regex::new(pattern).ok())
        .collect()
}

/// The patterns of a mapping: those of [`patterns`], which exclude URLs of another kind. Records may link to more pages
/// than were read. So the patterns are widened to match links of the same form, unless they would then match more URLs
/// of another kind.
pub(crate) fn patterns_with_links(urls: &[&Url], links: &[Url], others: &[&Url]) -> Vec<String> {
    let general = patterns(urls, others);
    let matched = compile(&general);
    let is_matched = |link: &Url| matched.iter().any(|one| one.is_match(link.as_str()));
    let form = |url: &Url| (url.host_str().map(str::to_owned), segments(url).len());
    let forms: BTreeSet<_> = urls.iter().map(|url| form(url)).collect();
    let more = links
        .iter()
        .filter(|link| forms.contains(&form(link)) && !is_matched(link))
        .filter(|link| !others.contains(link));
    let all: Vec<&Url> = urls.iter().copied().chain(more).collect();
    let wider = patterns(&all, others);
    let wrong = |patterns: &[Regex]| {
        let is_wrong = |url: &&&Url| patterns.iter().any(|one| one.is_match(url.as_str()));
        others.iter().filter(is_wrong).count()
    };
    let chosen = match wrong(&compile(&wider)) <= wrong(&matched) {
        true => wider,
        false => general,
    };
    chosen
        .into_iter()
        .map(|pattern| exclude_urls(pattern, others))
        .collect()
}

/// Excludes `others` from the pattern one by one, if it matches only a few of them. If it matches many, these are a
/// kind of pages of their own, and the pattern stays unchanged.
fn exclude_urls(pattern: String, others: &[&Url]) -> String {
    let Ok(regex) = Regex::new(&pattern) else {
        return pattern;
    };
    let matched: BTreeSet<&str> = others
        .iter()
        .map(|url| url.as_str())
        .filter(|url| regex.is_match(url))
        .take(MOST_EXCLUDED + 1)
        .collect();
    if matched.is_empty() || matched.len() > MOST_EXCLUDED {
        return pattern;
    }
    let names: Vec<String> = matched.into_iter().map(regex::escape).collect();
    let rest = pattern.trim_start_matches('^');
    format!("^(?!(?:{})$){rest}", names.join("|"))
}

/// The most general patterns that match all `urls` and as few of `others` as possible.
pub(crate) fn patterns(urls: &[&Url], others: &[&Url]) -> Vec<String> {
    let mut shapes: Vec<((String, usize), Vec<&Url>)> = Vec::new();
    for url in urls {
        let key = (
            url.host_str().unwrap_or_default().to_owned(),
            segments(url).len(),
        );
        match shapes.iter_mut().find(|(one, _)| *one == key) {
            Some((_, urls)) => urls.push(url),
            None => shapes.push((key, vec![url])),
        }
    }
    shapes
        .iter()
        .map(|(_, urls)| pattern(urls, others))
        .collect()
}

/// How precisely a pattern describes the parts of URLs that vary.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Detail {
    /// Only the path segments that are the same in all URLs.
    Segments,
    /// In addition, the form of the varying segments: whether they are digits, and how they begin and end.
    Parts,
    /// In addition, the names of the query parameters.
    Query,
    /// In addition, the marks between letters, and whether segments end in digits.
    Marks,
}

/// The most URLs that a pattern may exclude one by one.
const MOST_EXCLUDED: usize = 20;

fn pattern(urls: &[&Url], others: &[&Url]) -> String {
    let mut best: Option<(usize, String)> = None;
    for detail in [
        Detail::Parts,
        Detail::Query,
        Detail::Segments,
        Detail::Marks,
    ] {
        let pattern = pattern_with_detail(urls, detail);
        let Ok(regex) = Regex::new(&pattern) else {
            continue;
        };
        if !urls.iter().all(|url| regex.is_match(url.as_str())) {
            continue;
        }
        let wrong = others
            .iter()
            .filter(|url| regex.is_match(url.as_str()))
            .count();
        if best.as_ref().is_none_or(|(least, _)| wrong < *least) {
            best = Some((wrong, pattern));
        }
        if wrong == 0 {
            break;
        }
    }
    let listed = || {
        let all: Vec<String> = urls.iter().map(|url| regex::escape(url.as_str())).collect();
        format!("^(?:{})$", all.join("|"))
    };
    match best {
        Some((0, pattern)) => pattern,
        // No general pattern distinguishes a single page from others, so the pattern matches only that page.
        _ if urls.len() == 1 => listed(),
        Some((_, pattern)) => pattern,
        None => listed(),
    }
}

fn segments(url: &Url) -> Vec<&str> {
    url.path().split('/').skip(1).collect()
}

fn pattern_with_detail(urls: &[&Url], detail: Detail) -> String {
    let first = urls[0];
    let hosts = regex::escape(first.host_str().unwrap_or_default());
    let port = first
        .port()
        .map_or(String::new(), |port| format!(":{port}"));
    let mut pattern = format!("^https?://{hosts}{port}");
    for (at, segment) in segments(first).iter().enumerate() {
        let all: Vec<&str> = urls.iter().map(|url| segments(url)[at]).collect();
        pattern.push('/');
        if all.iter().all(|one| one == segment)
            && (urls.len() > 1 || at + 1 < segments(first).len())
        {
            pattern.push_str(&regex::escape(segment));
        } else {
            pattern.push_str(&segment_pattern(&all, detail));
        }
    }
    pattern.push_str(&query_pattern(urls, detail));
    pattern.push('$');
    pattern
}

fn segment_pattern(all: &[&str], detail: Detail) -> String {
    match detail {
        Detail::Segments => return "[^/?]*".to_owned(),
        Detail::Marks => return pattern_with_marks(all),
        Detail::Parts | Detail::Query => {}
    }
    let shared = |texts: &[Vec<char>]| -> usize {
        let Some(first) = texts.first() else { return 0 };
        let same = |at: usize| texts.iter().all(|text| text.get(at) == Some(&first[at]));
        (0..first.len()).take_while(|&at| same(at)).count()
    };
    let mut texts: Vec<Vec<char>> = all.iter().map(|text| text.chars().collect()).collect();
    let is_part = |c: &char| !c.is_alphanumeric();
    let single = all.len() == 1;
    // A shared part must end at a mark or before digits, because letters may be shared by chance.
    let mut start = if single { 0 } else { shared(&texts) };
    let word = texts[0][..start]
        .iter()
        .rposition(is_part)
        .map_or(0, |at| at + 1);
    let letters = texts[0].iter().take_while(|c| c.is_alphabetic()).count();
    let digits_follow = letters > 0
        && texts
            .iter()
            .all(|text| text.get(letters).is_some_and(char::is_ascii_digit));
    let prefix_is_word = digits_follow && (single || start >= letters);
    start = if prefix_is_word { letters } else { word };
    let prefix: String = texts[0][..start].iter().collect();
    texts.iter_mut().for_each(|text| {
        text.drain(..start);
        text.reverse();
    });
    let end = match single {
        true => texts[0]
            .iter()
            .position(|c| *c == '.')
            .map_or(0, |at| if at < 6 { at + 1 } else { 0 }),
        false => {
            let end = shared(&texts);
            texts[0][..end]
                .iter()
                .rposition(is_part)
                .map_or(0, |at| at + 1)
        }
    };
    let suffix: String = texts[0][..end].iter().rev().collect();
    let middles = texts.iter().map(|text| &text[end..]);
    let is_digits = middles
        .clone()
        .all(|middle| !middle.is_empty() && middle.iter().all(char::is_ascii_digit));
    let is_empty = middles.clone().any(<[char]>::is_empty);
    let middle = match (is_digits, is_empty) {
        (true, _) => "[0-9]+",
        (false, true) => "[^/?]*",
        (false, false) => "[^/?]+",
    };
    format!(
        "{}{middle}{}",
        regex::escape(&prefix),
        regex::escape(&suffix)
    )
}

/// A pattern of letters, digits, and the marks that occur in the texts. It requires a digit at the end if all texts end
/// in one.
fn pattern_with_marks(all: &[&str]) -> String {
    let is_mark = |c: &char| c.is_ascii_punctuation() && *c != '%';
    let marks: BTreeSet<char> = all
        .iter()
        .flat_map(|text| text.chars())
        .filter(is_mark)
        .collect();
    let marks: String = marks
        .into_iter()
        .map(|mark| regex::escape(&mark.to_string()))
        .collect();
    let ends_in_digit = |text: &&str| text.ends_with(|c: char| c.is_ascii_digit());
    match all.iter().all(ends_in_digit) {
        true => format!("[0-9A-Za-z%{marks}]*[0-9]"),
        false => format!("[0-9A-Za-z%{marks}]+"),
    }
}

/// The pattern of the query. The first parameter name that all URLs have is required if `detail` includes the query, or
/// if paths alone do not distinguish the pages.
fn query_pattern(urls: &[&Url], detail: Detail) -> String {
    let names = |url: &Url| -> Vec<String> {
        url.query_pairs()
            .map(|(name, _)| name.into_owned())
            .collect()
    };
    let shared: Vec<String> = names(urls[0])
        .into_iter()
        .filter(|name| !name.is_empty() && urls.iter().all(|url| names(url).contains(name)))
        .collect();
    let path_suffices = {
        let mut paths: Vec<&str> = urls.iter().map(|url| url.path()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths.len() == urls.len() && urls.len() > 1
    };
    match shared.first() {
        Some(name) if !path_suffices || detail == Detail::Query => {
            format!(r"\?(?:.*&)?{}=.*", regex::escape(name))
        }
        _ if urls.iter().any(|url| url.query().is_some()) => r"(?:\?.*)?".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(texts: &[&str]) -> Vec<Url> {
        let url = |path: &&str| Url::parse(&format!("https://made.example{path}")).unwrap();
        texts.iter().map(url).collect()
    }

    fn joined_patterns(own: &[&str], others: &[&str]) -> String {
        let (own, others) = (urls(own), urls(others));
        let others: Vec<&Url> = others.iter().collect();
        patterns_with_links(&own.iter().collect::<Vec<_>>(), &[], &others).join(" ")
    }

    #[test]
    fn marks_separate_kinds_if_nothing_else_does() {
        let own = ["/wiki/Ada", "/wiki/Grace_Hopper", "/wiki/Emmy"];
        assert_eq!(
            joined_patterns(&own, &[]),
            "^https?://made\\.example/wiki/[^/?]+$"
        );
        let others = ["/wiki/Talk:Ada", "/wiki/Special:Search"];
        assert_eq!(
            joined_patterns(&own, &others),
            "^https?://made\\.example/wiki/[0-9A-Za-z%_]+$"
        );
        let own = ["/lamp-12", "/chair-7", "/kettle-and-pot-9"];
        let others = ["/about-us", "/imprint"];
        assert_eq!(
            joined_patterns(&own, &others),
            "^https?://made\\.example/[0-9A-Za-z%\\-]*[0-9]$"
        );
    }

    #[test]
    fn the_links_of_records_widen_a_pattern_unless_it_would_match_another_kind() {
        let with_links = |own: &[&str], links: &[&str], others: &[&str]| {
            let (own, links, others) = (urls(own), urls(links), urls(others));
            let (own, others): (Vec<&Url>, Vec<&Url>) =
                (own.iter().collect(), others.iter().collect());
            patterns_with_links(&own, &links, &others).join(" ")
        };
        let narrow = "^https?://made\\.example/item/[0-9]+$";
        let wide = "^https?://made\\.example/item/[^/?]+$";
        let own = ["/item/10", "/item/27"];
        for (links, others, expected) in [
            (vec![], vec![], narrow),
            (vec!["/item/99"], vec![], narrow),
            (vec!["/item/lamp", "/item/98"], vec![], wide),
            (vec!["/item/lamp"], vec!["/about"], wide),
            // In these cases the pattern stays narrow: the links have another form, or pages of another kind would
            // match.
            (vec!["/", "/a/b/c"], vec![], narrow),
            (vec!["/item/all"], vec!["/item/all"], narrow),
        ] {
            assert_eq!(with_links(&own, &links, &others), expected, "{links:?}");
        }
        let many: Vec<String> = (0..30)
            .map(|number| format!("/item/list{number}"))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(with_links(&own, &["/item/lamp"], &many), narrow);
    }

    #[test]
    fn a_few_of_another_kind_are_excluded_by_name() {
        let pattern = joined_patterns(&["/ada", "/grace", "/emmy"], &["/about", "/x/y"]);
        let excluded = "^(?!(?:https://made\\.example/about)$)https?://made\\.example/[^/?]+$";
        assert_eq!(pattern, excluded);
        let many: Vec<String> = (0..30).map(|number| format!("/page{number}x")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            joined_patterns(&["/ada", "/grace"], &many),
            "^https?://made\\.example/[^/?]+$"
        );
    }
}
