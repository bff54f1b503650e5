//! A crawl request among the seeds. It is parsed by the parser of the public language ([`webfill_api`]), so a seeds
//! file has the same keys, limits and refusals as all other inputs. The dispatcher parses the request again when it
//! is fed, as it does for any application.

use serde_json::{Map, Value};
use webfill_api::{Refusal, RequestParser, Spider};

/// A valid crawl request. It belongs to the crawl that it names, whichever crawl the command itself runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SeedRequest {
    /// The request as the dispatcher gets it.
    pub json: Value,
    /// The length of its line.
    pub bytes: usize,
    /// It wants the lane `browser`.
    pub needs_browser: bool,
}

impl SeedRequest {
    /// Parses a line's object. Returns the URL, too.
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
