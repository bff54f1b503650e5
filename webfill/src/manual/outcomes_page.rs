//! Generates `outcomes.md` from the closed lists of outcomes and reasons. The program does not compile if a new name
//! has no sentence here.

use std::fmt::Write;

use webfill_wire::{BackoffReason, Outcome, Reason, TaskEnd};

const HEAD: &str = "\
# Outcomes and reasons

Every accepted URL ends in exactly one outcome. Every refused URL has exactly one reason. Summaries, logs, metrics, the
store and the answers to applications use these names. This page is written by `make reference` from
`crates/wire/src/vocabulary.rs`.

## Outcomes

| result | of the task | counts as |
|---|---|---|
| page | it ended with its page, new or unchanged | success |
| elsewhere | its URL leads to another one, which is a task of its own | neither |
| refused | the rules of the site forbid the page | neither; `webfill retry` can queue it again |
| failed | it ended without the page | error; `webfill retry` can queue it again |
| dropped | nobody needs the page any more; nothing was requested | neither |

A site [backs off](data.md#sites-that-back-off) if an outcome shows that the site itself has the trouble. The last
column names that trouble. \"If repeated\" means that one page does not prove it.

| outcome | meaning | result | site trouble |
|---|---|---|---|
";

const REASONS_HEAD: &str = "
## Reasons

| reason | why a link did not become a task |
|---|---|
";

pub fn generate_page() -> String {
    let mut page = HEAD.to_owned();
    for outcome in Outcome::ALL {
        let (meaning, result) = (outcome_meaning(*outcome), result_name(outcome.end()));
        let trouble = trouble_name(*outcome);
        let _ = writeln!(page, "| `{outcome}` | {meaning} | {result} | {trouble} |");
    }
    page.push_str(REASONS_HEAD);
    for reason in Reason::ALL {
        let _ = writeln!(page, "| `{reason}` | {} |", reason_text(*reason));
    }
    page
}

fn result_name(end: TaskEnd) -> &'static str {
    match end {
        TaskEnd::Page => "page",
        TaskEnd::Elsewhere => "elsewhere",
        TaskEnd::Refused => "refused",
        TaskEnd::Failed => "failed",
        TaskEnd::Dropped => "dropped",
    }
}

fn trouble_name(outcome: Outcome) -> String {
    match outcome.site_trouble() {
        // Whether the site backs off depends on the status, not on the outcome.
        None if outcome == Outcome::HttpError => {
            let (busy, blocked) = (BackoffReason::Busy, BackoffReason::Blocked);
            format!("`{busy}` for 429 and 503, `{blocked}` for 401 and 403; if repeated")
        }
        None => String::new(),
        Some(trouble) if trouble.is_certain => format!("`{}`", trouble.reason),
        Some(trouble) => format!("`{}`, if repeated", trouble.reason),
    }
}

/// The meaning of an outcome as Markdown, with links relative to `docs/reference/`.
fn outcome_meaning(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "the page was fetched with a 2xx status and read in full",
        Outcome::NotModified => {
            "the page has not changed since the last fetch (304); it keeps \
             [its earlier data](../how-to/watches.md#pages-that-have-not-changed)"
        }
        Outcome::Redirected => {
            "the server redirected, or the page is a [refresh redirect](data.md#refresh-redirects); the target was \
             judged as a new URL"
        }
        Outcome::HttpError => {
            "the server returned another status, such as 404 or 500, which is stored; or it redirected the page to itself"
        }
        Outcome::Disallowed => "robots.txt forbids the URL; it was not requested",
        Outcome::RobotsUnreachable => {
            "robots.txt could not be fetched or decoded (no answer, 408, 425, 429, 5xx, a limiter, or a status that \
             sends no file, such as 304 and 206), and no copy is less than a day old; nothing is allowed for now"
        }
        Outcome::DnsError => "the host name does not resolve",
        Outcome::NetworkError => "the connection was refused, reset, or broke HTTP",
        Outcome::TlsError => "the TLS handshake failed, or the certificate is not valid",
        Outcome::Timeout => {
            "connection, head, body or the whole request took longer than its limit"
        }
        Outcome::TooLarge => "the head or the decoded body exceeds its limit",
        Outcome::UnsupportedType => {
            "the body is neither HTML, XHTML, XML, JSON nor text, nor with `--documents` a document, or it has an \
             unknown coding; it was not read"
        }
        Outcome::Blocked => {
            "the site answered with a challenge, a CAPTCHA or a refusal of robots instead of the page \
             ([blocks.md](../explanation/blocks.md)); no fields, links or redirect are taken from it"
        }
        Outcome::UnsafeAddress => {
            "the host resolves to an address that must not be fetched from, such as a private one"
        }
        Outcome::ExtractError => "the page was read, but its extraction failed or took too long",
        Outcome::Crashed => "the page killed its worker three times, or its browser tab",
        Outcome::Expired => "the crawl expired before the task was fetched",
        Outcome::Stopped => {
            "the crawl was stopped, the task's records were complete, or its site was excluded"
        }
    }
}

fn reason_text(reason: Reason) -> &'static str {
    match reason {
        Reason::Duplicate => "the crawl has already accepted the URL",
        Reason::TooDeep => {
            "it is deeper than the crawl's depth, or follows more than five redirects in a row"
        }
        Reason::OutOfDomain => "it is outside the allowed domains",
        Reason::DeniedPattern => "it matches a deny pattern, or no allow pattern",
        Reason::DeniedExtension => "files with its extension are not fetched",
        Reason::ExcludedSite => "its site is on the list of excluded sites",
        Reason::InvalidUrl => "it is not a URL, or too long",
        Reason::UnsupportedScheme => "its scheme is neither http nor https",
        Reason::Budget => "the crawl's budget for its site is spent",
        Reason::RepeatedPage => {
            "it was found on a page that [only repeats others](data.md#pages-that-only-repeat-others) of its site"
        }
        Reason::FragmentRoute => {
            "its fragment (`#/x`, `#!x`) names a page that only scripts show. In the lane `browser` it is a page of its \
             own; in the other lane, the page before the `#` is fetched, for no record"
        }
    }
}
