//! The final failures of a finished crawl. They are counted for the summary, and each unreachable record is listed once
//! in a file (`--dead`).

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use serde::Deserialize;
use webfill_scheduler::local_crawl::LocalRequest;
use webfill_service::Fault;
use webfill_wire::Outcome;

use crate::control_client::ControlClient;
use crate::fleet::Fleet;
use crate::summary::{Failure, Failures};

/// One part of the dispatcher's answer, which comes in several parts.
#[derive(Deserialize)]
struct FailurePage<T> {
    found: Vec<T>,
    next: Option<i64>,
}

#[derive(Deserialize)]
struct FailedUrls {
    site: String,
    outcome: Outcome,
    status_code: Option<u16>,
    urls: u64,
}

#[derive(Deserialize)]
struct DeadRecord {
    name: String,
    url: String,
    outcome: Outcome,
    status_code: Option<u16>,
    site: String,
    sign: Option<String>,
}

/// Requests the final failures of these crawls from the dispatcher. If `file` is set, writes the unreachable records to
/// it.
pub(super) fn load_failures(
    crawls: &[u32],
    file: Option<&Path>,
    client: &mut ControlClient,
    fleet: &mut Fleet,
) -> Result<Failures, Fault> {
    let mut failures = Failures::default();
    let mut sites = BTreeMap::new();
    let request = |after| LocalRequest::FailedUrls {
        crawls: crawls.to_vec(),
        after,
    };
    for_each_item(client, fleet, request, |failed: FailedUrls| {
        let failure = Failure::new(failed.outcome, failed.status_code);
        *failures.by_kind.entry(failure.clone()).or_default() += failed.urls;
        *sites.entry((failed.site, failure)).or_default() += failed.urls;
        Ok(())
    })?;
    failures.count_sites(sites);
    let mut list = file.map(DeadList::create).transpose()?;
    let request = |after| LocalRequest::DeadRecords {
        crawls: crawls.to_vec(),
        after,
    };
    for_each_item(client, fleet, request, |record: DeadRecord| {
        failures.dead_records += 1;
        list.as_mut().map_or(Ok(()), |list| list.add(&record))
    })?;
    if let Some(list) = list {
        list.finish()?;
    }
    Ok(failures)
}

/// Requests an answer part by part, and passes each item to `take`.
fn for_each_item<T: for<'a> Deserialize<'a>>(
    client: &mut ControlClient,
    fleet: &mut Fleet,
    request: impl Fn(i64) -> LocalRequest,
    mut take: impl FnMut(T) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut after = Some(0);
    while let Some(from) = after {
        let page: FailurePage<T> = client.request(&request(from), || fleet.restart_dead())?;
        page.found.into_iter().try_for_each(&mut take)?;
        after = page.next;
    }
    Ok(())
}

/// The file that lists unreachable records.
struct DeadList<'a> {
    path: &'a Path,
    out: csv::Writer<File>,
}

impl<'a> DeadList<'a> {
    fn create(path: &'a Path) -> Result<DeadList<'a>, Fault> {
        let out = csv::Writer::from_path(path).map_err(|error| cannot_write(path, &error))?;
        let mut list = DeadList { path, out };
        list.write(["id", "url", "outcome", "status_code", "site", "why"])?;
        Ok(list)
    }

    fn add(&mut self, record: &DeadRecord) -> Result<(), Fault> {
        // The name consists of the dataset and the record's id. Write only the id.
        let id = record
            .name
            .split_once('/')
            .map_or(&*record.name, |(_, id)| id);
        let status = record.status_code.map(|status| status.to_string());
        let why = match (&record.sign, record.status_code) {
            (_, Some(status)) => format!("the server returned {status}"),
            (Some(sign), None) => sign.clone(),
            (None, None) => String::new(),
        };
        self.write([
            id,
            &record.url,
            record.outcome.as_str(),
            &status.unwrap_or_default(),
            &record.site,
            &why,
        ])
    }

    fn write(&mut self, cells: [&str; 6]) -> Result<(), Fault> {
        let written = self.out.write_record(cells);
        written.map_err(|error| cannot_write(self.path, &error))
    }

    fn finish(mut self) -> Result<(), Fault> {
        let path = self.path;
        self.out.flush().map_err(|error| cannot_write(path, &error))
    }
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::error(format!("cannot write {} (--dead): {error}", path.display()))
}
