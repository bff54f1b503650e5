//! The targets of redirects.

use webfill_urls::{Url, canonical_url};
use webfill_wire::Outcome;

use crate::task_result::TaskResult;

/// Notes the target of a redirect from `url` in the result. An invalid target is kept as it is; the dispatcher refuses
/// it. A redirect to `url` itself leads nowhere and counts as an error of the page; most servers that do this expect a
/// cookie to be returned.
pub(super) fn note_redirect(result: &mut TaskResult, url: &Url, target: &str) {
    let own = canonical_url(url.as_str(), None);
    if own.is_ok() && canonical_url(target, Some(url)) == own {
        result.outcome = Outcome::HttpError;
        result.error = Some("it redirects to itself".into());
        tracing::warn!(
            event = "redirects_to_itself",
            url = result.task.url,
            crawl_id = result.crawl.crawl_id,
            status_code = result.status_code,
            "a page redirects to itself and leads nowhere; its server may want a cookie"
        );
        return;
    }
    let absolute = url.join(target).map(String::from);
    result.redirect = Some(absolute.unwrap_or_else(|_| target.to_owned()));
}
