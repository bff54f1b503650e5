//! Serves the pages of the catalogues on loopback.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use webfill_bench::sites::Failure;

use crate::catalogue::Thing;

/// The HTML of each page, by host and path.
type Pages = HashMap<String, String>;

/// Serves the pages of all things until the process ends. Returns the server's address.
pub fn serve<'t>(things: impl Iterator<Item = &'t Thing>) -> Result<String, Failure> {
    let pages: Pages = things
        .map(|thing| {
            let name = thing.url.trim_start_matches("http://");
            (name.to_owned(), thing.html.clone())
        })
        .collect();
    let pages = Arc::new(pages);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let pages = Arc::clone(&pages);
            // The thread ends when the client closes the connection, so an error is ignored.
            std::thread::spawn(move || answer_requests(&pages, stream).is_ok());
        }
    });
    Ok(address)
}

fn answer_requests(pages: &Pages, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    while reader.read_line(&mut request)? > 0 {
        let (mut host, mut header) = (String::new(), String::new());
        while reader.read_line(&mut header)? > 2 {
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("host")
            {
                value.trim().clone_into(&mut host);
            }
            header.clear();
        }
        let path = request.split(' ').nth(1).unwrap_or("/");
        let (status, body) = match pages.get(&format!("{host}{path}")) {
            Some(page) => ("200 OK", page.as_str()),
            None => ("404 Not Found", ""),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes())?;
        request.clear();
    }
    Ok(())
}
