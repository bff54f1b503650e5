//! Shows the pages that an alert keeps from before and after a site's change. The values that the mapping reads on them
//! are marked.

use std::collections::BTreeMap;

use serde_json::Value;

use super::frame::Purpose;
use super::job::{Order, PageHead, Work};
use super::{Editor, copies, stored, view};
use crate::answer::{Problem, Shown};
use crate::visit::Visit;

/// The document inside the frame: the copy of the page that the query names, with the values marked that the mapping
/// reads.
pub(crate) async fn show(visit: &Visit, mapping: &str) -> Shown {
    let bench = visit.usable_editor()?;
    let page = visit.query_value("page").unwrap_or_default();
    let opened = visit.open_store().await?;
    let text = stored::load_sample_text(&*opened.store, mapping, page).await;
    let (url, body) = text
        .map_err(Problem::unavailable)?
        .ok_or_else(|| Problem::not_found("the text of this page was not kept"))?;
    let head = PageHead {
        url,
        // The text was decoded when the alert stored it, so it is UTF-8 here.
        content_type: Some(String::from("text/html; charset=utf-8")),
        ending: String::new(),
        bytes: body.len() as u64,
        known: BTreeMap::new(),
    };
    let order = |work| Order {
        work,
        pages: vec![head.clone()],
    };
    let bodies = vec![body];
    let read = match trace_work(bench, mapping).await? {
        Some(work) => {
            bench
                .jobs
                .run_with_bodies(order(work), bodies.clone())
                .await?
        }
        None => Value::Null,
    };
    let copy = bench
        .jobs
        .run_with_bodies(order(Work::Copy), bodies)
        .await?;
    copies::answer_with_copy(&copy, Purpose::Reading(&element_numbers(&read)))
}

/// The order for a job that traces the saved mapping on a page; `None` if the mapping has faults.
async fn trace_work(bench: &Editor, mapping: &str) -> Result<Option<Work>, Problem> {
    let (text, edited) = view::open_mapping(bench, mapping).await?;
    let checking = bench.with_folder(move |folder| folder.check(&edited, &text));
    let checked = checking.await?;
    let mapping = mapping.to_owned();
    let is_sound = checked.faults.is_empty();
    Ok(is_sound.then_some(Work::Trace {
        sources: checked.sources,
        mapping,
    }))
}

/// The numbers of the elements that fields were read from.
fn element_numbers(read: &Value) -> Vec<u64> {
    let of_fields = read["elements"].as_object().into_iter().flatten();
    let numbers = of_fields.flat_map(|(_, numbers)| numbers.as_array().into_iter().flatten());
    numbers.filter_map(Value::as_u64).collect()
}
