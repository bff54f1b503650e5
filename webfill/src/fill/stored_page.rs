//! The facts about a page that the crawl has stored besides its body.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use webfill_service::Fault;
use webfill_store::Body;
use webfill_urls::Url;
use webfill_wire::Outcome;

use super::transient_ends;
use crate::mapping_command::learn::gathered::GatheredPage;

/// A stored page without its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredPage {
    pub outcome: Outcome,
    pub status: Option<u64>,
    /// The target, if the page is a redirect.
    pub redirect: Option<String>,
    pub content_type: Option<String>,
    pub content_hash: Option<String>,
    /// When it was fetched, in ISO 8601.
    pub at: String,
}

impl StoredPage {
    /// Reads a page from an export's document. `None` if a required member is missing.
    pub fn read(page: &Value) -> Option<StoredPage> {
        let text = |name: &str| page[name].as_str().map(str::to_owned);
        let url = text("url")?;
        Some(StoredPage {
            outcome: text("outcome")?.parse().ok()?,
            status: page["status_code"].as_u64(),
            redirect: text("final_url").filter(|to| *to != url),
            content_type: text("content_type"),
            content_hash: text("content_hash"),
            at: text("started_at")?,
        })
    }

    /// Decodes the body of the page. `None` if it is not a page that can be read.
    pub fn decode_page(&self, url: Url, body: &Body) -> Result<Option<GatheredPage>, Fault> {
        let length = usize::try_from(body.bytes).map_err(Fault::error)?;
        let content = zstd::bulk::decompress(&body.body, length)
            .map_err(|error| Fault::error(format!("{url}: its kept body is damaged: {error}")))?;
        // A page that a browser has rendered is UTF-8, whatever the server declared.
        let content_type = match body.is_rendered {
            true => Some("text/html; charset=utf-8"),
            false => self.content_type.as_deref(),
        };
        Ok(GatheredPage::decode(url, content_type, &content))
    }

    /// The end of the fetch: the HTTP status if it is an error, otherwise the outcome.
    pub fn fetch_end(&self) -> String {
        match (self.outcome, self.status) {
            (Outcome::HttpError, Some(status)) => status.to_string(),
            (outcome, _) => outcome.to_string(),
        }
    }

    /// Whether a later request may get the page. A page that was not requested, because its site had answered other
    /// requests with errors for too long, has no status.
    pub fn may_succeed_later(&self) -> bool {
        let is_unasked = self.outcome == Outcome::HttpError && self.status.is_none();
        is_unasked || transient_ends::ENDS.contains(&self.fetch_end().as_str())
    }
}
