//! The navigation on every page: the overview, three areas, and the views of the open area.

use serde::Serialize;

use crate::visit::Visit;

/// What a view needs. It is offered only to visitors of a dashboard that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Tables, and rights for all applications.
    Tables,
    Fleet,
    /// A running fleet, and rights for all applications.
    WholeFleet,
    Store,
    /// The store, and rights for all applications.
    WholeStore,
    /// A fleet or a store, and rights for all applications.
    Sites,
    /// A store or a folder of mappings, and rights for all applications.
    Mappings,
    /// The logs of a dispatcher, and rights for all applications.
    Logs,
    /// The mapping editor, and the right to change mappings.
    Editor,
}

/// The views of an area, each with its path, label and needs. [`parent_view`] gives the view that another page belongs
/// to.
type Views = &'static [(&'static str, &'static str, Needs)];

const DOORS: [(&str, Views); 3] = [("Data", DATA), ("Crawls", CRAWLS), ("System", SYSTEM)];

const DATA: Views = &[
    ("tables", "Tables", Needs::Tables),
    ("records", "Records", Needs::WholeStore),
    ("changes", "Changes", Needs::Store),
    ("doubts", "Doubts", Needs::Tables),
];

const CRAWLS: Views = &[
    ("crawls", "Runs", Needs::Store),
    ("sites", "Sites", Needs::Sites),
    ("pages", "Pages", Needs::Store),
    ("watches", "Watches", Needs::Fleet),
];

const SYSTEM: Views = &[
    ("machines", "Machines", Needs::WholeFleet),
    ("mappings", "Mappings", Needs::Mappings),
    ("editor", "Mapping editor", Needs::Editor),
    ("audit", "Audit", Needs::Logs),
];

/// The navigation, with the data that the layout shows.
#[derive(Debug, Serialize)]
pub(crate) struct Navigation {
    areas: Vec<Entry>,
    /// The views of the area that the visitor is in.
    views: Vec<Entry>,
    /// The label of the area that the visitor is in.
    open: Option<&'static str>,
    /// Whether there is a fleet or a store to search URLs in.
    has_search: bool,
}

#[derive(Debug, Serialize)]
struct Entry {
    path: String,
    label: &'static str,
    /// The attribute `aria-current`: `page` if the entry leads to this page, `true` if this page belongs to the entry.
    current: Option<&'static str>,
}

/// The navigation that this visitor sees on this page.
pub(crate) fn for_visit(visit: &Visit) -> Navigation {
    let home = match visit
        .path
        .trim_start_matches("/dashboard")
        .trim_matches('/')
    {
        "" if visit.has_tables_only() => "tables",
        path => parent_view(path.split('/').next().unwrap_or_default()),
    };
    let mut areas = Vec::new();
    let (mut views, mut open) = (Vec::new(), None);
    if !visit.has_tables_only() {
        areas.push(new_entry(visit, "", "Overview", home.is_empty()));
    }
    for (label, all) in DOORS {
        let mut shown = all
            .iter()
            .filter(|(_, _, needs)| is_available(visit, *needs));
        let is_open = all.iter().any(|(path, ..)| *path == home);
        if is_open {
            let entries = shown.clone();
            views = entries
                .map(|(path, label, _)| new_entry(visit, path, label, *path == home))
                .collect();
            open = Some(label);
        }
        if let Some((path, ..)) = shown.next() {
            areas.push(new_entry(visit, path, label, is_open));
        }
    }
    Navigation {
        areas,
        views,
        open,
        has_search: visit.has_fleet() || visit.has_store(),
    }
}

fn new_entry(visit: &Visit, name: &str, label: &'static str, is_open: bool) -> Entry {
    let path = format!("/dashboard/{name}");
    let current = match visit.path == path {
        true => Some("page"),
        false => is_open.then_some("true"),
    };
    Entry {
        path,
        label,
        current,
    }
}

/// The view that a page belongs to. `part` is the first part of the page's path, such as `record` for the view
/// `records`.
fn parent_view(part: &str) -> &str {
    match part {
        "table" => "tables",
        "record" => "records",
        "crawl" => "crawls",
        "site" => "sites",
        "page" | "find" => "pages",
        "watch" => "watches",
        "mapping" => "mappings",
        other => other,
    }
}

fn is_available(visit: &Visit, needs: Needs) -> bool {
    let is_whole = !visit.visitor.rights.is_limited_to_apps();
    let (has_fleet, has_store) = (visit.has_fleet(), visit.has_store());
    let setup = &visit.dashboard.setup;
    match needs {
        Needs::Tables => is_whole && !visit.dashboard.tables.is_empty(),
        Needs::Fleet => has_fleet,
        Needs::WholeFleet => has_fleet && is_whole,
        Needs::Logs => is_whole && setup.logs.as_deref().is_some_and(std::path::Path::is_dir),
        Needs::Store => has_store,
        Needs::WholeStore => has_store && is_whole,
        Needs::Sites => is_whole && (has_fleet || has_store),
        Needs::Mappings => is_whole && (has_store || setup.mappings.is_some()),
        Needs::Editor => visit.editor().is_some() && visit.can_change() && is_whole,
    }
}
