//! A cell of a table: its value and the value's source, other values, and the forms for a visitor to judge it. Answers
//! are kept with those of the review, and the next run of `webfill fill` learns from both.

use serde_json::{Value, json};
use webfill_document::{Document, Limits};
use webfill_store::{Browse, page_id};

use super::grid::{find_table_files, open_index};
use super::grid_parts::COLUMNS;
use super::page::decode_body_text;
use super::reading::with_time_limit;
use super::review::split_at_value;
use super::tables::{find_project, run_blocking};
use crate::answer::{Problem, Shown, see_other};
use crate::form::Form;
use crate::grid::evidence;
use crate::grid::files::Files;
use crate::grid::jobs::IndexOutcome;
use crate::grid::origin::{CellEvidence, Origin};
use crate::grid::state::State;
use crate::messages::Message;
use crate::tables::{Answer, CellAnswer, Decision, Project, Review};
use crate::templates::percent_encode;
use crate::visit::Visit;

/// The crawl where `webfill fill` fetches the pages of a table.
const APP: &str = "local";
const CRAWL: &str = "fill";

/// How many characters of the stored page are shown before and after the value.
const AROUND: usize = 400;

/// A cell of a table, with everything that is known about it.
struct Cell {
    /// The number of the row in the index.
    n: i64,
    column: usize,
    title: String,
    row: u64,
    /// The id of the row, or the line of the file if it has none.
    name: String,
    state: State,
    /// The value of the cell in the table, shortened if it is long.
    shown: Option<String>,
    /// The lines of evidence about the cell, one for each value.
    lines: Vec<Value>,
    version: String,
}

impl Cell {
    /// The values that the page of the cell's evidence has.
    fn evidence_values(&self) -> Vec<String> {
        let values = self.lines.iter();
        let values = values.filter_map(|line| line["value"].as_str());
        values.map(str::to_owned).collect()
    }

    fn text(&self, member: &str) -> Option<&str> {
        self.lines.first()?[member].as_str()
    }

    /// The other values that pages have for the cell, each with the URL of its page.
    fn candidate_values(&self) -> Vec<(Vec<String>, String)> {
        let listed = self.lines.first().map(|line| &line["candidates"]);
        let listed = listed.and_then(Value::as_array).into_iter().flatten();
        let read = |one: &Value| {
            let values = one["values"].as_array()?.iter();
            let values = values.filter_map(|value| Some(value.as_str()?.to_owned()));
            Some((values.collect(), one["url"].as_str()?.to_owned()))
        };
        listed.filter_map(read).collect()
    }

    fn path(&self, table: &str) -> String {
        let table = percent_encode(table);
        format!(
            "/dashboard/table/{table}/cell?row={}&column={}",
            self.n, self.column
        )
    }
}

/// Finds the cell that the parameters of an address or a form name.
async fn find_cell(
    visit: &Visit,
    project: &Project,
    get: impl Fn(&str) -> Option<String>,
) -> Result<(Files, Cell), Problem> {
    let number = |key: &str| {
        let text = get(key).and_then(|text| text.parse::<i64>().ok());
        text.ok_or_else(|| Problem::bad_request(format!("{key}: expected a number")))
    };
    let (n, column) = (number("row")?, number("column")?);
    let files = find_table_files(project)?;
    let IndexOutcome::Ready(grid) = open_index(visit, &files, None).await? else {
        return Err(Problem::unavailable(
            "the table is being prepared: try again in a moment",
        ));
    };
    let own = files.clone();
    let found = run_blocking(move || {
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let Some(of) = grid.meta.columns.get(column) else {
            return Ok(None);
        };
        let Some(row) = grid.row(n)? else {
            return Ok(None);
        };
        let lines = match row.evidence {
            Some(at) => evidence::read_cell(&own.evidence, at, row.number, &of.name)?,
            None => Vec::new(),
        };
        let name = row.name.clone();
        Ok(Some(Cell {
            n,
            column,
            title: of.name.clone(),
            row: row.number,
            name: name.unwrap_or_else(|| row.number.to_string()),
            state: State::from_byte(row.states.get(column).copied().unwrap_or(b'-')),
            shown: row.cells.get(column).cloned().flatten(),
            lines,
            version: grid.version(),
        }))
    });
    match found.await? {
        Some(cell) => Ok((files, cell)),
        None => Err(Problem::not_found("the table has no such cell")),
    }
}

pub(crate) async fn show(visit: &Visit, name: &str) -> Shown {
    let project = find_project(visit, name)?;
    let asked = |key: &str| visit.query_value(key).map(str::to_owned);
    let (files, cell) = find_cell(visit, &project, asked).await?;
    let own = project.clone();
    let review = run_blocking(move || own.read_review()).await?;
    let copy = load_stored_copy(visit, &project, &cell).await;
    let separator = load_separator(files, &cell).await;
    let content = cell_content(name, &cell, &review, copy, &separator);
    visit.render_page("cell.html", "Evidence", content)
}

/// The text that joins several values in the form. It is chosen so that the text can be split into the same values
/// again.
async fn load_separator(files: Files, cell: &Cell) -> String {
    let usual = String::from("; ");
    if cell.lines.len() < 2 {
        return usual;
    }
    let column = cell.title.clone();
    let found = run_blocking(move || Origin::find_separator(&files, &column));
    found.await.unwrap_or(usual)
}

fn cell_content(
    name: &str,
    cell: &Cell,
    review: &Review,
    copy: Option<Value>,
    separator: &str,
) -> Value {
    let values = cell.evidence_values();
    let value = values.first().map(String::as_str).unwrap_or_default();
    let excerpt = cell.text("excerpt").unwrap_or_default();
    let [before, marked, after] = split_at_value(excerpt, value);
    let is_link = |url: &str| url.starts_with("http://") || url.starts_with("https://");
    let answer = review.answer_of_cell(cell.row, &cell.title);
    let candidates: Vec<Value> = cell
        .candidate_values()
        .into_iter()
        .map(|(values, url)| json!({"text": values.join("; "), "is_link": is_link(&url), "url": url}))
        .collect();
    let line = cell.lines.first();
    let member = |name: &str| line.map_or(Value::Null, |line| line[name].clone());
    let confidence = line.and_then(|line| line["confidence"].as_f64());
    let can_accept = !values.is_empty() && cell.state != State::Known;
    json!({
        "trail": {"link": format!("/dashboard/table/{}", percent_encode(name)), "label": name},
        "words": {"own": "Your table", "keep": "Keep table", "applied": "The next run of `webfill fill` applies it.", "row": "Row"},
        "hidden": {"row": cell.n, "column": cell.column, "version": cell.version},
        "path": cell.path(name),
        "grid": format!("/dashboard/table/{0}/rows?after={1}&first={4}&cell=c{2}-{3}", percent_encode(name), cell.n - 1, cell.n, cell.column, cell.column / COLUMNS * COLUMNS),
        "title": cell.title, "id": cell.name, "row": cell.row,
        "state": cell.state.to_json(),
        "shown": cell.shown,
        "known": member("known"),
        "values": values,
        "text": values.join("; "),
        "has_evidence": line.is_some(),
        "around": {"before": before, "value": marked, "after": after},
        "copy": copy,
        "url": member("url"),
        "is_link": cell.text("url").is_some_and(is_link),
        "outcome": member("outcome"), "fetched_at": member("fetched_at"), "refusal": member("refusal"),
        "mapping": member("mapping"), "mapping_version": member("mapping_version"),
        "chain": line.filter(|line| line["chain"].is_array()).map(|line| line["chain"].to_string()),
        "percent": confidence.filter(|_| !values.is_empty()).map(|confidence| 100.0 * confidence),
        "candidates": candidates,
        "answer": answer.map(answer_json),
        "can_accept": can_accept,
        "can_reject": can_accept,
        "can_decide": true,
        "edit": answer.and_then(|answer| answer.value.clone()).or_else(|| match cell.state {
            State::Contradicted | State::Known => cell.text("known").map(str::to_owned),
            _ => Some(values.join(separator)).filter(|text| !text.is_empty()),
        }).or_else(|| cell.shown.clone()),
    })
}

fn answer_json(answer: &CellAnswer) -> Value {
    let kind = match (answer.is_accepted, &answer.value) {
        (true, Some(_)) => "edited",
        (true, None) => "accepted",
        (false, _) => "rejected",
    };
    json!({"kind": kind, "value": answer.value, "by": answer.by, "at_ms": answer.at})
}

/// The text around the cell's value in the stored copy of its page; `None` if there is no copy.
async fn load_stored_copy(visit: &Visit, project: &Project, cell: &Cell) -> Option<Value> {
    let url = cell.text("url")?;
    let value = cell.evidence_values().into_iter().next()?;
    let file = project.folder().join("webfill.db");
    let opened = with_time_limit(visit.dashboard.project_stores.get(&file))
        .await
        .ok()??;
    load_passage(opened.browse.as_ref(), &page_id(APP, CRAWL, url), value).await
}

/// The text around a value in the copy of a page that the store keeps.
pub(super) async fn load_passage(browse: &dyn Browse, id: &str, value: String) -> Option<Value> {
    let page = with_time_limit(browse.page(id)).await.ok()??;
    let body = with_time_limit(browse.body(id)).await.ok()??;
    let kind = page["content_type"].as_str().unwrap_or_default().to_owned();
    let found = run_blocking(move || {
        let text = decode_body_text(&body, &kind).map_err(|problem| problem.text)?;
        Ok(text.and_then(|text| find_passage(&visible_text(&text), &value)))
    });
    found.await.ok()?
}

/// Finds a value in a text. Returns it as JSON, with up to [`AROUND`] characters before and after it; `None` if the
/// text lacks it.
fn find_passage(text: &str, value: &str) -> Option<Value> {
    let value = collapse_white_space(value);
    let at = text.find(&value).filter(|_| !value.is_empty())?;
    let end = at + value.len();
    let begin = text[..at].char_indices().rev().take(AROUND).last();
    let begin = begin.map_or(at, |(begin, _)| begin);
    let last = text[end..].char_indices().nth(AROUND);
    let last = last.map_or(text.len(), |(last, _)| end + last);
    Some(json!({
        "before": &text[begin..at], "value": value, "after": &text[end..last],
        "is_cut_before": begin > 0, "is_cut_behind": last < text.len(),
    }))
}

/// About the text that a reader of the page sees. Nothing of the page is executed.
fn visible_text(page: &str) -> String {
    const UNSEEN: [&str; 4] = ["script", "style", "noscript", "template"];
    let document = Document::parse_html(page, &Limits::default());
    let mut text = String::new();
    for node in document.root().descendants().filter(|node| node.is_text()) {
        let tag = node.parent().and_then(|parent| parent.tag());
        if tag.is_none_or(|tag| !UNSEEN.contains(&tag)) {
            text.push_str(node.text());
            text.push(' ');
        }
    }
    collapse_white_space(&text)
}

fn collapse_white_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The answer about a cell that a form sends.
pub(super) enum CellRequest {
    Page,
    /// The candidate at this position in the list is right.
    Candidate(usize),
    Text(String),
    Reject,
    Undo,
}

impl CellRequest {
    pub(super) fn from_form(form: &Form) -> Result<CellRequest, Problem> {
        match form.get("answer") {
            Some("accept") => match form.get("candidate") {
                None => Ok(CellRequest::Page),
                Some(place) => match place.parse() {
                    Ok(place) => Ok(CellRequest::Candidate(place)),
                    Err(_) => Err(Problem::bad_request("candidate: expected a number")),
                },
            },
            Some("edit") => match form.get("value").map(str::trim) {
                None | Some("") => Err(Problem::bad_request("value: expected a text")),
                Some(value) => Ok(CellRequest::Text(value.to_owned())),
            },
            Some("reject") => Ok(CellRequest::Reject),
            Some("undo") => Ok(CellRequest::Undo),
            _ => Err(Problem::bad_request(
                "answer: expected accept, reject, edit or undo",
            )),
        }
    }

    fn decision(&self) -> Decision {
        match self {
            CellRequest::Reject => Decision::Reject,
            CellRequest::Undo => Decision::Undo,
            _ => Decision::Accept,
        }
    }
}

/// Stores the visitor's answer about a cell, and shows the cell again.
pub(crate) async fn submit(visit: &Visit, name: &str, form: &Form) -> Shown {
    let project = find_project(visit, name)?;
    if !visit.can_change() {
        return Err(Problem::forbidden("your token may only read"));
    }
    let wanted = CellRequest::from_form(form)?;
    let posted = |key: &str| form.get(key).map(str::to_owned);
    let (files, cell) = find_cell(visit, &project, posted).await?;
    let path = cell.path(name);
    if form.get("version") != Some(&*cell.version) {
        let message = Message {
            is_fault: true,
            text: String::from(
                "Nothing was changed: the table was filled again meanwhile, and this cell may be another one",
            ),
        };
        let message = visit.dashboard.messages.store(message);
        return Ok(see_other(&format!("{path}&message={message}")));
    }
    let decision = wanted.decision();
    let mut about =
        json!({"table": name, "row": cell.row, "column": cell.title, "answer": decision});
    let by = json!(visit.visitor.name.as_deref());
    let kept = run_blocking({
        let project = project.clone();
        move || prepare_answer(&project, &files, &cell, &wanted)
    })
    .await
    .map_err(|problem| Problem::bad_request(problem.text))?;
    if let Some(value) = &kept.value {
        about["value"] = value.as_str().into();
    }
    // The audit log is written first, so that it contains every answer that takes effect.
    visit
        .write_audit_entry("table_review", about.clone())
        .await?;
    let answer = move || {
        project.append_answer(&Answer {
            key: &kept.key,
            row: kept.row,
            column: &kept.column,
            decision,
            by: &by,
            doubt: &kept.doubt,
            value: kept.value.as_deref(),
        })
    };
    if let Err(problem) = run_blocking(answer).await {
        about["result"] = "failed".into();
        visit.write_audit_entry("table_review", about).await?;
        return Err(problem);
    }
    Ok(see_other(&path))
}

/// An answer that is ready to be stored.
struct PreparedAnswer {
    key: String,
    row: u64,
    column: String,
    doubt: Value,
    value: Option<String>,
}

fn prepare_answer(
    project: &Project,
    files: &Files,
    cell: &Cell,
    wanted: &CellRequest,
) -> Result<PreparedAnswer, String> {
    let review = project.read_review()?;
    let listed = review.doubt_about_cell(cell.row, &cell.title);
    let key = match listed {
        Some(doubt) => doubt.key.clone(),
        None => format!("cell {} {}", cell.row, cell.title),
    };
    let kept = |doubt: Value, value: Option<String>| PreparedAnswer {
        key: key.clone(),
        row: cell.row,
        column: cell.title.clone(),
        doubt,
        value,
    };
    // An answer about the page's own value is stored with the listed doubt, as the command has written it.
    let is_of_page = !matches!(wanted, CellRequest::Candidate(_) | CellRequest::Text(_));
    if let Some(doubt) = listed.filter(|_| is_of_page) {
        return Ok(kept(doubt.doubt.clone(), None));
    }
    let origin = Origin::find(files, cell.row, &cell.title)?;
    let (values, value) = match wanted {
        CellRequest::Candidate(place) => {
            let candidate = cell.candidate_values().into_iter().nth(*place);
            let (values, _) = candidate.ok_or("the cell has no such value")?;
            let text = values.join("; ");
            (values, Some(text))
        }
        CellRequest::Text(text) => {
            let values = origin.split_values(text);
            if values.is_empty() {
                return Err(String::from("value: expected a text"));
            }
            (values, Some(text.clone()))
        }
        CellRequest::Page | CellRequest::Reject if cell.evidence_values().is_empty() => {
            return Err(String::from("no page has a value for this cell"));
        }
        _ => (cell.evidence_values(), None),
    };
    let about = CellEvidence {
        name: &cell.name,
        column: &cell.title,
        url: cell.text("url").unwrap_or_default(),
    };
    Ok(kept(origin.doubt_json(&about, &values), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_of_a_page_is_its_visible_text_around_the_value() {
        let page = "<html><style>b{}</style><h1>The  Sea</h1><script>var a = 'The Sea'</script>\
                    <p>Price:\n <b>12&nbsp;&euro;</b></p>";
        let text = visible_text(page);
        assert_eq!(text, "The Sea Price: 12 €");
        let found = find_passage(&text, "12\u{a0}€").unwrap();
        assert_eq!(found["before"], "The Sea Price: ");
        assert_eq!(found["value"], "12 €");
        assert_eq!(found["after"], "");
        assert_eq!(find_passage(&text, "nothing"), None);
        assert_eq!(find_passage(&text, ""), None);
        let long = format!("{} here {}", "é".repeat(900), "ü".repeat(900));
        let found = find_passage(&long, "here").unwrap();
        assert_eq!(found["is_cut_before"], true);
        let before = found["before"].as_str().unwrap();
        assert_eq!(before.chars().count(), AROUND);
    }
}
