//! Reads bodies that a crawl has kept (`--keep-bodies`).

use std::sync::Arc;

use webfill_service::Fault;
use webfill_store::{Bodies, CrawlId};

use super::busy_store::retry_while_busy;
use super::candidate::{Candidate, Content};

pub struct KeptBodies {
    crawl: CrawlId,
    bodies: Arc<dyn Bodies>,
    after: Option<String>,
}

impl KeptBodies {
    pub fn new(crawl: &CrawlId, bodies: Arc<dyn Bodies>) -> KeptBodies {
        KeptBodies {
            crawl: crawl.clone(),
            bodies,
            after: None,
        }
    }

    /// The next batch of bodies; an empty list means the end.
    pub async fn next_batch(&mut self) -> Result<Vec<Candidate>, Fault> {
        let read = async || self.bodies.bodies(&self.crawl, self.after.clone()).await;
        let bodies = retry_while_busy(read).await?;
        if let Some(last) = bodies.last() {
            self.after = Some(last.page_id.clone());
        }
        let candidates = bodies.into_iter().map(|body| Candidate {
            page_id: body.page_id,
            content_hash: Some(body.content_hash),
            is_rendered: body.is_rendered,
            content: Content::Packed {
                bytes: body.bytes,
                packed: body.body,
            },
        });
        Ok(candidates.collect())
    }
}
