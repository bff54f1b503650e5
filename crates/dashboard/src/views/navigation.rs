//! The navigation on every page.

use serde::Serialize;

use crate::visit::Visit;

/// The requirements of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// More than tables.
    Crawls,
    /// Tables, and rights over all applications.
    Tables,
    Fleet,
    /// A running fleet, and rights over all applications.
    WholeFleet,
    Store,
    /// The store, with rights over all applications.
    WholeStore,
    /// A fleet or a store, with rights over all applications.
    Sites,
    /// A store or a folder of mappings, with rights over all applications.
    Mappings,
    /// The logs of a dispatcher, and rights over all applications.
    Logs,
    /// The mapping editor, and the rights to change mappings.
    Editor,
}

/// The views in the navigation: path, label, needs.
const NAVIGATION: &[(&str, &str, Needs)] = &[
    ("/dashboard/", "Overview", Needs::Crawls),
    ("/dashboard/tables", "Tables", Needs::Tables),
    ("/dashboard/crawls", "Crawls", Needs::Store),
    ("/dashboard/sites", "Sites", Needs::Sites),
    ("/dashboard/records", "Records", Needs::WholeStore),
    ("/dashboard/pages", "Pages", Needs::Store),
    ("/dashboard/find", "Find a URL", Needs::Crawls),
    ("/dashboard/watches", "Watches", Needs::Fleet),
    ("/dashboard/mappings", "Mappings", Needs::Mappings),
    ("/dashboard/editor", "Editor", Needs::Editor),
    ("/dashboard/machines", "Machines", Needs::WholeFleet),
    ("/dashboard/audit", "Audit", Needs::Logs),
];

#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    path: &'static str,
    label: &'static str,
    is_here: bool,
}

/// The entries available to this visitor.
pub(crate) fn of(visit: &Visit) -> Vec<Entry> {
    let is_whole = !visit.visitor.rights.is_bound();
    let (has_fleet, has_store) = (
        visit.dashboard.fleet.is_some(),
        visit.dashboard.store.is_named(),
    );
    let has_mappings = visit.dashboard.setup.mappings.is_some();
    let logs = visit.dashboard.setup.logs.as_deref();
    let has_logs = logs.is_some_and(std::path::Path::is_dir);
    let has = |needs: Needs| match needs {
        Needs::Crawls => !visit.has_tables_only(),
        Needs::Tables => is_whole && !visit.dashboard.tables.is_empty(),
        Needs::Fleet => has_fleet,
        Needs::WholeFleet => has_fleet && is_whole,
        Needs::Logs => is_whole && has_logs,
        Needs::Store => has_store,
        Needs::WholeStore => has_store && is_whole,
        Needs::Sites => is_whole && (has_fleet || has_store),
        Needs::Mappings => is_whole && (has_store || has_mappings),
        Needs::Editor => visit.editor().is_some() && visit.can_change() && is_whole,
    };
    let shown = NAVIGATION.iter().filter(|(_, _, needs)| has(*needs));
    shown
        .map(|(path, label, _)| Entry {
            path,
            label,
            is_here: *path == visit.path,
        })
        .collect()
}
