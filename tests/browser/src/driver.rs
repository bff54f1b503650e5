//! The process of chromedriver, and commands to it over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::WAIT;

/// The message that chromedriver prints when it listens. The port follows it.
const LISTENS: &str = "was started successfully on port ";

/// Starts chromedriver in its own process group. Its browsers belong to the group, too. Returns the process and its
/// port.
pub(super) fn start_driver() -> (Child, u16) {
    let mut driver = Command::new("chromedriver")
        .args(["--port=0", "--log-level=SEVERE"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .expect("chromedriver is installed");
    let mut lines = BufReader::new(driver.stdout.take().expect("it is piped")).lines();
    let port = lines.find_map(|line| {
        let line = line.ok()?;
        let (_, port) = line.split_once(LISTENS)?;
        port.trim_end_matches('.').parse().ok()
    });
    // The rest of the output is read, too, because a full pipe would block the driver.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, port.expect("chromedriver listens"))
}

/// Sends a command to the driver. Returns the value in the answer, or its error.
pub(super) fn send_request(
    port: u16,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, String> {
    let body = body.map_or_else(String::new, Value::to_string);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let sent = stream.write_all((head + &body).as_bytes());
    sent.map_err(|error| error.to_string())?;
    let body = read_body(stream).map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    let value = body["value"].clone();
    match value["error"].as_str() {
        None => Ok(value),
        Some(error) => Err(format!("{error}: {}", value["message"])),
    }
}

/// Reads the body of an answer by its length, because the driver may keep the connection open.
fn read_body(stream: TcpStream) -> std::io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(2 * WAIT))?;
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        let bytes = stream.read_line(&mut line)?;
        if bytes == 0 || line == "\r\n" {
            break;
        }
        let header = line.split_once(':');
        if let Some((_, value)) =
            header.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}
