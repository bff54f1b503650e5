//! The review of a table's doubts, one at a time. Each answer is a form; the page's script sends them by keys.

use serde_json::{Value, json};

use super::tables::{find_project, run_blocking};
use crate::answer::{Problem, Shown, see_other};
use crate::form::Form;
use crate::messages::Message;
use crate::tables::{Answer, Decision, Review};
use crate::templates::percent_encode;
use crate::visit::Visit;

pub(crate) async fn show(visit: &Visit, name: &str) -> Shown {
    let project = find_project(visit, name)?;
    let review = run_blocking(move || project.read_review()).await?;
    let asked = visit
        .query_value("at")
        .and_then(|key| review.position_of_doubt(key));
    let place = asked.or_else(|| review.next_open_position(0));
    let path = review_path(name);
    let link = |place: Option<usize>| {
        let place = place.filter(|place| *place < review.doubts.len())?;
        Some(format!(
            "{path}?at={}",
            percent_encode(&review.doubts[place].key)
        ))
    };
    let content = json!({
        "name": name,
        "path": path,
        "doubt": place.map(|place| doubt_json(&review, place)),
        "previous": link(place.and_then(|place| place.checked_sub(1))),
        "next": link(place.map(|place| place + 1)),
        "first": link(Some(0)).filter(|_| place.is_none()),
        "last": review.last_answered().map(|doubt| json!({"key": doubt.key, "id": doubt.id, "column": doubt.column})),
        "counts": {"listed": review.doubts.len(), "open": review.count_open(), "accepted": review.count_accepted(),
            "rejected": review.count_rejected(), "total": review.total},
    });
    visit.render_page("review.html", "Review of doubts", content)
}

/// Stores an answer, and redirects to the next open doubt. "Undo" removes an answer, and redirects to its doubt.
pub(crate) async fn submit(visit: &Visit, name: &str, form: &Form) -> Shown {
    let project = find_project(visit, name)?;
    if !visit.can_change() {
        return Err(Problem::forbidden("your token may only read"));
    }
    let decision = match form.get("answer") {
        Some("accept") => Decision::Accept,
        Some("reject") => Decision::Reject,
        Some("undo") => Decision::Undo,
        _ => {
            return Err(Problem::bad_request(
                "answer: expected accept, reject or undo",
            ));
        }
    };
    let own = project.clone();
    let review = run_blocking(move || own.read_review()).await?;
    let key = form.get("key").unwrap_or_default();
    let Some(place) = review.position_of_doubt(key) else {
        let message = Message {
            is_fault: true,
            text: String::from(
                "Nothing was changed: the table was filled again meanwhile, and this doubt no longer exists",
            ),
        };
        let message = visit.dashboard.messages.store(message);
        return Ok(see_other(&format!(
            "{}?message={message}",
            review_path(name)
        )));
    };
    let doubt = review.doubts[place].clone();
    let mut about =
        json!({"table": name, "row": doubt.row, "column": doubt.column, "answer": decision});
    let by = json!(visit.visitor.name.as_deref());
    // The audit log is written first, so that it contains every answer that takes effect.
    visit
        .write_audit_entry("table_review", about.clone())
        .await?;
    let answer = move || {
        project.append_answer(&Answer {
            key: &doubt.key,
            row: doubt.row,
            column: &doubt.column,
            decision,
            by: &by,
            doubt: &doubt.doubt,
            value: None,
        })
    };
    if let Err(problem) = run_blocking(answer).await {
        about["result"] = "failed".into();
        visit.write_audit_entry("table_review", about).await?;
        return Err(problem);
    }
    // The next open doubt is searched after the answered one, and then from the beginning.
    let mut places = (place + 1..review.doubts.len()).chain(0..place);
    let next = match decision {
        Decision::Undo => Some(place),
        _ => places.find(|&place| review.answer(&review.doubts[place]).is_none()),
    };
    Ok(see_other(&match next {
        Some(next) => format!(
            "{}?at={}",
            review_path(name),
            percent_encode(&review.doubts[next].key)
        ),
        None => review_path(name),
    }))
}

fn review_path(name: &str) -> String {
    format!("/dashboard/table/{}/review", percent_encode(name))
}

fn doubt_json(review: &Review, place: usize) -> Value {
    let doubt = &review.doubts[place];
    let mut shown = json!(doubt);
    shown["number"] = (place + 1).into();
    let is_link = |url: &String| url.starts_with("http://") || url.starts_with("https://");
    shown["is_link"] = doubt.url.as_ref().is_some_and(is_link).into();
    shown["percent"] = json!(100.0 * doubt.confidence);
    shown["state"] = match review.answer(doubt) {
        None => "open",
        Some(true) => "accepted",
        Some(false) => "rejected",
    }
    .into();
    let excerpt = doubt.excerpt.as_deref().unwrap_or_default();
    let [before, value, after] = split_at_value(excerpt, &doubt.page);
    shown["around"] = json!({"before": before, "value": value, "after": after});
    shown
}

/// Splits an excerpt of a page into the text before a value, the value, and the text after it.
pub(super) fn split_at_value<'e>(excerpt: &'e str, value: &str) -> [&'e str; 3] {
    let found = (!value.is_empty()).then(|| excerpt.find(value));
    match found.flatten() {
        Some(at) => {
            let end = at + value.len();
            [&excerpt[..at], &excerpt[at..end], &excerpt[end..]]
        }
        None => [excerpt, "", ""],
    }
}
