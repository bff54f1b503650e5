//! The web that is crawled during the attacks: it serves one page at all URLs, and logs how often each URL was
//! requested.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::Failure;

type Visits = Arc<Mutex<BTreeMap<String, u64>>>;

/// The server of this web. It ends with this process.
pub(crate) struct Site {
    pub(crate) port: u16,
    visits: Visits,
}

impl Site {
    pub(crate) fn serve() -> Result<Site, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let visits = Visits::default();
        let shared = Arc::clone(&visits);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let visits = Arc::clone(&shared);
                std::thread::spawn(move || answer_requests(stream, &visits));
            }
        });
        Ok(Site { port, visits })
    }

    /// The number of URLs requested more than once.
    pub(crate) fn count_repeated(&self) -> usize {
        let visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        visits.values().filter(|n| **n > 1).count()
    }
}

/// Answers requests until the peer closes.
fn answer_requests(mut stream: TcpStream, visits: &Visits) {
    let Ok(reading) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(reading).lines();
    while let Some(Ok(first)) = lines.next() {
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        while let Some(Ok(line)) = lines.next() {
            if line.is_empty() {
                break;
            }
        }
        let (status, body) = match path.as_str() {
            "/robots.txt" => ("404 Not Found", ""),
            _ => {
                let mut visits = visits.lock().unwrap_or_else(PoisonError::into_inner);
                *visits.entry(path).or_default() += 1;
                ("200 OK", "<!DOCTYPE html><title>here</title><p>here</p>")
            }
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream
            .write_all(format!("{head}{body}").as_bytes())
            .is_err()
        {
            return;
        }
    }
}
