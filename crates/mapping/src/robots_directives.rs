//! Directives of a page that forbid crawlers to follow its links: `<meta name="robots">` and `X-Robots-Tag`. Only
//! `nofollow`, and `none`, which includes it, matter here. The other directives concern the index of a search engine,
//! which webfill does not have.

/// The name of this crawler. Directives with other names are for other crawlers.
const AGENT: &str = "webfill";

/// Directives with a value after a colon. A colon also follows the name of a crawler, so the two must be distinguished.
const WITH_VALUE: &[&str] = &[
    "max-image-preview",
    "max-snippet",
    "max-video-preview",
    "unavailable_after",
];

/// Whether a `meta` element of this name is meant for this crawler.
pub(crate) fn is_for_us(name: &str) -> bool {
    let name = name.trim();
    name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(AGENT)
}

/// Whether the content of a robots `meta` element forbids following the page's links.
pub(crate) fn is_nofollow(directives: &str) -> bool {
    directives.split(',').any(forbids_following)
}

fn forbids_following(directive: &str) -> bool {
    let directive = directive.trim();
    ["nofollow", "none"]
        .iter()
        .any(|known| directive.eq_ignore_ascii_case(known))
}

/// Whether an `X-Robots-Tag` header forbids following the page's links. The header may name the crawlers it is meant
/// for, and proxies join several headers.
pub fn is_nofollow_tag(value: &str) -> bool {
    let mut is_for_us = true;
    value.split(',').any(|part| {
        let mut directive = part;
        if let Some((name, rest)) = part.split_once(':')
            && is_agent(name.trim())
        {
            is_for_us = name.trim().eq_ignore_ascii_case(AGENT);
            directive = rest;
        }
        is_for_us && forbids_following(directive)
    })
}

/// Whether the text before a colon is the name of a crawler. A date has colons, too, but spaces before them.
fn is_agent(name: &str) -> bool {
    let has_value = WITH_VALUE
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known));
    !name.is_empty() && !name.contains(char::is_whitespace) && !has_value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directives_for_this_crawler_count() {
        for (value, expected) in [
            ("nofollow", true),
            ("none", true),
            ("noindex, NoFollow", true),
            ("noindex,nofollow", true),
            ("webfill: nofollow", true),
            ("WebFill : none", true),
            ("googlebot: noindex, webfill: nofollow", true),
            ("nofollow, googlebot: noindex", true),
            ("max-snippet: 20, nofollow", true),
            (
                "unavailable_after: Fri, 25 Jun 2027 15:00:00 PST, nofollow",
                true,
            ),
            ("unavailable_after: 2027-06-25T15:00:00Z, none", true),
            ("noindex", false),
            ("all", false),
            ("index, follow", false),
            ("noarchive, nosnippet", false),
            ("googlebot: nofollow", false),
            ("googlebot: noindex, nofollow", false),
            ("webfill: noindex, otherbot: nofollow", false),
            ("max-image-preview: none", false),
            ("nofollowing", false),
            ("", false),
            (":", false),
        ] {
            assert_eq!(is_nofollow_tag(value), expected, "{value}");
        }
        for (content, expected) in [
            ("noindex, nofollow", true),
            (" NONE ", true),
            ("follow", false),
            ("max-image-preview:none", false),
        ] {
            assert_eq!(is_nofollow(content), expected, "{content}");
        }
        assert!(is_for_us(" Robots ") && is_for_us("webfill") && !is_for_us("googlebot"));
    }
}
