//! Requests a view of the dashboard as a browser does, and measures the time until the last byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest wait for an answer. After that, the server counts as dead.
const WAIT: Duration = Duration::from_secs(60);

/// Requests a view (`/dashboard/sites`) of the dashboard at an address (`127.0.0.1:8080`). Returns the time it took,
/// and the page.
///
/// # Errors
///
/// There is no answer, or it is not a complete page.
pub fn timed_get(
    address: &str,
    place: &str,
) -> Result<(Duration, String), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(WAIT))?;
    write!(
        stream,
        "GET {place} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let waited = began.elapsed();
    match answer.starts_with("HTTP/1.1 200 ") && answer.contains("</html>") {
        true => Ok((waited, answer)),
        false => Err(format!("the dashboard does not show {place}: {answer}").into()),
    }
}
