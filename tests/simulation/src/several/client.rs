//! The client of a crawl. It opens the crawl at its home (the dispatcher that is responsible for it), feeds the seeds,
//! stops the crawl if that is planned, and asks until it has ended. Unanswered requests are repeated.

use super::dispatcher::{Answer, Dispatcher};
use super::message::CrawlNumber;
use super::plan::CrawlPlan;

/// The number of seeds in one message.
const BATCH: usize = 2;

#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    is_open: bool,
    fed: usize,
    seeds_ended: bool,
    /// Whether the stop of the crawl was answered. After that, no request of the crawl may start.
    pub(super) is_stopped: bool,
    pub(super) is_over: bool,
}

impl Client {
    /// Sends the client's next request to the crawl's home.
    pub(super) fn ask(
        &self,
        crawl: CrawlNumber,
        planned: &CrawlPlan,
        home: &mut Dispatcher,
        (true_ms, now_ms): (u64, i64),
    ) {
        let wants_stop = planned.stops_at_ms.is_some_and(|at_ms| at_ms <= true_ms);
        if !self.is_open {
            home.open_crawl(crawl, now_ms);
        } else if wants_stop && !self.is_stopped {
            home.stop_crawl(crawl, now_ms);
        } else if self.is_stopped || self.seeds_ended {
            home.check_end(crawl);
        } else if self.fed < planned.seeds.len() {
            home.feed_seeds(crawl, self.fed, BATCH, now_ms);
        } else {
            home.end_seeds(crawl);
        }
    }

    pub(super) fn handle_answer(&mut self, answer: &Answer) {
        match answer {
            Answer::Opened(_) => self.is_open = true,
            Answer::Fed(_, fed) => self.fed = self.fed.max(*fed),
            Answer::SeedsEnded(_) => self.seeds_ended = true,
            Answer::Stopped(_) => self.is_stopped = true,
            Answer::Over(_) => self.is_over = true,
        }
    }
}

impl Answer {
    pub(super) fn crawl(&self) -> CrawlNumber {
        match self {
            Answer::Opened(crawl)
            | Answer::Fed(crawl, _)
            | Answer::SeedsEnded(crawl)
            | Answer::Stopped(crawl)
            | Answer::Over(crawl) => *crawl,
        }
    }
}
