//! Tests rating sites whose pages are shared among the machines of a fleet. Every row must be stored once, with its own
//! values.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::ratings::Ratings;
use webfill_tests::run::Run;

use crate::machines::{Client, Machines, wait_for};

const APP: &str = "fleet";
const CRAWL: &str = "ratings";

/// The number of requests in one message.
const BATCH: usize = 500;

/// Makes the given number of machines collect the ratings on the given number of sites, each with this many users.
pub(crate) fn run_shared(machines: u16, sites: usize, users: usize) {
    let machines = Machines::new(machines, Duration::from_secs(1));
    let of_site = |number| Ratings {
        number,
        most_pages: 4,
        size: 30,
        ..Ratings::small_site(users)
    };
    let sites: Vec<Ratings> = (1..=sites).map(of_site).collect();
    for site in &sites {
        site.serve(&machines.web);
    }
    // This mapping replaces the default mapping of the workplace.
    machines.add_mapping("profile", &of_site(1).mapping(false));
    machines.units.start("dispatcher");
    machines.start_supervisors();
    let client = machines.client();
    wait_for("all are welcome", Duration::from_secs(300), || {
        (client.sites_by_supervisor().len() == machines.names.len()).then_some(())
    });
    feed_ratings(&client, &sites);
    let info = json!({"action": "info", "appid": APP, "crawlid": CRAWL, "uuid": "end"});
    wait_for("all is fetched", Duration::from_secs(600), || {
        let info = client.request(&info)?;
        (info["state"] == "finished").then_some(())
    });
    check_ratings(&machines, &sites);
}

/// Feeds requests for all pages of all users. A user's number of ratings determines the number of pages.
fn feed_ratings(client: &Client, sites: &[Ratings]) {
    let mut requests = Vec::new();
    for site in sites {
        for user in 0..site.users {
            let urls = (1..=site.page_count(user)).map(|number| site.url(user, number));
            requests.extend(urls.map(|url| json!({"url": url, "appid": APP, "crawlid": CRAWL})));
        }
    }
    for batch in requests.chunks(BATCH) {
        wait_for("it is accepted", Duration::from_secs(120), || {
            let answer = client.request(&json!(batch))?;
            assert_eq!(answer["accepted"], batch.len(), "{answer}");
            Some(())
        });
    }
}

fn check_ratings(machines: &Machines, sites: &[Ratings]) {
    let mut expected = BTreeMap::new();
    for site in sites {
        for (id, row) in site.expected_records() {
            let (user, item) = id.split_once('/').expect("a user and an item");
            let user = format!("{}/users/{}", site.host(), user.trim_start_matches('u'));
            expected.insert(
                (user, item.to_owned()),
                stars_and_position(&row["stars"], &row),
            );
        }
    }
    let store = machines.store_uri();
    let export = [
        "export",
        "records",
        "--dataset",
        "ratings",
        "--store",
        &store,
    ];
    let mut found = BTreeMap::new();
    for line in Run::new(export).finish().expect_code(0).stdout.lines() {
        let record: Value = serde_json::from_str(line).expect("a record as JSON");
        let fields = &record["fields"];
        let key = ["user", "item"].map(|name| fields[name].as_str().expect("a text").to_owned());
        let [user, item] = key;
        let other = found.insert(
            (user, item),
            stars_and_position(&fields["stars"], &record["row"]),
        );
        assert!(other.is_none(), "twice: {record}");
    }
    assert_eq!(found.len(), expected.len());
    for (key, row) in &expected {
        assert_eq!(found.get(key), Some(row), "{key:?}");
    }
    let pages = ["export", "pages", "--store", &store];
    let text = Run::new(pages).finish().expect_code(0).stdout;
    let of_workers: HashSet<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|page| page["worker"].to_string())
        .collect();
    assert_eq!(of_workers.len(), machines.names.len(), "{of_workers:?}");
}

/// The values of a row that show whether its stars belong to it: the stars, its page, and its position there.
fn stars_and_position(stars: &Value, row: &Value) -> Value {
    json!([stars, row["url"], row["position"]])
}
