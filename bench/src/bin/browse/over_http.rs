//! First sight as a browser waits for it: the page of `webfill desk --store`, by HTTP, from the request to the last byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use webfill_bench::program::binary;

use crate::Failure;

/// Not the default, so that a desk on this machine is left alone.
const PLACE: &str = "127.7.7.7:8081";

/// Looks after the first one, and the pause between two.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(250);

const WAIT: Duration = Duration::from_secs(60);

/// Where first sight has the figure of the store's resolved records.
const FIGURE: &str = "id=\"resolved\"";

pub struct Waited {
    /// By the first visitor of a desk that has just started, with nothing of the store in the machine's memory.
    pub first: Duration,
    /// The longest of those after it.
    pub later: Duration,
}

/// Starts a desk over a store, and looks at it.
pub fn first_sights(store: &Path) -> Result<Waited, Failure> {
    forget(store)?;
    let folder = tempfile::tempdir()?;
    let desk = Desk::start(store, folder.path())?;
    let (first, mut page) = desk.first_sight()?;
    let mut later = Duration::ZERO;
    for _ in 0..LOOKS {
        std::thread::sleep(PAUSE);
        let waited;
        (waited, page) = desk.first_sight()?;
        later = later.max(waited);
    }
    match page.contains(FIGURE) {
        true => Ok(Waited { first, later }),
        false => Err(format!("first sight does not show the store's records: {page}").into()),
    }
}

/// Drops what the machine holds of a file in its memory.
fn forget(store: &Path) -> Result<(), Failure> {
    let mut file = std::ffi::OsString::from("of=");
    file.push(store);
    let dropped = Command::new("dd")
        .arg(file)
        .args([
            "oflag=nocache",
            "conv=notrunc,fdatasync",
            "count=0",
            "status=none",
        ])
        .status()?;
    match dropped.success() {
        true => Ok(()),
        false => Err("dd cannot drop the store from the machine's memory".into()),
    }
}

struct Desk(Child);

impl Desk {
    fn start(store: &Path, folder: &Path) -> Result<Desk, Failure> {
        let mut desk = Command::new(binary()?)
            .args(["desk", "--listen", PLACE, "--store"])
            .arg(format!("sqlite:{}", store.display()))
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()?;
        let told = desk.stderr.take().ok_or("its standard error is piped")?;
        let desk = Desk(desk);
        let mut lines = BufReader::new(told).lines();
        let mut said = Vec::new();
        while said.last().is_none_or(|line| line != "ready") {
            let line = lines
                .next()
                .ok_or_else(|| format!("the desk has ended: {said:?}"))?;
            said.push(line?);
        }
        // What it says later must find a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(desk)
    }

    fn first_sight(&self) -> Result<(Duration, String), Failure> {
        let began = Instant::now();
        let mut stream = TcpStream::connect(PLACE)?;
        stream.set_read_timeout(Some(WAIT))?;
        write!(
            stream,
            "GET /desk/ HTTP/1.1\r\nHost: {PLACE}\r\nConnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let waited = began.elapsed();
        match answer.starts_with("HTTP/1.1 200 ") && answer.contains("</html>") {
            true => Ok((waited, answer)),
            false => Err(format!("the desk shows no first sight: {answer}").into()),
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
