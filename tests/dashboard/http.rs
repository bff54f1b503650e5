//! Requests to the dashboard like those of a browser, but written by hand, so that each header can be changed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(60);

/// The answer to a request: status, head in lower case, and body.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header, in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The token in the page's forms, which protects against forged requests.
    pub(crate) fn form_token(&self) -> String {
        let (_, after) = self
            .body
            .split_once("name=\"token\" value=\"")
            .expect("a form");
        after.split('"').next().expect("a value").to_owned()
    }

    /// The cookie that this answer sets, as a browser sends it back: `NAME=VALUE`.
    pub(crate) fn cookie(&self) -> Option<String> {
        let cookie = self.header("set-cookie")?;
        cookie.split(';').next().map(str::to_owned)
    }
}

/// A visitor of one dashboard. Sends its cookie with each request.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) place: String,
    pub(crate) cookie: Option<String>,
}

impl Visitor {
    /// A visitor of the dashboard at this place, which is `HOST:PORT`.
    pub(crate) fn of(place: &str) -> Visitor {
        Visitor {
            place: place.to_owned(),
            cookie: None,
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    /// Like [`Visitor::get`], with additional headers.
    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", path, headers, "")
    }

    /// Sends a form as a page of the dashboard would.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let origin = format!("http://{}", self.place);
        self.post_with(path, fields, &[("Origin", &origin)])
    }

    pub(crate) fn post_with(
        &self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let body: Vec<String> = fields
            .iter()
            .map(|(key, value)| format!("{key}={}", percent_encode(value)))
            .collect();
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.send("POST", path, &[&[kind], headers].concat(), &body.join("&"))
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head += &format!("Host: {}\r\n", self.place);
        }
        if let Some(cookie) = &self.cookie {
            head += &format!("Cookie: other=1; {cookie}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", body.len());
        let mut stream = TcpStream::connect(&self.place).expect("the dashboard listens");
        stream.set_read_timeout(Some(WAIT)).expect("a time limit");
        stream
            .write_all((head + body).as_bytes())
            .expect("it is read");
        let mut text = Vec::new();
        stream.read_to_end(&mut text).expect("an answer in time");
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer has a head");
        Answer {
            status: head[9..12].parse().expect("a status"),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    /// Sends a request and returns the connection, so that the answer can be read bit by bit.
    pub(crate) fn open_stream(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.place).expect("the dashboard listens");
        stream.set_read_timeout(Some(WAIT)).expect("a time limit");
        let cookie = self.cookie.as_deref().unwrap_or("other=1");
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nAccept: text/event-stream\r\n\r\n",
            self.place
        );
        stream.write_all(head.as_bytes()).expect("it is read");
        stream
    }

    /// Opens a stream of events. After each new part, passes the whole text so far to `read`, until `read` returns a
    /// value.
    pub(crate) fn listen<T>(&self, path: &str, mut read: impl FnMut(&str) -> Option<T>) -> T {
        let mut stream = self.open_stream(path);
        let mut text = String::new();
        let mut piece = [0; 65_536];
        loop {
            let length = stream.read(&mut piece).expect("events come in time");
            assert!(length > 0, "the stream has ended: {text}");
            text += &String::from_utf8_lossy(&piece[..length]);
            if let Some(found) = read(&text) {
                return found;
            }
        }
    }
}

pub(crate) fn percent_encode(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
