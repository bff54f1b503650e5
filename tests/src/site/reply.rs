//! The replies of the test site: a well-formed [`Page`], or a [`Script`]. A script controls every byte, so it can send
//! answers that no decent server would send.

use std::time::Duration;

use bytes::Bytes;

/// The reply to a request.
#[derive(Debug, Clone)]
pub enum Reply {
    Page(Page),
    Script(Script),
}

/// A well-formed answer. It is sent by HTTP/1.1 or HTTP/2, as the client chooses.
#[derive(Debug, Clone)]
pub struct Page {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// The delay before the answer.
    pub latency: Duration,
}

/// An answer that has only a status.
pub fn status(status: u16) -> Page {
    Page {
        status,
        headers: Vec::new(),
        body: Bytes::new(),
        latency: Duration::ZERO,
    }
}

/// An HTML page with a title and a heading. Links and other content can be added.
pub fn page(title: &str) -> Page {
    let head =
        format!("<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>\n");
    status(200)
        .header("content-type", "text/html; charset=utf-8")
        .body(head)
}

/// A redirect with status 302 to `location`.
pub fn redirect(location: &str) -> Page {
    status(302).header("location", location)
}

/// An answer with any body of any type.
pub fn document(content_type: &str, body: impl Into<Bytes>) -> Page {
    status(200).header("content-type", content_type).body(body)
}

impl Page {
    pub fn status(mut self, status: u16) -> Page {
        self.status = status;
        self
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Page {
        self.headers.push((name.to_string(), value.into()));
        self
    }

    pub fn body(mut self, body: impl Into<Bytes>) -> Page {
        self.body = body.into();
        self
    }

    pub fn latency(mut self, latency: Duration) -> Page {
        self.latency = latency;
        self
    }

    /// Adds HTML at the end of the body.
    pub fn html(mut self, html: impl AsRef<[u8]>) -> Page {
        let mut body = self.body.to_vec();
        body.extend_from_slice(html.as_ref());
        self.body = body.into();
        self
    }

    pub fn link(self, href: &str) -> Page {
        self.html(format!("<a href=\"{href}\">{href}</a>\n"))
    }

    /// Adds a link that the mapping in [`crate::workplace`] follows.
    pub fn mapped_link(self, href: &str) -> Page {
        self.html(format!("<a rel=\"me\" href=\"{href}\">{href}</a>\n"))
    }

    /// Adds a field that the mapping in [`crate::workplace`] extracts.
    pub fn field(self, name: &str, value: &str) -> Page {
        self.html(format!("<p class=\"{name}\"> {value} </p>\n"))
    }

    /// The head of the answer in HTTP/1.1. It contains the length of the body.
    pub fn head(&self) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if may_have_body(self.status) {
            head.push_str(&format!("content-length: {}\r\n", self.body.len()));
        }
        head + "\r\n"
    }
}

/// Whether an answer with this status may have a body. Some statuses end with their head (RFC 9110, 15.3.5 and 15.4.5).
pub(super) fn may_have_body(status: u16) -> bool {
    status >= 200 && status != 204 && status != 304
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        302 => "Found",
        304 => "Not Modified",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Whatever",
    }
}

/// The bytes to send, in steps. The connection is closed after the last step.
#[derive(Debug, Clone, Default)]
pub struct Script {
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Send(Bytes),
    Pause(Duration),
    /// Sends the same bytes again and again, until the client closes the connection.
    Endless {
        chunk: Bytes,
        every: Duration,
    },
    /// Sends nothing, and waits until the client closes the connection.
    HoldOpen,
    /// Ends the connection with a reset.
    Reset,
    /// Reports that the request was not processed. This is possible only in HTTP/2.
    Refuse,
}

/// An empty script. It closes the connection without sending a byte.
pub fn script() -> Script {
    Script::default()
}

impl Script {
    fn step(mut self, step: Step) -> Script {
        self.steps.push(step);
        self
    }

    pub fn send(self, bytes: impl Into<Bytes>) -> Script {
        self.step(Step::Send(bytes.into()))
    }

    /// Sends these bytes as one chunk. The empty chunk at the end of a body must be sent separately.
    pub fn send_chunk(self, body: &[u8]) -> Script {
        let mut framed = format!("{:x}\r\n", body.len()).into_bytes();
        framed.extend_from_slice(body);
        framed.extend_from_slice(b"\r\n");
        self.send(framed)
    }

    pub fn pause(self, pause: Duration) -> Script {
        self.step(Step::Pause(pause))
    }

    pub fn send_endlessly(self, chunk: impl Into<Bytes>, every: Duration) -> Script {
        self.step(Step::Endless {
            chunk: chunk.into(),
            every,
        })
    }

    pub fn hold_open(self) -> Script {
        self.step(Step::HoldOpen)
    }

    pub fn reset(self) -> Script {
        self.step(Step::Reset)
    }

    /// Refuses a request of HTTP/2 (RFC 9113, 8.7).
    pub fn refuse(self) -> Script {
        self.step(Step::Refuse)
    }
}

impl From<Page> for Reply {
    fn from(page: Page) -> Reply {
        Reply::Page(page)
    }
}

impl From<Script> for Reply {
    fn from(script: Script) -> Reply {
        Reply::Script(script)
    }
}
