//! Watches: when each runs next, and how its last run went.

use serde_json::json;

use crate::answer::Shown;
use crate::visit::Visit;

pub(crate) async fn show(visit: &Visit) -> Shown {
    let answer = visit.run_action(json!({"action": "watch_list"})).await?;
    let content = json!({"watches": answer["watches"]});
    visit.render_page("watches.html", "Watches", content)
}
