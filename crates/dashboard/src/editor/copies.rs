//! Copies of a draft's pages: made once, by a job, and stored beside the page.

use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue};
use serde_json::Value;
use webfill_service::whole_file::write_private;

use super::drafts::Draft;
use super::frame::Purpose;
use super::job::Work;
use super::{Editor, actions, frame};
use crate::answer::{Problem, Shown, with_content_type, with_header};
use crate::secrets::new_secret;

/// Shows the copy of a page of a draft, as the document in the frame.
pub(super) async fn show(bench: &Editor, id: &str, number: usize) -> Shown {
    let draft = bench.load_draft(id).await?;
    let copy = load_or_make_copy(bench, &draft, number).await?;
    answer_with_copy(&copy, Purpose::Pointing)
}

/// The answer with a finished copy as the document in the frame.
pub(super) fn answer_with_copy(copy: &Value, purpose: Purpose<'_>) -> Shown {
    let nonce = new_secret().map_err(Problem::internal_error)?;
    let html = copy["html"].as_str().unwrap_or_default();
    let is_cut = copy["is_cut"].as_bool().unwrap_or_default();
    let document = frame::document(html, is_cut, purpose, &nonce);
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    let answer = with_content_type(200, kind, document.into_bytes());
    let answer = with_header(
        answer,
        CONTENT_SECURITY_POLICY,
        &frame::content_security_policy(&nonce),
    );
    Ok(with_header(answer, CACHE_CONTROL, "no-store"))
}

async fn load_or_make_copy(bench: &Editor, draft: &Draft, number: usize) -> Result<Value, Problem> {
    let page = draft.pages.iter().find(|page| page.number == number);
    let page = page.ok_or_else(|| Problem::not_found("page not found in the draft"))?;
    let (id, number) = (draft.id.clone(), page.number);
    let reading =
        bench.with_drafts(move |drafts| Ok(std::fs::read(drafts.copy_path(&id, number)?).ok()));
    if let Some(kept) = reading.await?
        && let Ok(copy) = serde_json::from_slice(&kept)
    {
        return Ok(copy);
    }
    let copy = actions::run_job(bench, draft, &[page], Work::Copy).await?;
    let (id, text) = (draft.id.clone(), copy.to_string());
    let writing = bench.with_drafts(move |drafts| {
        // If the copy cannot be stored, it is made again at the next request.
        let _ = write_private(&drafts.copy_path(&id, number)?, text.as_bytes());
        Ok(())
    });
    writing.await?;
    Ok(copy)
}
