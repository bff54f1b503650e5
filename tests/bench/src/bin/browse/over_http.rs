//! The overview as a browser receives it: the page of `webfill dashboard --store`, by HTTP, from the request to the
//! last byte.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use webfill_bench::program::binary;
use webfill_bench::visit::timed_get;

use crate::Failure;

/// The address of the measured dashboard. It is not the default, so that a dashboard on this machine is not disturbed.
const PLACE: &str = "127.7.7.7:8081";

/// The number of requests after the first one, and the pause between two requests.
const CHECKS: usize = 20;
const PAUSE: Duration = Duration::from_millis(250);

const OVERVIEW: &str = "/dashboard/";

/// The HTML attribute of the element that shows the number of resolved records. The overview must contain it.
const FIGURE: &str = "id=\"resolved\"";

pub struct Waited {
    /// The wait of the first visitor after the dashboard has started. Nothing of the store is in the machine's page
    /// cache.
    pub first: Duration,
    /// The longest wait of the later requests.
    pub later: Duration,
}

/// Starts a dashboard over a store, and requests its overview.
pub fn measure_overview(store: &Path) -> Result<Waited, Failure> {
    drop_from_cache(store)?;
    let folder = tempfile::tempdir()?;
    let _dashboard = Dashboard::start(store, folder.path())?;
    let (first, mut page) = timed_get(PLACE, OVERVIEW)?;
    let mut later = Duration::ZERO;
    for _ in 0..CHECKS {
        std::thread::sleep(PAUSE);
        let waited;
        (waited, page) = timed_get(PLACE, OVERVIEW)?;
        later = later.max(waited);
    }
    match page.contains(FIGURE) {
        true => Ok(Waited { first, later }),
        false => Err(format!("the overview does not show the store's records: {page}").into()),
    }
}

/// Drops a file from the machine's page cache, so that it is read from the disk.
fn drop_from_cache(store: &Path) -> Result<(), Failure> {
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

struct Dashboard(Child);

impl Dashboard {
    fn start(store: &Path, folder: &Path) -> Result<Dashboard, Failure> {
        let mut dashboard = Command::new(binary()?)
            .args(["dashboard", "--listen", PLACE, "--store"])
            .arg(format!("sqlite:{}", store.display()))
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()?;
        let output = dashboard
            .stderr
            .take()
            .ok_or("its standard error is piped")?;
        let dashboard = Dashboard(dashboard);
        let mut lines = BufReader::new(output).lines();
        let mut said = Vec::new();
        while said.last().is_none_or(|line| line != "ready") {
            let line = lines
                .next()
                .ok_or_else(|| format!("the dashboard has ended: {said:?}"))?;
            said.push(line?);
        }
        // The rest of the output is read, too, because a full pipe would block the dashboard.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(dashboard)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // An error means that the dashboard has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
