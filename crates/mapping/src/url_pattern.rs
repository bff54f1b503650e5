//! A URL pattern of a mapping: `regex`, `glob`, `prefix` or `host`. Patterns are matched against the canonical URL,
//! whose scheme and host are lower-case and whose path is never empty.

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::RegexBuilder;
use webfill_urls::Url;

use crate::fault::{did_you_mean, quote};
use crate::pattern::{MAX_EXPRESSION_BYTES, Pattern, StepLimitExceeded};
use crate::required_literals::{RequiredLiterals, literals_of_fancy, literals_of_regex};

/// The most steps of an expression with look-around on one URL. They take about 0.3 ms.
const STEP_LIMIT: usize = 20_000;

/// The kinds of pattern by their names in files, with the meaning of each.
pub(crate) const KINDS: &[(&str, &str)] = &[
    (
        "regex",
        "a regular expression found anywhere in the URL; anchor it with ^ and $; look-around is allowed",
    ),
    (
        "glob",
        "the whole URL, where * is any text without /, ** any text, ? one character, [ab] one of, {a,b} either",
    ),
    (
        "prefix",
        "how the URL begins, at least up to the / after the host",
    ),
    (
        "host",
        "the host: example.org, or *.example.org for all hosts below it",
    ),
];

/// A compiled pattern.
#[derive(Debug)]
pub(crate) enum UrlPattern {
    /// An expression without look-around. Canonical URLs are ASCII, so an automaton over bytes gives the same result
    /// and has a tenth of the size.
    Ascii(regex::bytes::Regex),
    /// An expression with look-around, or with non-ASCII characters.
    Regex(Pattern),
    Glob {
        matcher: GlobMatcher,
        text: String,
    },
    Prefix(String),
    Host(String),
    /// Every host that ends with this text, which begins with a dot: `.example.com`.
    HostsBelow(String),
}

/// Why a pattern cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PatternFault {
    /// The key of the pattern that is invalid: `type` or `pattern`.
    pub(crate) key: &'static str,
    /// A single line that repeats the pattern and says what is wrong with it.
    pub(crate) message: String,
}

impl UrlPattern {
    /// Compiles a pattern. `kind` is the `type` in a mapping file.
    pub(crate) fn compile(kind: &str, text: &str) -> Result<UrlPattern, PatternFault> {
        let compiled = match kind {
            "regex" | "glob" | "prefix" | "host" if text.is_empty() => {
                Err("the pattern is empty".to_owned())
            }
            "regex" => compile_regex(text),
            "glob" => compile_glob(text),
            "prefix" => compile_prefix(text),
            "host" => compile_host(text),
            other => return Err(unknown_kind_fault(other)),
        };
        compiled.map_err(|reason| PatternFault {
            key: "pattern",
            message: format!("invalid {kind} {}: {reason}", quote(text)),
        })
    }

    pub(crate) fn is_match(&self, url: &str) -> Result<bool, StepLimitExceeded> {
        match self {
            UrlPattern::Ascii(regex) => Ok(regex.is_match(url.as_bytes())),
            UrlPattern::Regex(pattern) => pattern.is_match(url),
            UrlPattern::Glob { matcher, .. } => Ok(matcher.is_match(url)),
            UrlPattern::Prefix(prefix) => Ok(url.starts_with(prefix)),
            UrlPattern::Host(host) => Ok(host_in_url(url) == host),
            UrlPattern::HostsBelow(ending) => Ok(host_in_url(url).ends_with(ending.as_str())),
        }
    }

    /// Every matching URL contains at least one of these texts, in upper or lower case. `None` if no such texts are
    /// known.
    pub(crate) fn required_literals(&self) -> Option<Vec<String>> {
        match self {
            UrlPattern::Ascii(regex) => literals_of_regex(regex.as_str()),
            UrlPattern::Regex(pattern) if pattern.needs_steps() => {
                literals_of_fancy(pattern.text())
            }
            UrlPattern::Regex(pattern) => literals_of_regex(pattern.text()),
            UrlPattern::Glob { text, .. } => glob_literals(text),
            UrlPattern::Prefix(prefix) => Some(vec![prefix.clone()]),
            UrlPattern::Host(host) => Some(vec![format!("//{host}")]),
            UrlPattern::HostsBelow(ending) => Some(vec![ending.clone()]),
        }
    }
}

fn unknown_kind_fault(kind: &str) -> PatternFault {
    let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
    let meant = did_you_mean(kind, names.iter().copied());
    PatternFault {
        key: "type",
        message: format!(
            "unknown type of pattern {}{meant} (known: {})",
            quote(kind),
            names.join(", ")
        ),
    }
}

fn compile_regex(text: &str) -> Result<UrlPattern, String> {
    let pattern = Pattern::compile(text, STEP_LIMIT)?;
    let ascii = match pattern.needs_steps() {
        true => None,
        false => RegexBuilder::new(text).unicode(false).build().ok(),
    };
    Ok(ascii.map_or(UrlPattern::Regex(pattern), UrlPattern::Ascii))
}

fn compile_glob(text: &str) -> Result<UrlPattern, String> {
    if text.len() > MAX_EXPRESSION_BYTES {
        return Err(format!("over {MAX_EXPRESSION_BYTES} bytes long"));
    }
    if text.matches('{').count() > 16 {
        return Err("more than 16 groups of alternatives".to_owned());
    }
    let glob = GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| error.kind().to_string())?;
    Ok(UrlPattern::Glob {
        matcher: glob.compile_matcher(),
        text: text.to_owned(),
    })
}

/// The plain texts of a glob that every matching URL contains.
fn glob_literals(text: &str) -> Option<Vec<String>> {
    let mut literals = RequiredLiterals::default();
    let mut characters = text.chars();
    let mut inside: usize = 0;
    while let Some(character) = characters.next() {
        match character {
            '{' | '[' => {
                inside += 1;
                literals.end_run();
            }
            '}' | ']' => inside = inside.saturating_sub(1),
            '*' | '?' => literals.end_run(),
            '\\' => {
                let escaped = characters.next();
                if inside == 0 {
                    literals.extend(&escaped.map(String::from).unwrap_or_default());
                }
            }
            plain if inside == 0 => literals.extend(plain.encode_utf8(&mut [0; 4])),
            _ => {}
        }
    }
    literals.finish()
}

fn compile_prefix(text: &str) -> Result<UrlPattern, String> {
    if !["http://", "https://"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
    {
        return Err("a prefix must begin with http:// or https://".to_owned());
    }
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let host_end = text.find("://").map_or(0, |at| at + 3);
    if !text[host_end..].contains('/') {
        return Err(format!(
            "end the host with a slash, {}, or other hosts that begin alike match too",
            quote(&format!("{text}/"))
        ));
    }
    if !url.as_str().starts_with(text) {
        return Err(format!(
            "never the beginning of a canonical URL; write {}",
            quote(url.as_str())
        ));
    }
    Ok(UrlPattern::Prefix(text.to_owned()))
}

fn compile_host(text: &str) -> Result<UrlPattern, String> {
    let (host, below) = match text.strip_prefix("*.") {
        Some(host) => (host, true),
        None => (text, false),
    };
    let hint = "write a host such as example.org, or *.example.org for all hosts below it";
    let bare = |character: char| matches!(character, '/' | '@' | '?' | '#' | '*' | ' ');
    if host.contains(bare) || (host.contains(':') && !host.starts_with('[')) {
        return Err(hint.to_owned());
    }
    let url = Url::parse(&format!("http://{host}/")).map_err(|error| format!("{error}; {hint}"))?;
    let host = url.host_str().unwrap_or_default().trim_end_matches('.');
    if host.is_empty() {
        return Err(hint.to_owned());
    }
    Ok(if below {
        UrlPattern::HostsBelow(format!(".{host}"))
    } else {
        UrlPattern::Host(host.to_owned())
    })
}

/// The host of a canonical URL.
fn host_in_url(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let authority = &url[start..];
    let authority = &authority[..authority.find(['/', '?', '#']).unwrap_or(authority.len())];
    let port = authority
        .rfind(':')
        .filter(|&at| !authority[at..].contains(']'));
    &authority[..port.unwrap_or(authority.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(kind: &str, text: &str, url: &str) -> bool {
        UrlPattern::compile(kind, text)
            .unwrap()
            .is_match(url)
            .unwrap()
    }

    #[test]
    fn a_regex_is_found_anywhere_in_the_url() {
        let gravatar = r"^https?:\/\/(?:(?:www|\w{2})\.)?gravatar\.com\/(?!avatar|support|site|connect)\w+\/?$";
        assert!(is_match("regex", gravatar, "https://en.gravatar.com/ada"));
        assert!(is_match("regex", gravatar, "http://gravatar.com/ada/"));
        assert!(!is_match("regex", gravatar, "https://gravatar.com/avatar"));
        assert!(!is_match("regex", gravatar, "https://gravatar.com/ada/x"));
        assert!(is_match("regex", "/item/", "https://a.example/item/7"));
    }

    #[test]
    fn a_glob_matches_the_whole_url_and_a_star_stays_within_a_segment() {
        let library = "https://docs.python.org/3/library/*.html";
        assert!(is_match(
            "glob",
            library,
            "https://docs.python.org/3/library/os.html"
        ));
        assert!(!is_match(
            "glob",
            library,
            "https://docs.python.org/3/library/a/os.html"
        ));
        assert!(!is_match(
            "glob",
            library,
            "https://docs.python.org/3/library/os.html?x=1"
        ));
        assert!(is_match(
            "glob",
            "https://*.example/**",
            "https://a.example/b/c"
        ));
        assert!(is_match(
            "glob",
            "https://a.example/{x,y}/?",
            "https://a.example/y/1"
        ));
    }

    #[test]
    fn a_prefix_is_literal() {
        assert!(is_match(
            "prefix",
            "https://a.example/x",
            "https://a.example/xyz"
        ));
        assert!(!is_match(
            "prefix",
            "https://a.example/x.",
            "https://a.example/xyz"
        ));
    }

    #[test]
    fn a_host_pattern_matches_the_whole_host_or_all_hosts_below_it() {
        assert!(is_match("host", "A.example", "https://a.example:8080/x"));
        assert!(!is_match("host", "a.example", "https://b.a.example/"));
        assert!(!is_match(
            "host",
            "a.example",
            "https://a.example.evil.test/a.example"
        ));
        assert!(is_match("host", "*.a.example", "http://x.y.a.example/"));
        assert!(!is_match("host", "*.a.example", "http://a.example/"));
        assert!(!is_match("host", "*.a.example", "http://xa.example/"));
        assert!(is_match(
            "host",
            "bücher.example",
            "http://xn--bcher-kva.example/"
        ));
        assert!(is_match("host", "[::1]", "http://[::1]:81/"));
    }

    #[test]
    fn patterns_that_cannot_be_meant_are_refused_with_advice() {
        for (kind, text, part) in [
            ("prefix", "https://a.example", "end the host with a slash"),
            (
                "prefix",
                "a.example/",
                "must begin with http:// or https://",
            ),
            (
                "prefix",
                "https://A.example/",
                "write \"https://a.example/\"",
            ),
            ("host", "https://a.example", "write a host such as"),
            ("host", "a.example:80", "write a host such as"),
            ("glob", "https://a.example/[", "unclosed character class"),
            ("regex", "a(", "unclosed group"),
            ("regexp", "a", "did you mean `regex`?"),
            ("host", "", "the pattern is empty"),
        ] {
            let error = UrlPattern::compile(kind, text).unwrap_err().message;
            assert!(error.contains(part), "{kind} {text}: {error}");
        }
    }
}
