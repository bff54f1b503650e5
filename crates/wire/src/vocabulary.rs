//! Closed lists of names that code, logs and stored data share: lanes, outcomes, reasons, and which links are
//! followed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Defines a field-less enum. Each variant has one stable name, which JSON, logs, stores and summaries use.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every value, in order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The stable name.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err(format!("`{text}` is not one of {}", [$($text),+].join(", "))),
                }
            }
        }
    };
}

named! {
    /// How pages are read: with or without a browser. A crawl needs one lane, and a supervisor has one.
    Lane {
        /// Pages are read as the server sends them.
        Http = "http",
        /// Pages are read after their scripts have run. A supervisor of this lane serves `http` as well.
        Browser = "browser",
    }
}

named! {
    /// How a task ended.
    Outcome {
        /// Fetched with a 2xx status and completely read.
        Ok = "ok",
        /// The server said that the page has not changed (304).
        NotModified = "not_modified",
        /// The server redirected. The target became a link like any other.
        Redirected = "redirected",
        /// The server answered with another status: 4xx, 5xx.
        HttpError = "http_error",
        /// robots.txt forbids the URL. It was not fetched.
        Disallowed = "disallowed",
        /// robots.txt was unavailable (5xx or no answer), which forbids everything for now.
        RobotsUnreachable = "robots_unreachable",
        /// The host name does not resolve.
        DnsError = "dns_error",
        /// The connection was refused or reset, or the response broke HTTP.
        NetworkError = "network_error",
        /// The TLS handshake failed.
        TlsError = "tls_error",
        /// Connecting, the head or the body of the response, or the whole request took too long.
        Timeout = "timeout",
        /// The head or the decoded body is over its limit.
        TooLarge = "too_large",
        /// The content is neither HTML, XHTML, XML, JSON nor text.
        UnsupportedType = "unsupported_type",
        /// The site answered with a challenge or a refusal of robots instead of the page.
        Blocked = "blocked",
        /// The host resolves to an address that must not be connected to.
        UnsafeAddress = "unsafe_address",
        /// The page was fetched, but its extraction failed or took too long.
        ExtractError = "extract_error",
        /// The page killed its worker three times, or crashed its tab in the browser.
        Crashed = "crashed",
        /// The crawl expired before the task was fetched.
        Expired = "expired",
        /// The crawl or the task's record no longer needed the page.
        Stopped = "stopped",
    }
}

/// How a task ended for its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// The task got its page, new or unchanged.
    Page,
    /// The page is at another URL, which becomes a task of its own.
    Elsewhere,
    /// The task did not get its page, because the site's rules forbid it.
    Refused,
    /// The task did not get its page, because something failed.
    Failed,
    /// The page was not requested, because it is no longer needed.
    Dropped,
}

impl Outcome {
    /// Everything that webfill derives from an outcome: how the task ended, the site trouble that it may show, and its
    /// meaning in words. A new outcome needs a line here, and a variant at the end of the list above, because messages
    /// carry the number of a variant.
    fn properties(self) -> (TaskEnd, Option<SiteTrouble>, &'static str) {
        use BackoffReason::{Blocked, Dns, Robots, Tls, Unreachable};
        use TaskEnd::{Dropped, Elsewhere, Failed, Page, Refused};
        let certain = |reason| {
            Some(SiteTrouble {
                reason,
                is_certain: true,
            })
        };
        let likely = |reason| {
            Some(SiteTrouble {
                reason,
                is_certain: false,
            })
        };
        match self {
            Outcome::Ok => (Page, None, "fetched and read"),
            Outcome::NotModified => (Page, None, "not changed since the last fetch"),
            Outcome::Redirected => (Elsewhere, None, "redirected to another URL"),
            Outcome::HttpError => (
                Failed,
                None,
                "the server returned an error (4xx, such as 404, or 5xx)",
            ),
            Outcome::Disallowed => (Refused, None, "disallowed by robots.txt, not fetched"),
            Outcome::RobotsUnreachable => (
                Failed,
                certain(Robots),
                "robots.txt unavailable, nothing allowed",
            ),
            Outcome::DnsError => (Failed, certain(Dns), "the host name does not resolve (DNS)"),
            Outcome::NetworkError => (
                Failed,
                likely(Unreachable),
                "the connection was refused or broken",
            ),
            Outcome::TlsError => (
                Failed,
                likely(Tls),
                "no secure connection: certificate or handshake",
            ),
            Outcome::Timeout => (Failed, likely(Unreachable), "it took too long"),
            Outcome::TooLarge => (Failed, None, "larger than the limit"),
            Outcome::UnsupportedType => (Failed, None, "unsupported type"),
            Outcome::Blocked => (
                Failed,
                certain(Blocked),
                "the site blocks crawlers or shows a CAPTCHA",
            ),
            Outcome::UnsafeAddress => (Failed, None, "private or reserved address"),
            Outcome::ExtractError => (Failed, None, "fetched, but the extraction failed"),
            Outcome::Crashed => (Failed, None, "crashed its worker three times"),
            Outcome::Expired => (Dropped, None, "the crawl expired"),
            Outcome::Stopped => (Dropped, None, "stopped, or no longer needed"),
        }
    }

    pub fn end(self) -> TaskEnd {
        self.properties().0
    }

    /// Whether the task ended with its page, new or unchanged.
    pub fn is_page(self) -> bool {
        self.end() == TaskEnd::Page
    }

    /// Whether an operator may want to retry the page.
    pub fn is_failure(self) -> bool {
        matches!(self.end(), TaskEnd::Failed | TaskEnd::Refused)
    }

    /// The trouble with the page's site, or with the network path to it, that this outcome may show.
    pub fn site_trouble(self) -> Option<SiteTrouble> {
        self.properties().1
    }

    /// The meaning of the outcome, for users.
    pub fn meaning(self) -> &'static str {
        self.properties().2
    }
}

/// Trouble with a site, as shown by the outcome of one of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteTrouble {
    pub reason: BackoffReason,
    /// Whether one page proves the trouble. Otherwise the page itself may be the cause, and only several failures
    /// without any response from the server prove it.
    pub is_certain: bool,
}

named! {
    /// Why a site backs off: none of its tasks is given to workers for a time.
    BackoffReason {
        /// robots.txt was unavailable.
        Robots = "robots",
        /// Connections fail, or requests get no response.
        Unreachable = "unreachable",
        /// The site's certificate is not valid for it, or it does not speak TLS.
        Tls = "tls",
        /// The host name does not resolve.
        Dns = "dns",
        /// The site demands fewer requests (429, 503).
        Busy = "busy",
        /// The site has refused the crawler: a block page, or several 401 and 403 in a row.
        Blocked = "blocked",
    }
}

named! {
    /// Why a discovered link did not become a task.
    Reason {
        /// The link was seen before in this crawl.
        Duplicate = "duplicate",
        /// The link is deeper than the crawl's depth, or follows too many redirects in a row.
        TooDeep = "too_deep",
        /// The link leads outside the allowed domains.
        OutOfDomain = "out_of_domain",
        /// The URL matches a deny pattern, or no allow pattern.
        DeniedPattern = "denied_pattern",
        /// The path has an extension that is not fetched.
        DeniedExtension = "denied_extension",
        /// The site is on the list of excluded sites.
        ExcludedSite = "excluded_site",
        /// The link is not a URL, or is too long to keep.
        InvalidUrl = "invalid_url",
        /// The scheme is neither http nor https.
        UnsupportedScheme = "unsupported_scheme",
        /// The crawl's budget for this domain is spent.
        Budget = "budget",
        /// The link was found on a page that only repeats others of its site.
        RepeatedPage = "repeated_page",
        /// The fragment (`#/x`, `#!x`) names a page that only scripts show, and the crawl has no browser.
        FragmentRoute = "fragment_route",
    }
}

named! {
    /// Which links of a page are followed.
    Follow {
        /// Links that the url_parsers of the page's mapping yield.
        Mapped = "mapped",
        /// Every link of the page.
        All = "all",
        /// No links.
        None = "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_parsed_back() {
        for outcome in Outcome::ALL {
            assert_eq!(outcome.as_str().parse::<Outcome>().as_ref(), Ok(outcome));
        }
        for reason in Reason::ALL {
            assert_eq!(reason.as_str().parse::<Reason>().as_ref(), Ok(reason));
        }
        assert!("gone".parse::<Outcome>().unwrap_err().contains("`gone`"));
    }
}
