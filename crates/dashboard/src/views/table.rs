//! One table: progress, coverage and precision by column and by site, and its doubts.

use serde_json::json;

use super::tables::{find_project, run_blocking, with_percent};
use crate::answer::Shown;
use crate::visit::Visit;

/// How many doubts are shown here. The table's review shows all.
const DOUBTS: usize = 10;

pub(crate) async fn show(visit: &Visit, name: &str) -> Shown {
    let project = find_project(visit, name)?;
    let own = project.clone();
    let (overview, review) =
        run_blocking(move || Ok((own.read_overview()?, own.read_review()?))).await?;
    let open = review
        .doubts
        .iter()
        .filter(|doubt| review.answer(doubt).is_none());
    let title = match overview
        .as_ref()
        .and_then(|overview| overview["table"].as_str())
    {
        Some(table) => format!("Table {table}"),
        None => format!("Table {name}"),
    };
    let content = json!({
        "name": project.name,
        "overview": overview.map(with_percent),
        "doubts": open.take(DOUBTS).collect::<Vec<_>>(),
        "counts": {"open": review.count_open(), "accepted": review.count_accepted(), "rejected": review.count_rejected(), "total": review.total,
            "listed": review.doubts.len()},
    });
    visit.render_page("table.html", &title, content)
}
