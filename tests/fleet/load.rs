//! The load on the fleet: whenever few pages are left to fetch, further pages of each generated site are fed, until the
//! load is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::site::{Web, page};

use crate::machines::{Client, Machines, SITES_EACH, wait_for};

const APP: &str = "fleet";
const CRAWL: &str = "load";

/// The number of pages of each site that are fed together. When half of them are fetched, the next ones are fed.
const PAGES: usize = 6;

/// The number of requests in one message.
const BATCH: usize = 500;

pub(crate) struct Load {
    pub(crate) sites: usize,
    fed: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    feeder: JoinHandle<()>,
    client: Client,
}

impl Load {
    pub(crate) fn spawn(machines: &Machines) -> Load {
        let sites = machines.names.len() * SITES_EACH;
        serve_sites(&machines.web, sites);
        let (fed, is_over) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let client = machines.client();
        let (count, end) = (Arc::clone(&fed), Arc::clone(&is_over));
        let feeder = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let pending = client
                    .status()
                    .and_then(|status| status["total_pending"].as_u64());
                if pending.is_some_and(|pending| pending < (sites * PAGES / 2) as u64) {
                    feed_next(&client, sites, count.load(Ordering::Relaxed));
                    count.fetch_add(PAGES, Ordering::Relaxed);
                }
                std::thread::sleep(Duration::from_millis(500));
            }
        });
        Load {
            sites,
            fed,
            is_over,
            feeder,
            client: machines.client(),
        }
    }

    /// Stops feeding, and waits until all tasks have ended. Returns the number of pages that were fed for each site.
    pub(crate) fn stop_and_wait(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.feeder.join().expect("the feeder does not fail");
        let info = json!({"action": "info", "appid": APP, "crawlid": CRAWL, "uuid": "end"});
        wait_for("all is fetched", Duration::from_secs(600), || {
            let info = self.client.request(&info)?;
            (info["state"] == "finished").then_some(())
        });
        self.fed.load(Ordering::Relaxed)
    }
}

pub(crate) fn site_host(site: usize) -> String {
    format!("f{site}.example")
}

fn serve_sites(web: &Web, sites: usize) {
    for site in 0..sites {
        let site = web.site(&site_host(site));
        site.serve_robots("");
        site.serve_otherwise(|request| page(&request.path).into());
    }
}

/// Feeds the next pages. If an answer is lost, the same pages are fed again, which has no effect on pages that were
/// already accepted.
fn feed_next(client: &Client, sites: usize, from: usize) {
    let request = |n: usize| {
        let url = format!("http://{}/{}", site_host(n % sites), from + n / sites);
        json!({"url": url, "appid": APP, "crawlid": CRAWL})
    };
    let requests: Vec<Value> = (0..sites * PAGES).map(request).collect();
    for batch in requests.chunks(BATCH) {
        wait_for("it is accepted", Duration::from_secs(120), || {
            let answer = client.request(&json!(batch))?;
            assert_eq!(answer["accepted"], batch.len(), "{answer}");
            Some(())
        });
    }
}
