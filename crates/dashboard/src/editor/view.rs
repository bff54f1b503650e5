//! The pages of the mapping editor: the start page, and the page of a draft.

use serde_json::json;

use super::drafts::{Drafts, MOST_PAGE_BYTES, NewPage, Repairs};
use super::mappings::{Edited, Folder};
use super::{Editor, actions, adding, copies, stored};
use crate::answer::{Problem, Shown, json as json_answer, see_other};
use crate::form::Form;
use crate::secrets::new_secret;
use crate::visit::Visit;

const START: &str = "/dashboard/editor";

/// How many golden cases are loaded into a new draft.
const FIRST_PAGES: usize = 10;

/// The largest request of the editor's script, in bytes. Most of it is the mapping.
const MOST_JSON_BYTES: usize = 8 << 20;

/// The largest body that may be posted to this path below `/dashboard/editor`, in bytes.
pub(crate) fn max_body_bytes(parts: &[&str]) -> usize {
    match parts {
        ["draft", _, "upload", ..] => MOST_PAGE_BYTES,
        _ => MOST_JSON_BYTES,
    }
}

/// Shows the pages below `/dashboard/editor`.
pub(crate) async fn show(visit: &Visit, parts: &[&str]) -> Shown {
    let bench = visit.usable_editor()?;
    match parts {
        [] => show_start(visit, bench).await,
        ["schema"] => Ok(json_answer(200, &webfill_mapping::mapping_file_schema())),
        ["draft", id] => show_draft(visit, bench, id).await,
        ["draft", id, "state"] => {
            let draft = bench.load_draft(id).await?;
            Ok(json_answer(
                200,
                &actions::draft_with_faults(bench, draft).await,
            ))
        }
        ["draft", id, "copy", number] => {
            let number = number
                .parse()
                .map_err(|_| Problem::not_found("no such page"))?;
            copies::show(bench, id, number).await
        }
        _ => Err(Problem::not_found("page not found")),
    }
}

/// Handles posts below `/dashboard/editor`.
pub(crate) async fn submit(visit: &Visit, parts: &[&str], form: &Form) -> Shown {
    let bench = visit.usable_editor()?;
    match parts {
        ["new"] => begin_draft(visit, bench, form).await,
        ["repair"] => begin_repair(visit, bench, form).await,
        ["draft", id, "remove"] => {
            let id = (*id).to_owned();
            bench.with_drafts(move |drafts| drafts.remove(&id)).await?;
            Ok(see_other(START))
        }
        ["draft", id, "upload", name] => upload(bench, id, name, "", form).await,
        ["draft", id, "upload", name, url] => upload(bench, id, name, url, form).await,
        ["draft", id, action] => actions::submit(visit, id, action, form).await,
        _ => Err(Problem::not_found("page not found")),
    }
}

async fn show_start(visit: &Visit, bench: &Editor) -> Shown {
    let mappings = bench.with_folder(Folder::list).await?;
    let drafts = bench.with_drafts(Drafts::list).await?;
    let alerts = match visit.has_store() {
        true => load_alerted_mappings(visit).await.unwrap_or_default(),
        false => Vec::new(),
    };
    let content = json!({
        "mappings": mappings,
        "folder": bench.folder.path().display().to_string(),
        "drafts": drafts,
        "alerts": alerts,
    });
    visit.render_page("editor_start.html", "Mapping editor", content)
}

/// Loads the names of all mappings that have an alert.
async fn load_alerted_mappings(visit: &Visit) -> Result<Vec<String>, Problem> {
    let opened = visit.open_store().await?;
    let states = opened.store.health().await.map_err(Problem::unavailable)?;
    let health = states.iter().filter_map(|state| {
        serde_json::from_str::<webfill_health::MappingHealth>(&state.state).ok()
    });
    let alerting = health.filter(|health| health.alert().is_some());
    Ok(alerting.map(|health| health.mapping().to_owned()).collect())
}

async fn show_draft(visit: &Visit, bench: &Editor, id: &str) -> Shown {
    let draft = bench.load_draft(id).await?;
    let name = draft.mapping["name"]
        .as_str()
        .unwrap_or("without a name")
        .to_owned();
    let content = json!({
        "id": id,
        "mapping": format!("{:#}", draft.mapping),
        "pages": draft.pages,
        "file": draft.edited.file,
        "repairs": draft.repairs.map(|repairs| repairs.mapping),
        "has_store": visit.has_store(),
        "has_fleet": visit.has_fleet(),
    });
    visit.render_page("editor.html", &format!("Mapping {name}"), content)
}

/// Begins a draft of an existing or a new mapping. If the form names a page of the store, the page is added.
async fn begin_draft(visit: &Visit, bench: &Editor, form: &Form) -> Shown {
    let given = |name: &str| {
        form.get(name)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let page = match given("page") {
        Some(id) => {
            let opened = visit.open_store().await?;
            Some(
                stored::load_page(&*opened.browse, id)
                    .await
                    .map_err(Problem::bad_request)?,
            )
        }
        None => None,
    };
    let (mapping, edited) = match given("mapping") {
        Some(name) => match open_mapping(bench, name).await {
            // The mapping that has read the page does not exist any more, so a new one is begun.
            Err(_) if page.is_some() => new_mapping(name),
            opened => opened?,
        },
        None => {
            let of_page = page.as_ref().map(|page| mapping_name_from_url(&page.url));
            new_mapping(
                &given("name")
                    .map(str::to_owned)
                    .or(of_page)
                    .unwrap_or_default(),
            )
        }
    };
    let name = mapping["name"].as_str().unwrap_or_default().to_owned();
    let id = create_draft(bench, edited, mapping, None).await?;
    adding::add_fitting_pages(bench, &id, page.into_iter().collect()).await?;
    let pages = adding::golden_pages(bench, name, FIRST_PAGES).await?;
    adding::add_fitting_pages(bench, &id, pages).await?;
    Ok(see_other(&format!("{START}/draft/{id}")))
}

fn new_mapping(name: &str) -> (serde_json::Value, Edited) {
    let mapping = json!({"name": name, "url_patterns": [], "fields": []});
    let edited = Edited {
        file: format!("{name}.json"),
        place: None,
        version: None,
    };
    (mapping, edited)
}

/// A name for a mapping, made from the site of a page.
fn mapping_name_from_url(url: &str) -> String {
    let site = webfill_urls::Url::parse(url).map(|url| webfill_urls::site(&url));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    site.unwrap_or_default().replace(|c| !is_plain(c), "_")
}

/// Creates a draft, and returns its id.
async fn create_draft(
    bench: &Editor,
    edited: Edited,
    mapping: serde_json::Value,
    repairs: Option<Repairs>,
) -> Result<String, Problem> {
    let secret = new_secret().map_err(Problem::internal_error)?;
    let id: String = secret.chars().take(32).collect();
    let begin = move |drafts: &Drafts| Ok(drafts.create(&id, edited, mapping, repairs)?.id);
    bench.with_drafts(begin).await
}

/// Opens a mapping of the folder. Also returns its file, position and version.
pub(super) async fn open_mapping(
    bench: &Editor,
    name: &str,
) -> Result<(serde_json::Value, Edited), Problem> {
    let own = name.to_owned();
    let opened = bench.with_folder(move |folder| folder.find(&own)).await?;
    opened.ok_or_else(|| {
        Problem::not_found(format!(
            "no mapping in {} has the name {name}",
            bench.folder.path().display()
        ))
    })
}

/// Begins a draft for repairing the mapping of an alert, with the pages that are kept with the alert.
async fn begin_repair(visit: &Visit, bench: &Editor, form: &Form) -> Shown {
    let name = form.get("mapping").unwrap_or_default();
    let (mapping, edited) = open_mapping(bench, name).await?;
    let opened = visit.open_store().await?;
    let alert = stored::load_alert(&*opened.store, name)
        .await
        .map_err(Problem::unavailable)?;
    let alert = alert.ok_or_else(|| Problem::not_found(format!("mapping {name} has no alert")))?;
    let pages = stored::load_pages_of_alert(&*opened.store, &*opened.browse, &alert);
    let pages = pages.await.map_err(Problem::unavailable)?;
    let id = create_draft(
        bench,
        edited,
        mapping,
        Some(stored::repairs_for_alert(&alert)),
    )
    .await?;
    adding::add_fitting_pages(bench, &id, select_pages_within_limit(pages)).await?;
    Ok(see_other(&format!("{START}/draft/{id}")))
}

/// Selects as many pages as a draft may have: first those from after the change of the site, which are used for
/// learning, then a few from before it.
fn select_pages_within_limit(pages: Vec<NewPage>) -> Vec<NewPage> {
    const FORMER: usize = 5;
    let (former, now): (Vec<NewPage>, Vec<NewPage>) =
        pages.into_iter().partition(|page| page.is_former);
    let most = super::job::MOST_PAGES - FORMER.min(former.len());
    now.into_iter()
        .take(most)
        .chain(former.into_iter().take(FORMER))
        .collect()
}

async fn upload(bench: &Editor, id: &str, name: &str, url: &str, form: &Form) -> Shown {
    let adding = async {
        let (own, page) = (
            id.to_owned(),
            adding::page_from_upload(name, url, &form.raw)?,
        );
        bench
            .with_drafts(move |drafts| drafts.add_page(&own, page))
            .await?;
        let draft = bench.load_draft(id).await?;
        Ok::<_, Problem>(actions::draft_with_faults(bench, draft).await)
    };
    Ok(match adding.await {
        Ok(state) => json_answer(200, &state),
        Err(problem) => json_answer(problem.status, &json!({"error": problem.text})),
    })
}
