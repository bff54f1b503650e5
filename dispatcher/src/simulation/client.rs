//! The simulated client: opens a crawl, feeds its seeds in batches, each until it is accepted, and
//! asks whether it is finished.

use serde_json::{Value, json};

use super::plan::Plan;
use super::worker::url;
use super::world::{Event, World};

#[derive(Debug)]
pub(super) struct Client {
    seeds: Vec<String>,
    fed: usize,
    batch: usize,
    crawl: Option<u64>,
    ended: bool,
    finished: bool,
    /// Where the dispatcher leaves its answer.
    pub(super) answer: Option<Value>,
}

impl Client {
    /// The first page of each site is a seed.
    pub(super) fn new(plan: &Plan) -> Client {
        let sites = 0..plan.sites.len();
        Client {
            seeds: sites.map(|site| url(site, 0)).collect(),
            fed: 0,
            batch: 1 + plan.sites.len() / 2,
            crawl: None,
            ended: false,
            finished: false,
            answer: None,
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    fn question(&self) -> Value {
        let Some(crawl) = self.crawl else {
            let spec = json!({"app_id": "app", "crawl_id": "crawl", "max_depth": 1_000,
                              "follow": "all"});
            return json!({"action": "open_crawl", "spec": spec});
        };
        let batch = &self.seeds[self.fed..];
        let batch = &batch[..batch.len().min(self.batch)];
        if !batch.is_empty() {
            let seeds: Vec<Value> = batch.iter().map(|url| json!({"url": url})).collect();
            let fed_lines = self.fed + batch.len();
            return json!({"action": "feed_seeds", "crawl": crawl, "seeds": seeds,
                          "fed_lines": fed_lines});
        }
        if !self.ended {
            return json!({"action": "end_of_seeds", "crawl": crawl});
        }
        json!({"action": "crawl_status", "crawls": [crawl]})
    }

    fn take(&mut self, answer: &Value) {
        assert_eq!(answer.get("error"), None, "{answer}");
        if self.crawl.is_none() {
            self.crawl = answer["crawl"].as_u64();
        } else if self.fed < self.seeds.len() {
            self.fed = (self.fed + self.batch).min(self.seeds.len());
        } else if !self.ended {
            self.ended = true;
        } else {
            self.finished = answer["finished"] == true;
        }
    }
}

impl World {
    pub(super) fn let_client_ask(&mut self) {
        let question = self.client.question().to_string();
        match self.ask_dispatcher(question.as_bytes()) {
            Some(answer) => self.client.take(&answer),
            None => self.trace(|_| "the client gets no answer".into()),
        }
        let rest_ms = match self.client.ended {
            true => (self.plan.estimate_ms / 200).clamp(100, 600_000),
            false => 50,
        };
        self.later(rest_ms, Event::ClientAsks);
    }
}
