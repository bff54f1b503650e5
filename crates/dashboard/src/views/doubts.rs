//! The open doubts of all tables: known values that their pages contradict.

use serde_json::{Value, json};

use super::tables::run_blocking;
use crate::answer::Shown;
use crate::tables::Project;
use crate::visit::Visit;

/// How many doubts of one table are shown here. The table's own review shows all.
const SHOWN: usize = 20;

pub(crate) async fn show(visit: &Visit) -> Shown {
    visit.require_whole_fleet()?;
    let all = visit.dashboard.tables.all();
    let read = move || Ok(all.iter().map(table_row).collect::<Vec<Value>>());
    let mut tables = run_blocking(read).await?;
    tables.retain(|table| table["open"] != 0);
    visit.render_page("doubts.html", "Doubts", json!({"tables": tables}))
}

fn table_row(project: &Project) -> Value {
    let review = match project.read_review() {
        Ok(review) => review,
        Err(fault) => return json!({"name": project.name, "fault": fault}),
    };
    let open = review.doubts.iter();
    let open = open.filter(|doubt| review.answer(doubt).is_none());
    json!({
        "name": project.name,
        "open": review.count_open(),
        "doubts": open.take(SHOWN).collect::<Vec<_>>(),
    })
}
