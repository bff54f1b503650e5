//! Routes paths to views. The path after `/dashboard/` is split at its slashes, and each part is decoded, so that a
//! view gets names unescaped.

use crate::answer::{Problem, Shown};
use crate::editor::alert_copies;
use crate::editor::view as editor;
use crate::form::Form;
use crate::views::pages::{self, PagesOf};
use crate::views::{
    actions, audit, cell, changes, crawl, crawls, dead, doubts, find, grid, machines, mapping,
    mappings, overview, page, record, record_cell, records, review, site, sites, table, tables,
    watch, watches,
};
use crate::visit::Visit;

/// The largest form, in bytes.
const MOST_FORM_BYTES: usize = 64 << 10;

/// The parts of a path after `/dashboard/`.
pub(crate) fn split_path(path: &str) -> Vec<String> {
    let behind = path.strip_prefix("/dashboard").unwrap_or_default();
    let behind = behind.strip_prefix('/').unwrap_or_default();
    match behind {
        "" => Vec::new(),
        behind => behind.split('/').map(percent_decode).collect(),
    }
}

/// Returns the view of a path.
pub(crate) async fn show(visit: &Visit, parts: &[&str]) -> Shown {
    match parts {
        [] if visit.has_tables_only() => tables::show(visit).await,
        [] => overview::show(visit).await,
        ["tables"] => tables::show(visit).await,
        ["table", name] => table::show(visit, name).await,
        ["table", name, "rows"] => grid::show(visit, name).await,
        ["table", name, "cell"] => cell::show(visit, name).await,
        ["table", name, file] if let Some(ending) = file.strip_prefix("rows.") => {
            grid::download(visit, name, ending).await
        }
        ["table", name, "review"] => review::show(visit, name).await,
        ["crawl", app, id] => crawl::show(visit, app, id).await,
        ["crawl", app, id, "charts"] => crawl::show_charts(visit, app, id).await,
        ["crawl", app, id, "dead"] => dead::show(visit, app, id).await,
        ["crawl", app, id, "dead.csv"] => dead::download(visit, app, id).await,
        ["crawl", app, id, "pages"] => pages::show(visit, PagesOf::Crawl(app, id)).await,
        ["crawl", app, id, "changes"] => changes::show(visit, Some((app, id))).await,
        ["changes"] => changes::show(visit, None).await,
        ["doubts"] => doubts::show(visit).await,
        ["pages"] => pages::show(visit, PagesOf::All).await,
        ["page", app, crawl, hash] => page::show(visit, app, crawl, hash).await,
        ["page", app, crawl, hash, "body"] => page::show_body(visit, app, crawl, hash).await,
        ["find"] => find::show(visit).await,
        ["sites"] => sites::show(visit).await,
        ["site", site] => site::show(visit, site).await,
        ["site", site, "pages"] => pages::show(visit, PagesOf::Site(site)).await,
        ["records"] => records::show(visit).await,
        [file] if let Some(ending) = file.strip_prefix("records.") => {
            records::download(visit, ending).await
        }
        ["record", dataset, id] => record::show(visit, dataset, id).await,
        ["record", dataset, id, "cell"] => record_cell::show(visit, dataset, id).await,
        ["watches"] => watches::show(visit).await,
        ["watch", name] => watch::show(visit, name).await,
        ["mappings"] => mappings::show(visit).await,
        ["mapping", name] => mapping::show(visit, name).await,
        ["mapping", name, "copy"] => alert_copies::show(visit, name).await,
        ["mapping", name, "pages"] => pages::show(visit, PagesOf::Mapping(name)).await,
        ["charts"] => overview::show_charts(visit).await,
        ["crawls"] => crawls::show(visit).await,
        ["machines"] => machines::show(visit).await,
        ["audit"] => audit::show(visit).await,
        ["editor", rest @ ..] => editor::show(visit, rest).await,
        _ => Err(page_not_found()),
    }
}

/// Handles a post to a path. The form token was checked before.
pub(crate) async fn submit(visit: &Visit, parts: &[&str], form: &Form) -> Shown {
    match parts {
        ["table", name, "review"] => review::submit(visit, name, form).await,
        ["table", name, "cell"] => cell::submit(visit, name, form).await,
        ["record", dataset, id, "cell"] => record_cell::submit(visit, dataset, id, form).await,
        ["do", action] => actions::submit(visit, action, form).await,
        ["editor", rest @ ..] => editor::submit(visit, rest, form).await,
        _ => Err(page_not_found()),
    }
}

/// The largest body that may be posted to this path, in bytes.
pub(crate) fn max_body_bytes(parts: &[&str]) -> usize {
    match parts {
        ["editor", rest @ ..] => editor::max_body_bytes(rest),
        _ => MOST_FORM_BYTES,
    }
}

fn page_not_found() -> Problem {
    Problem::not_found("page not found")
}

/// Decodes percent-encoding. Invalid UTF-8 is replaced, so such a name is not found.
fn percent_decode(part: &str) -> String {
    let bytes = part.as_bytes();
    let mut text = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = part.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                text.push(byte);
                at += 3;
            }
            None => {
                text.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_split_before_they_are_decoded() {
        assert!(split_path("/dashboard").is_empty() && split_path("/dashboard/").is_empty());
        assert_eq!(
            split_path("/dashboard/crawl/a%2Fb/%C3%BC"),
            ["crawl", "a/b", "ü"]
        );
        assert_eq!(split_path("/dashboard/page//%"), ["page", "", "%"]);
        assert_eq!(split_path("/dashboard/%zz%4"), ["%zz%4"]);
        assert_eq!(split_path("/dashboard/%ff"), ["\u{fffd}"]);
        assert_eq!(split_path("/dashboard/%é%2"), ["%é%2"]);
    }
}
