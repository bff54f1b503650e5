//! Takes the pages of a crawl through a worker, from their bodies to the entry of the store and the report to the
//! dispatcher. There are no requests, no threads and no store, so a benchmark can count what a page costs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use webfill_mapping::{Engine, Limits, MappingSet};
use webfill_store::{Save, Saved};
use webfill_urls::{Url, site};
use webfill_wire::{CrawlSettings, Outcome, Task, TaskDone};

use crate::block_outcome::{EarlierAnswers, find_block_in_response};
use crate::blocks::RepeatedPages;
use crate::config::WorkerConfig;
use crate::extract::{FetchedPage, Keeping, extract};
use crate::fetch::Fetched;
use crate::memory::{BudgetParts, Memory};
use crate::politeness::Answer;
use crate::save::build_entry;
use crate::task_result::TaskResult;

/// The pages of one crawl. The thread that reads them must have a stack of
/// [`PageReader::STACK_BYTES`](crate::PageReader::STACK_BYTES).
pub struct CrawledPages {
    engine: Engine,
    keeping: Keeping,
    repeated: RepeatedPages,
    page_deadline: Duration,
    crawl: Arc<CrawlSettings>,
    memory: Memory,
}

impl CrawledPages {
    pub fn new(
        mappings: Arc<MappingSet>,
        config: &WorkerConfig,
        crawl: CrawlSettings,
    ) -> CrawledPages {
        let memory = BudgetParts::of(config.memory_mib);
        CrawledPages {
            engine: Engine::new(mappings, Limits::with_memory(memory.page)),
            keeping: Keeping::with_samples(),
            repeated: RepeatedPages::default(),
            page_deadline: Duration::from_secs_f64(config.page_deadline),
            crawl: Arc::new(crawl),
            memory: Memory::new(memory.bodies),
        }
    }

    /// Reads a page in HTML and UTF-8, as its server sent it. Returns its entry for the store and its report.
    ///
    /// # Panics
    ///
    /// If the URL of the task is none, or the page is a block.
    pub fn read(&mut self, task: Task, body: Vec<u8>) -> (Save, TaskDone) {
        let url = Url::parse(&task.url).expect("tasks have valid URLs");
        let mut fetched = Fetched {
            outcome: Outcome::Ok,
            status_code: Some(200),
            content_type: Some("text/html; charset=utf-8".into()),
            body,
            error: None,
            answer: Answer::Served,
            ..Fetched::unanswered(Outcome::Ok, "")
        };
        let site = site(&url);
        let earlier = EarlierAnswers {
            repeated: &mut self.repeated,
            site: &site,
            compares_pages: true,
            may_wait: true,
        };
        let block = find_block_in_response(&mut fetched, &url, Some(earlier));
        assert!(block.is_none(), "the page is a block: {block:?}");
        let result = TaskResult::of_unfetched(task, Arc::clone(&self.crawl), Outcome::Ok);
        let page = FetchedPage {
            result: result.with_fetched(&mut fetched),
            body: fetched.body,
            document: None,
            is_rendered: false,
            is_candidate: false,
            answer: None,
            memory: self.memory.take_blocking(0),
        };
        let keeping = Some(&mut self.keeping);
        let result = extract(&self.engine, keeping, page, self.page_deadline);
        let save = build_entry(&result, "host/0");
        (
            save,
            result.into_task_done(Saved::default(), Instant::now()),
        )
    }
}
