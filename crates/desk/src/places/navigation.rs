//! The ways that every page offers.

use serde::Serialize;

use crate::visit::Visit;

/// What a place needs to have anything to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
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
    /// The workbench, and the rights to change mappings.
    Workbench,
}

/// The places that can be reached from everywhere: path, label, what they need.
const NAVIGATION: &[(&str, &str, Needs)] = &[
    ("/desk/", "First sight", Needs::Nothing),
    ("/desk/crawls", "Crawls", Needs::Store),
    ("/desk/sites", "Sites", Needs::Sites),
    ("/desk/records", "Records", Needs::WholeStore),
    ("/desk/pages", "Pages", Needs::Store),
    ("/desk/find", "Find a URL", Needs::Nothing),
    ("/desk/watches", "Watches", Needs::Fleet),
    ("/desk/mappings", "Mappings", Needs::Mappings),
    ("/desk/workbench", "Workbench", Needs::Workbench),
    ("/desk/machines", "Machines", Needs::WholeFleet),
    ("/desk/audit", "Audit", Needs::Logs),
];

#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    path: &'static str,
    label: &'static str,
    is_here: bool,
}

/// Those that have something for this visitor.
pub(crate) fn of(visit: &Visit) -> Vec<Entry> {
    let is_whole = !visit.visitor.rights.is_bound();
    let (has_fleet, has_store) = (visit.desk.fleet.is_some(), visit.desk.store.is_named());
    let has_mappings = visit.desk.setup.mappings.is_some();
    let logs = visit.desk.setup.logs.as_deref();
    let has_logs = logs.is_some_and(std::path::Path::is_dir);
    let has = |needs: Needs| match needs {
        Needs::Nothing => true,
        Needs::Fleet => has_fleet,
        Needs::WholeFleet => has_fleet && is_whole,
        Needs::Logs => is_whole && has_logs,
        Needs::Store => has_store,
        Needs::WholeStore => has_store && is_whole,
        Needs::Sites => is_whole && (has_fleet || has_store),
        Needs::Mappings => is_whole && (has_store || has_mappings),
        Needs::Workbench => visit.workbench().is_some() && visit.can_change() && is_whole,
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
