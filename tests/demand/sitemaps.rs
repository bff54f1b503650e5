//! Tests crawls that use sitemaps because an application has requested this.

use serde_json::json;
use webfill_tests::site::{document, page};

use crate::fleet::{Fleet, request, request_with};

#[test]
fn a_crawl_reads_sitemaps_from_the_request_on_that_asks_for_them() {
    let fleet = Fleet::start();
    let hosts = ["before.example", "asked.example", "after.example"];
    for host in hosts {
        let site = fleet.web.site(host);
        let listed = format!("{}\n", site.url("/listed"));
        site.serve("/sitemap.xml", document("text/plain", listed));
        site.serve("/", page("home"));
        site.serve("/listed", page("listed"));
    }
    let url = |host: &str| fleet.web.site(host).url("/");
    fleet.feed(&[request(&url(hosts[0]), "c")]);
    fleet.wait_until_done("c");
    let asks = json!({"sitemaps": true, "body": true});
    fleet.feed(&[request_with(&url(hosts[1]), "c", asks)]);
    fleet.wait_until_done("c");
    fleet.feed(&[request_with(
        &url(hosts[2]),
        "c",
        json!({"sitemaps": false}),
    )]);
    fleet.wait_until_done("c");
    let reads = |host: &str| fleet.web.site(host).visits().for_path("/listed").len();
    assert_eq!(hosts.map(reads), [0, 1, 0]);
}
