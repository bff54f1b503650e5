//! Tests that the names in documents exist. If a file moves or a function is renamed, the test fails with document,
//! line and name.
//!
//! The documents are all `.md` files of the repository. Code blocks are not checked. The rules:
//!
//! - **A link** that is not a URL leads to a file or folder, relative to the document. An anchor is a heading of the
//!   Markdown file that it leads to.
//! - **A path** in back-ticks is one with a `/` in it, or the name of a `.rs`, `.md`, `.py` or `.sh` file. It exists,
//!   relative to the top of the repository or to the document's folder. The bare name of an `.rs` file may be that of
//!   any such file. These are not checked: absolute paths, paths with a placeholder in capitals
//!   (`golden/MAPPING/CASE.html`), paths in folders that tools fill (`target/`), and [`NOT_OURS`].
//! - **A name in the code** in back-ticks:
//!   - followed by ``in `PATH` `` (or by a link to a file, ``in [..](..)``), it is declared in that file;
//!   - `Type::member` is declared in a file that knows the type; `module::function` in a file `module.rs` or in a
//!     folder `module`;
//!   - `function()` is a function;
//!   - every other name with an underscore (`lease_ms`, `WIRE_VERSION`) or with several capitals (`SiteClock`) occurs
//!     as a word somewhere in the sources. So a rename is noticed if the old name is no longer used anywhere.
//!     Environment variables, `WEBFILL_...`, are not checked.

use std::path::Path;

use crate::markdown::{Document, Piece, code_spans, links};
use crate::repository::{Repository, SKIPPED_FOLDERS, join_path, normalise_path, words};

/// Names in documents that look like names of this project but are not: those of other programs, files of users, media
/// types.
const NOT_OURS: &[&str] = &[
    "N/A",
    "application/json",
    "application/x-ndjson",
    "books.webfill/",
    "books.webfill/mappings/",
    "lang()",
    "logs/",
    "mine/golden/",
    "mine/pages",
    "mine/ratings.json",
    "mine/stdlib.json",
    "seen/",
];

/// The wrong names in a document, one message each.
fn faults(document: &Document, repository: &Repository, documents: &[Document]) -> Vec<String> {
    let prose = document.prose();
    let spans = code_spans(&prose);
    let links = links(&prose, &spans);
    let said = |line: usize, fault: String| format!("{}:{line}: {fault}", document.path);
    let mut faults = Vec::new();
    for link in &links {
        if let Some(fault) = link_fault(document, link.text, repository, documents) {
            faults.push(said(link.line, fault));
        }
    }
    for span in &spans {
        let file = stated_file(&prose, span);
        if let Some(fault) = span_fault(document, span.text, file, repository) {
            faults.push(said(span.line, fault));
        }
    }
    faults
}

fn link_fault(
    document: &Document,
    target: &str,
    repository: &Repository,
    documents: &[Document],
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let folder = Path::new(&document.path).parent()?.to_str()?;
    let place = match path {
        "" => document.path.clone(),
        _ => normalise_path(&join_path(folder, path)).unwrap_or_default(),
    };
    if !path.is_empty() && !repository.paths.contains(&place) {
        return Some(format!("the link ({target}) leads to no file"));
    }
    if anchor.is_empty() {
        return None;
    }
    let mut all = documents.iter().chain([document]);
    let target_document = all.find(|other| other.path == place)?;
    match target_document
        .anchors()
        .iter()
        .any(|known| known == anchor)
    {
        true => None,
        false => Some(format!("the link ({target}) leads to no heading")),
    }
}

/// The file that a document states for a name, by ``in `PATH` `` or `in [text](PATH)` directly after the name.
fn stated_file<'p>(prose: &'p str, span: &Piece<'_>) -> Option<&'p str> {
    let behind = prose[span.place.end..].trim_start();
    let behind = behind.strip_prefix("in")?;
    let rest = behind.trim_start();
    if rest.len() == behind.len() {
        return None;
    }
    let file = match rest.strip_prefix('`') {
        Some(path) => path.split('`').next()?,
        None => rest
            .strip_prefix('[')?
            .split_once("](")?
            .1
            .split(')')
            .next()?,
    };
    file.ends_with(".rs").then_some(file)
}

fn span_fault(
    document: &Document,
    span: &str,
    file: Option<&str>,
    repository: &Repository,
) -> Option<String> {
    if NOT_OURS.contains(&span) {
        return None;
    }
    if is_path(span) {
        let is_bare = !span.contains('/');
        let named = |path: &String| path.rsplit('/').next() == Some(span);
        let exists = repository.resolve(document, span).is_some()
            || (is_bare && span.ends_with(".rs") && repository.files.iter().any(named));
        return (!exists).then(|| format!("`{span}` is no path of the repository"));
    }
    let name = span.strip_suffix("()").unwrap_or(span);
    let is_name = |name: &str| words(name).next() == Some(name);
    if let Some((owner, member)) = name.split_once("::") {
        let is_plain = is_name(owner) && is_name(member);
        return match !is_plain || repository.has_member(owner, member) {
            true => None,
            false => Some(format!("`{span}`: `{owner}` declares no `{member}`")),
        };
    }
    if !is_name(name) || name.starts_with("WEBFILL_") {
        return None;
    }
    if let Some(file) = file {
        let place = repository.resolve(document, file)?;
        return match repository.is_declared(name, |declares| declares == place) {
            true => None,
            false => Some(format!("`{name}` is not declared in {file}")),
        };
    }
    if span.ends_with("()") {
        let declared = repository.is_declared(name, |_| true);
        return (!declared).then(|| format!("there is no function `{name}`"));
    }
    let looks_like_code = name.contains('_') || is_camel_case(name);
    let is_known = !looks_like_code || repository.words.contains(name);
    (!is_known).then(|| format!("`{name}` does not occur in the sources"))
}

/// Whether a code span is a path that can be checked.
fn is_path(span: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_placeholder = |part: &str| {
        part.len() > 1
            && part
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
    };
    let is_file = [".rs", ".md", ".py", ".sh"]
        .iter()
        .any(|ending| span.len() > ending.len() && span.ends_with(ending));
    let mut parts = span.split(['/', '.']);
    let folder = span.split('/').next().unwrap_or_default();
    span.chars().all(allowed)
        && span.contains(|c: char| c.is_ascii_alphabetic()) // `1/2` is a number
        && !SKIPPED_FOLDERS.contains(&folder)
        && (span.contains('/') || is_file)
        && !span.starts_with('/')
        && !span.contains("...")
        && (span.ends_with(".md") || !parts.any(is_placeholder))
}

fn is_camel_case(name: &str) -> bool {
    let capitals = name.chars().filter(char::is_ascii_uppercase).count();
    let small = name.chars().any(|c| c.is_ascii_lowercase());
    name.starts_with(|first: char| first.is_ascii_uppercase()) && capitals > 1 && small
}

#[test]
fn every_name_in_a_document_exists() {
    let repository = Repository::read();
    let documents = repository.documents();
    assert!(documents.len() > 15, "documents are missing");
    let faults: Vec<String> = documents
        .iter()
        .flat_map(|document| faults(document, &repository, &documents))
        .collect();
    assert!(
        faults.is_empty(),
        "{} names are wrong:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn every_exception_is_needed() {
    let documents = Repository::read().documents();
    for exception in NOT_OURS {
        let span = format!("`{exception}`");
        assert!(
            documents
                .iter()
                .any(|document| document.text.contains(&span)),
            "no document names {span} any more"
        );
    }
}

#[test]
fn wrong_names_are_found_with_their_line() {
    let repository = Repository::read();
    let documents = repository.documents();
    let check = |text: &str| {
        let document = Document {
            path: "docs/made-up.md".into(),
            text: format!("# Made up\n\n{text}\n"),
        };
        faults(&document, &repository, &documents)
    };
    for wrong in [
        "[gone](no-such-file.md)",
        "[gone](../README.md#no-such-heading)",
        "[gone](#no-such-heading)",
        "`worker/src/no_such_file.rs`",
        "`no_such_file.rs`",
        "`worker/src/no_such_folder/`",
        "`no_such_function` in `worker/src/journey.rs`",
        "`no_such_function` in\n[the journey](../worker/src/journey.rs)",
        // This function exists, but in another file than stated.
        "`run_site` in `worker/src/fetch.rs`",
        "`RobotsRules::no_such_member`",
        "`NoSuchType::parse`",
        "`robots::no_such_test`",
        "`no_such_function()`",
        "`never_declared_here`",
        "`NO_SUCH_CONSTANT`",
        "`NoSuchType`",
    ] {
        let found = check(wrong);
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        assert!(found[0].starts_with("docs/made-up.md:3: "), "{found:?}");
    }
    for right in [
        "[up](../README.md#how-it-works), [here](#made-up), [away](https://example.org/no-such)",
        "`worker/src/journey.rs`, `journey.rs`, `worker/src/`, `golden/MAPPING/no_such.html`",
        "`run_site` in `worker/src/journey.rs`, `run_site` in [a file](../worker/src/journey.rs)",
        "`RobotsRules::parse`, `run_site()`, `WIRE_VERSION`, `RobotsRules`, `WEBFILL_NO_SUCH`",
        "    `never_declared_here` in an indented block",
        "```\n`never_declared_here`\n```",
    ] {
        assert_eq!(check(right), Vec::<String>::new(), "{right}");
    }
}
