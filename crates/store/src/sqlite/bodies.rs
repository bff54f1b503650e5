//! The bodies of a store, in a [file of their own](super::bodies_file).

use async_trait::async_trait;

use super::Sqlite;
use crate::bodies::{Bodies, Body, BodyChange, DroppedBodies};
use crate::crawl::CrawlId;
use crate::error::StoreError;

#[async_trait]
impl Bodies for Sqlite {
    async fn keep(
        &self,
        changes: Vec<BodyChange>,
        max_bytes: u64,
    ) -> Result<DroppedBodies, StoreError> {
        self.bodies.apply_changes(changes, max_bytes).await
    }

    async fn bodies(
        &self,
        crawl: &CrawlId,
        after: Option<String>,
    ) -> Result<Vec<Body>, StoreError> {
        self.bodies.read(crawl, after).await
    }
}
