//! Sample responses, blocked and healthy ones, which belong to the signatures of blocks. Tests and benchmarks read them
//! from the folder `samples`.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use webfill_urls::Url;

use super::{Inspected, Response, Sign, find_block};

/// A sample response. Its file has a line with status and URL, then headers, an empty line and the body.
#[derive(Debug)]
pub struct Sample {
    pub status: u16,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: String,
}

impl Sample {
    /// Parses a sample. `None` if the text is not one.
    pub fn read(text: &str) -> Option<Sample> {
        let (head, body) = text.split_once("\n\n")?;
        let mut lines = head.lines();
        let (status, url) = lines.next()?.split_once(' ')?;
        let headers: Option<HeaderMap> = lines.map(read_header).collect();
        Some(Sample {
            status: status.parse().ok()?,
            url: Url::parse(url).ok()?,
            headers: headers?,
            body: body.to_owned(),
        })
    }

    pub fn response(&self) -> Response<'_> {
        Response {
            status: self.status,
            headers: &self.headers,
            url: &self.url,
            redirect: self.header("location"),
            body: &self.body,
            is_html: self
                .header("content-type")
                .is_some_and(|kind| kind.starts_with("text/html")),
        }
    }

    pub fn find_block(&self) -> Option<Sign> {
        find_block(&Inspected::new(&self.response()))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn read_header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(": ")?;
    Some((name.parse().ok()?, HeaderValue::from_str(value).ok()?))
}
