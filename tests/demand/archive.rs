//! Tests that supervisors of a fleet archive the pages that their workers fetch.

use webfill_tests::Signal;
use webfill_tests::site::page;
use webfill_tests::warc::{WarcRecord, read_archive};

use crate::fleet::{Fleet, request};

#[test]
fn a_supervisor_with_a_folder_archives_what_its_workers_fetch() {
    let fleet = Fleet::start_dispatcher_only(&[]);
    let site = fleet.web.site("kept.example");
    site.serve("/ada", page("Ada").field("name", "Ada Byron"));
    let url = site.url("/ada");
    let folder = fleet.work.path("archive");
    let supervisor = fleet.supervisor_role("one", &[]);
    let supervisor = supervisor.arg("--warc").arg(&folder).start();
    fleet.feed(&[request(&url, "kept")]);
    fleet.wait_until_done("kept");
    supervisor.signal(Signal::TERM);
    supervisor.finish().expect_code(0);
    let records = read_archive(&folder);
    let answer = records
        .iter()
        .find(|record| record.kind() == "response" && record.url() == url);
    let body = String::from_utf8_lossy(answer.expect("the page is there").payload());
    assert!(body.contains("Ada Byron"), "{body}");
    let mut urls = records.iter().map(WarcRecord::url);
    assert!(urls.any(|url| url.ends_with("/robots.txt")));
}
