//! The machines of a fleet: its supervisors, and the store.

use serde_json::json;

use crate::answer::Shown;
use crate::visit::Visit;

pub(crate) async fn show(visit: &Visit) -> Shown {
    visit.require_whole_fleet()?;
    let status = visit.run_action(json!({"action": "status"})).await?;
    visit.render_page("machines.html", "Machines", json!({"status": status}))
}
