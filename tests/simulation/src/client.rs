//! The simulated client. It opens its crawls and feeds their seeds in batches. Each batch is repeated until it is
//! accepted. Then the client asks whether the crawls are finished.

use serde_json::{Value, json};

use crate::names::{CRAWLS, url};
use crate::plan::Plan;
use crate::settings::EPOCH_MS;

#[derive(Debug)]
pub(crate) struct Client {
    batch: usize,
    /// The progress of each crawl.
    crawls: Vec<Crawl>,
    pub(crate) ended: bool,
    finished: bool,
    /// Whether all crawls are opened before the first one gets its seeds.
    opens_first: bool,
    /// The dispatcher's answer to the last request. The world stores it here.
    pub(crate) answer: Option<Value>,
}

#[derive(Debug)]
struct Crawl {
    spec: Value,
    key: Option<u64>,
    seeds: Vec<Value>,
    fed: usize,
    feeds_at_ms: u64,
    ended: bool,
}

impl Client {
    /// Creates a client whose seeds are the first pages of all sites.
    pub(crate) fn new(plan: &Plan) -> Client {
        let asked = plan.priorities.iter().zip(&plan.crawl_lanes).enumerate();
        let crawls = asked.map(|(number, (priority, lane))| Crawl {
            spec: json!({"app_id": plan.app(number), "crawl_id": CRAWLS[number], "max_depth": 1_000,
                         "follow": "all", "priority": priority, "lane": lane, "retry": true,
                         "expires_at_ms": expires_at_ms(plan, number)}),
            key: None,
            seeds: seed_requests(plan, number),
            fed: 0,
            feeds_at_ms: plan.feeds_at_ms(number),
            ended: false,
        });
        Client {
            batch: 1 + plan.sites.len() / 2,
            crawls: crawls.collect(),
            ended: false,
            finished: false,
            opens_first: plan.dead_hosts.is_some(),
            answer: None,
        }
    }

    pub(crate) fn has_opened(&self, crawl: usize) -> bool {
        self.crawls[crawl].key.is_some()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// The index of the next crawl to open or to feed.
    fn next_crawl(&self) -> Option<usize> {
        let unopened = self.crawls.iter().position(|crawl| crawl.key.is_none());
        let mut unfed: Vec<usize> = (0..self.crawls.len()).collect();
        unfed.retain(|crawl| !self.crawls[*crawl].ended);
        let next = unfed
            .into_iter()
            .min_by_key(|crawl| self.crawls[*crawl].feeds_at_ms);
        unopened.filter(|_| self.opens_first).or(next)
    }

    /// The true time of the client's next action.
    pub(crate) fn next_action_ms(&self) -> u64 {
        let next = self.next_crawl().map(|next| &self.crawls[next]);
        let next = next.filter(|crawl| crawl.key.is_some());
        next.map_or(0, |crawl| crawl.feeds_at_ms)
    }

    /// The client's next request.
    pub(crate) fn next_request(&self) -> Value {
        let Some(crawl) = self.next_crawl().map(|next| &self.crawls[next]) else {
            let keys: Vec<Option<u64>> = self.crawls.iter().map(|crawl| crawl.key).collect();
            return json!({"action": "crawl_status", "crawls": keys});
        };
        let Some(key) = crawl.key else {
            return json!({"action": "open_crawl", "spec": crawl.spec});
        };
        let batch = &crawl.seeds[crawl.fed..];
        let batch = &batch[..batch.len().min(self.batch)];
        if batch.is_empty() {
            return json!({"action": "end_of_seeds", "crawl": key});
        }
        let fed_lines = crawl.fed + batch.len();
        json!({"action": "feed_seeds", "crawl": key, "seeds": batch, "fed_lines": fed_lines})
    }

    pub(crate) fn handle_answer(&mut self, answer: &Value) {
        assert_eq!(answer.get("error"), None, "{answer}");
        let Some(next) = self.next_crawl() else {
            self.finished = answer["finished"] == true;
            return;
        };
        let crawl = &mut self.crawls[next];
        if crawl.key.is_none() {
            crawl.key = answer["crawl"].as_u64();
        } else if crawl.fed < crawl.seeds.len() {
            crawl.fed = (crawl.fed + self.batch).min(crawl.seeds.len());
        } else {
            crawl.ended = true;
        }
        self.ended = self.crawls.iter().all(|crawl| crawl.ended);
    }
}

/// When a crawl expires, by the wall clock of the dispatcher's machine as it is before any fault changes this clock.
fn expires_at_ms(plan: &Plan, crawl: usize) -> Option<u64> {
    let expires_at_ms = plan.expires_at_ms(crawl)?;
    Some(EPOCH_MS as u64 + expires_at_ms)
}

fn seed_requests(plan: &Plan, crawl: usize) -> Vec<Value> {
    let sites = 0..plan.sites.len();
    let seed = |site| json!({"url": url(site, 0), "records": plan.seed_records(crawl, site)});
    sites.map(seed).collect()
}
