//! The actions of the mapping editor's script: JSON in, JSON out. A request can also carry changes made in the browser
//! since the previous request. They are stored in the draft before the action runs.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use webfill_mapping::Source;
use webfill_urls::Url;

use super::Editor;
use super::adding::{self, PageSource};
use super::drafts::{Draft, DraftPage};
use super::host::GoldenCase;
use super::job::{Order, PointedField, ROWS, Work};
use super::mappings::{CheckResult, NotSaved, SavedFile};
use super::trial;
use crate::answer::{Problem, Shown, json as json_answer};
use crate::form::Form;
use crate::visit::Visit;

/// A request of the mapping editor's script.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScriptRequest {
    mapping: Option<Value>,
    said: Option<std::collections::BTreeMap<String, Vec<PointedField>>>,
    /// The file to save a new mapping in.
    file: Option<String>,
    field: String,
    /// The number of the page in the draft that the request is about.
    page: usize,
    /// The numbers of the pages that are to be kept as golden cases, which are tests of the mapping.
    golden: Vec<usize>,
    add: Option<PageSource>,
}

pub(super) async fn submit(visit: &Visit, id: &str, action: &str, form: &Form) -> Shown {
    let bench = visit.usable_editor()?;
    let answering = async {
        let asked = match form.raw.is_empty() {
            true => ScriptRequest::default(),
            false => {
                let asked = form.json().and_then(serde_json::from_value);
                asked.map_err(Problem::bad_request)?
            }
        };
        run_action(visit, bench, id, action, asked).await
    };
    Ok(match answering.await {
        Ok(reply) => json_answer(200, &reply),
        Err(problem) => json_answer(problem.status, &json!({"error": problem.text})),
    })
}

async fn run_action(
    visit: &Visit,
    bench: &Editor,
    id: &str,
    action: &str,
    mut asked: ScriptRequest,
) -> Result<Value, Problem> {
    store_changes(bench, id, &mut asked).await?;
    let draft = bench.load_draft(id).await?;
    match action {
        "check" => Ok(draft_with_faults(bench, draft).await),
        "candidates" => find_candidates(bench, &draft, &asked.field).await,
        "learn" => learn(bench, &draft).await,
        "rows" => learn_rows(bench, &draft).await,
        "trial" => try_on_pages(bench, &draft).await,
        "trace" => trace(bench, &draft, asked.page).await,
        "repair" => repair(bench, &draft).await,
        "save" => save(visit, bench, draft, &asked.golden).await,
        "add" => {
            let from = asked
                .add
                .ok_or_else(|| Problem::bad_request("nothing to add"))?;
            let note = adding::add_pages(visit, bench, &draft, from).await?;
            let mut reply = draft_with_faults(bench, bench.load_draft(id).await?).await;
            reply["note"] = note.into();
            Ok(reply)
        }
        "take_away" => {
            let (own, page) = (id.to_owned(), asked.page);
            bench
                .with_drafts(move |drafts| drafts.remove_page(&own, page))
                .await?;
            Ok(draft_with_faults(bench, bench.load_draft(id).await?).await)
        }
        "reload" => Ok(visit.run_action(json!({"action": "reload"})).await?),
        _ => Err(Problem::not_found(format!("unknown action `{action}`"))),
    }
}

/// Stores the changes of the draft that came with a request.
async fn store_changes(bench: &Editor, id: &str, asked: &mut ScriptRequest) -> Result<(), Problem> {
    let (mapping, said, file) = (asked.mapping.take(), asked.said.take(), asked.file.take());
    if mapping.is_none() && said.is_none() && file.is_none() {
        return Ok(());
    }
    let take = |draft: &mut Draft| {
        draft.mapping = mapping.unwrap_or_else(|| draft.mapping.take());
        if let Some(said) = said {
            draft.said = said;
        }
        if let Some(file) = file.filter(|_| draft.edited.version.is_none()) {
            draft.edited.file = file;
        }
        Ok(())
    };
    let id = id.to_owned();
    bench
        .with_drafts(move |drafts| drafts.change(&id, take))
        .await
}

/// A draft as JSON, with the faults and warnings of its mapping.
pub(super) async fn draft_with_faults(bench: &Editor, draft: Draft) -> Value {
    let checked = check_draft(bench, &draft).await;
    json!({"draft": draft, "faults": checked.faults, "warnings": checked.warnings})
}

async fn check_draft(bench: &Editor, draft: &Draft) -> CheckResult {
    let (edited, mapping) = (draft.edited.clone(), draft.mapping.clone());
    let checking = bench.with_folder(move |folder| folder.check(&edited, &mapping));
    checking.await.unwrap_or_default()
}

/// The mapping files with the draft in place of its own file, and the name of the draft's mapping. If the files have
/// faults, only the draft's file is returned. Fails if the draft itself has faults.
async fn sources_with_draft(
    bench: &Editor,
    draft: &Draft,
) -> Result<(Vec<Source>, String), Problem> {
    let checked = check_draft(bench, draft).await;
    if let Some(fault) = checked.faults.first() {
        let text = format!("{}: {}", fault.path, fault.message);
        return Err(Problem::bad_request(
            NotSaved::Faults(checked.faults.clone()).to_string() + ": " + &text,
        ));
    }
    let name = draft.mapping["name"].as_str().unwrap_or_default();
    Ok((checked.sources, name.to_owned()))
}

/// The pages that are used for learning and for trials: those from before a change of the site are left out.
fn usable_pages(draft: &Draft) -> Vec<&DraftPage> {
    draft.pages.iter().filter(|page| !page.is_former).collect()
}

/// Runs a job on pages of a draft.
pub(super) async fn run_job(
    bench: &Editor,
    draft: &Draft,
    pages: &[&DraftPage],
    work: Work,
) -> Result<Value, Problem> {
    if pages.is_empty() {
        return Err(Problem::bad_request(
            "the draft has no pages: add some first",
        ));
    }
    let bodies = pages
        .iter()
        .map(|page| bench.drafts.body_path(&draft.id, page.number));
    let bodies = bodies.collect::<Result<Vec<_>, _>>()?;
    let heads = pages.iter().map(|page| page.head()).collect();
    let order = Order { work, pages: heads };
    Ok(bench.jobs.run(order, &bodies).await?)
}

/// The user's statements about a field, for a job with these pages. A job knows pages by their positions, not by the
/// numbers that they have in the draft.
fn with_page_positions(
    said: Option<&Vec<PointedField>>,
    pages: &[&DraftPage],
) -> Vec<PointedField> {
    let said = said.into_iter().flatten();
    let placed = said.filter_map(|pointed| {
        let page = pages.iter().position(|page| page.number == pointed.page)?;
        Some(PointedField {
            page,
            ..pointed.clone()
        })
    });
    placed.collect()
}

fn page_numbers(pages: &[&DraftPage]) -> Vec<usize> {
    pages.iter().map(|page| page.number).collect()
}

async fn find_candidates(bench: &Editor, draft: &Draft, field: &str) -> Result<Value, Problem> {
    let pages = usable_pages(draft);
    let work = Work::Candidates {
        field: field.to_owned(),
        said: with_page_positions(draft.said.get(field), &pages),
    };
    let mut reply = run_job(bench, draft, &pages, work).await?;
    reply["of_pages"] = page_numbers(&pages).into();
    Ok(reply)
}

async fn learn(bench: &Editor, draft: &Draft) -> Result<Value, Problem> {
    let pages = usable_pages(draft);
    let said = draft.said.keys().map(|field| {
        let placed = with_page_positions(draft.said.get(field), &pages);
        (field.clone(), placed)
    });
    let work = Work::Learn {
        name: draft.mapping["name"]
            .as_str()
            .unwrap_or("learned")
            .to_owned(),
        said: said.collect(),
    };
    let learned = run_job(bench, draft, &pages, work).await?;
    Ok(with_difference(draft, learned))
}

/// Learns a rule for rows, from the rows and values that the user has pointed at.
async fn learn_rows(bench: &Editor, draft: &Draft) -> Result<Value, Problem> {
    let pages = usable_pages(draft);
    let said = draft.said.keys().filter(|name| name.starts_with(ROWS));
    let said = said.map(|name| {
        (
            name.clone(),
            with_page_positions(draft.said.get(name), &pages),
        )
    });
    let name = draft.mapping["name"].as_str().unwrap_or("learned");
    let of_rule = [&draft.mapping["rows"], &draft.mapping["rows"][0]];
    let dataset = of_rule
        .into_iter()
        .find_map(|rule| rule["dataset"].as_str());
    let work = Work::Rows {
        name: name.to_owned(),
        dataset: dataset.unwrap_or(name).to_owned(),
        said: said.collect(),
    };
    let mut reply = run_job(bench, draft, &pages, work).await?;
    reply["of_pages"] = page_numbers(&pages).into();
    Ok(reply)
}

async fn repair(bench: &Editor, draft: &Draft) -> Result<Value, Problem> {
    let pages = usable_pages(draft);
    let work = Work::Repair {
        mapping: draft.mapping.clone(),
    };
    let repaired = run_job(bench, draft, &pages, work).await?;
    Ok(with_difference(draft, repaired))
}

/// Adds to a proposed mapping the lines where it differs from the draft.
fn with_difference(draft: &Draft, mut proposal: Value) -> Value {
    let (old, new) = (
        format!("{:#}", draft.mapping),
        format!("{:#}", proposal["mapping"]),
    );
    let difference = similar::TextDiff::from_lines(&old, &new);
    let lines: Vec<Value> = difference
        .iter_all_changes()
        .map(|change| {
            let sign = match change.tag() {
                similar::ChangeTag::Delete => "-",
                similar::ChangeTag::Insert => "+",
                similar::ChangeTag::Equal => " ",
            };
            json!([sign, change.value().trim_end_matches('\n')])
        })
        .collect();
    proposal["difference"] = lines.into();
    proposal
}

async fn try_on_pages(bench: &Editor, draft: &Draft) -> Result<Value, Problem> {
    let pages = usable_pages(draft);
    let (sources, mapping) = sources_with_draft(bench, draft).await?;
    let work = Work::Read {
        sources,
        mapping,
        is_whole: false,
    };
    let read = run_job(bench, draft, &pages, work).await?;
    Ok(trial::result_json(draft, &pages, &read))
}

async fn trace(bench: &Editor, draft: &Draft, number: usize) -> Result<Value, Problem> {
    let page = draft.pages.iter().find(|page| page.number == number);
    let page = page.ok_or_else(|| Problem::not_found("page not found in the draft"))?;
    let (sources, mapping) = sources_with_draft(bench, draft).await?;
    run_job(bench, draft, &[page], Work::Trace { sources, mapping }).await
}

/// Saves the mapping, and then its golden cases, which would be useless without it.
async fn save(
    visit: &Visit,
    bench: &Editor,
    draft: Draft,
    golden: &[usize],
) -> Result<Value, Problem> {
    let (edited, mapping) = (draft.edited.clone(), draft.mapping.clone());
    let saved = bench
        .with_folder(move |folder| folder.save(&edited, &mapping))
        .await??;
    let (id, version) = (draft.id.clone(), saved.version.clone());
    let note = move |draft: &mut Draft| {
        draft.edited.version = Some(version);
        Ok(())
    };
    bench
        .with_drafts(move |drafts| drafts.change(&id, note))
        .await?;
    let name = draft.mapping["name"].as_str().unwrap_or_default();
    tracing::info!(
        event = "mapping_saved",
        mapping = name,
        path = %saved.path.display(),
        by = visit.visitor.name.as_deref(),
        "mapping saved in the mapping editor"
    );
    let noted = write_save_audit_entry(visit, name, &saved).await;
    let (cases, mut problems) = match golden.is_empty() {
        true => Default::default(),
        false => add_golden_cases(bench, &draft, golden).await,
    };
    problems.extend(noted.err().map(|problem| problem.text));
    let shown = |path: &PathBuf| path.display().to_string();
    Ok(json!({
        "path": shown(&saved.path),
        "former": saved.former.as_ref().map(shown),
        "version": saved.version,
        "cases": cases,
        "problems": problems,
    }))
}

async fn write_save_audit_entry(
    visit: &Visit,
    mapping: &str,
    saved: &SavedFile,
) -> Result<(), Problem> {
    let shown = |path: &PathBuf| path.display().to_string();
    let about = json!({
        "mapping": mapping,
        "file": shown(&saved.path),
        "former": saved.former.as_ref().map(shown),
    });
    visit.write_audit_entry("mapping_save", about).await
}

/// Keeps pages as golden cases, which are tests of the mapping. Returns the paths of their files, and why some pages
/// are not kept.
async fn add_golden_cases(
    bench: &Editor,
    draft: &Draft,
    golden: &[usize],
) -> (Vec<String>, Vec<String>) {
    let mut pages = usable_pages(draft);
    pages.retain(|page| golden.contains(&page.number));
    let read = async {
        let (sources, mapping) = sources_with_draft(bench, draft).await?;
        let work = Work::Read {
            sources,
            mapping,
            is_whole: true,
        };
        run_job(bench, draft, &pages, work).await
    };
    let read = match read.await {
        Ok(read) => read,
        Err(problem) => return (Vec::new(), vec![problem.text]),
    };
    let (mut cases, mut problems) = (Vec::new(), Vec::new());
    for (page, read) in pages
        .iter()
        .zip(read["pages"].as_array().into_iter().flatten())
    {
        match add_golden_case(bench, draft, page, read).await {
            Ok(path) => cases.push(path),
            Err(why) => problems.push(format!("{}: {why}", page.url)),
        }
    }
    (cases, problems)
}

async fn add_golden_case(
    bench: &Editor,
    draft: &Draft,
    page: &DraftPage,
    read: &Value,
) -> Result<String, String> {
    let name = draft.mapping["name"].as_str().unwrap_or_default();
    if let Some(error) = read["error"].as_str() {
        return Err(error.to_owned());
    }
    match read["used"].as_str() {
        Some(used) if used == name => {}
        Some(used) => return Err(format!("a crawl would use mapping {used} for it")),
        None => return Err("no url_pattern matches it, nothing to keep".to_owned()),
    }
    let links = read["links"].as_array().into_iter().flatten();
    let links = links.filter_map(|link| link["url"].as_str().map(str::to_owned));
    let (id, number) = (draft.id.clone(), page.number);
    let reading =
        bench.with_drafts(move |drafts| Ok(std::fs::read(drafts.body_path(&id, number)?)?));
    let body = reading.await.map_err(|problem| problem.text)?;
    let case = GoldenCase {
        mapping: name.to_owned(),
        url: Url::parse(&page.url).map_err(|error| error.to_string())?,
        content_type: page.content_type.clone(),
        ending: page.ending.clone(),
        body,
        fields: read["fields"].as_object().cloned().unwrap_or_default(),
        links: links.collect(),
        rows: read["rows"].as_array().cloned().unwrap_or_default(),
    };
    let path = bench
        .host
        .add_golden_case(bench.folder.path(), case)
        .await?;
    Ok(path.display().to_string())
}
