//! First sight as a browser waits for it: the page of `webfill desk --store`, by HTTP, from the request to the last byte.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use webfill_bench::program::binary;
use webfill_bench::visit::visit;

use crate::Failure;

/// Not the default, so that a desk on this machine is left alone.
const PLACE: &str = "127.7.7.7:8081";

/// Looks after the first one, and the pause between two.
const LOOKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(250);

const FIRST_SIGHT: &str = "/desk/";

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
    let _desk = Desk::start(store, folder.path())?;
    let (first, mut page) = visit(PLACE, FIRST_SIGHT)?;
    let mut later = Duration::ZERO;
    for _ in 0..LOOKS {
        std::thread::sleep(PAUSE);
        let waited;
        (waited, page) = visit(PLACE, FIRST_SIGHT)?;
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
}

impl Drop for Desk {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
