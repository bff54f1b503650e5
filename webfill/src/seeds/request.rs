//! A crawl request among the seeds. It is parsed by the parser of the public language ([`webfill_api`]), so a seeds
//! file has the same keys, limits and refusals as all other inputs. The dispatcher parses the request again when it
//! is fed, as it does for any application.

use serde_json::{Map, Value};
use webfill_api::{Refusal, RequestParser, Spider};

/// A valid crawl request. It belongs to the crawl that it names, not to the command's own crawl.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedRequest {
    /// The request in the form that the dispatcher receives.
    pub json: Value,
    /// The length of the request's line in bytes.
    pub bytes: usize,
    /// Whether the request wants the lane `browser`.
    pub needs_browser: bool,
}

impl SeedRequest {
    /// Parses the object of a line. Also returns the URL.
    pub(super) fn parse(
        object: Map<String, Value>,
        bytes: usize,
        parser: &mut RequestParser,
    ) -> Result<(String, SeedRequest), Refusal> {
        let json = Value::Object(object);
        let request = parser.parse(json.clone(), "$")?;
        let seed = SeedRequest {
            json,
            bytes,
            needs_browser: request.changes.spider() == Some(Spider::Browser),
        };
        Ok((request.url, seed))
    }
}
