//! Reads a body within its limits of bytes, time and memory.
//!
//! A body waits if the worker's [memory](crate::memory) is full, and meanwhile the server must wait, too. So such a
//! body is not reported as too slow. If the request's time runs out, the request is aborted, and the page is fetched
//! again later.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use webfill_wire::Outcome;

use super::BodyRule;
use super::incoming::IncomingBody;
use crate::fetch_error::FetchError;
use crate::memory::{MemoryPermit, READ_AHEAD};
use crate::sitemaps;

/// A wait for memory that is shorter than this does not explain why a body took too long.
const NOTABLE_WAIT: Duration = Duration::from_millis(500);

/// Why there is no body.
pub(super) enum NoBody {
    Failed(FetchError),
    /// No memory for the body became free in time.
    NoMemory,
}

/// The limits for reading a body.
pub(super) struct BodyLimits {
    pub rule: BodyRule,
    /// The declared type is not that of a page, so the body is read only as long as it may be a document or a sitemap.
    pub must_be_file: bool,
    pub bytes: usize,
    /// The longest pause between two pieces of the body.
    pub pause: Duration,
    pub deadline: Instant,
}

impl BodyLimits {
    /// The most bytes of a body that starts with `body`, when `more` bytes have just arrived. Sitemaps have the limit
    /// of their protocol, except compressed ones, which have the limit of pages.
    fn most_bytes(&self, body: &[u8], more: usize) -> usize {
        let is_over = body.len() + more > self.bytes;
        let files = self.rule.files();
        let is_plain = is_over && files.sitemaps && !sitemaps::is_gzip(body);
        match is_plain && sitemaps::is_sitemap(body, files.is_named_sitemap) {
            true => self.bytes.max(sitemaps::MAX_BYTES),
            false => self.bytes,
        }
    }

    /// Whether the first bytes may belong to a file that is accepted although it is not a page: a document or a
    /// sitemap.
    fn may_become_file(&self, body: &[u8]) -> bool {
        let files = self.rule.files();
        files.documents && webfill_reader::may_need_reader(body) != Some(false)
            || files.sitemaps && sitemaps::may_become_sitemap(body, files.is_named_sitemap)
    }
}

/// Reads the whole body, or only its beginning if the rule says so.
pub(super) async fn read(
    incoming: &mut IncomingBody,
    limits: &BodyLimits,
    memory: &mut MemoryPermit,
) -> Result<Vec<u8>, NoBody> {
    let declared = incoming.declared_bytes();
    let mut body = GrowingBody {
        bytes: Vec::new(),
        declared,
        waited: Duration::ZERO,
    };
    while let Some(chunk) = next_chunk(incoming, limits, body.waited).await? {
        let most = limits.most_bytes(&body.bytes, chunk.len());
        let room = most - body.bytes.len();
        if chunk.len() > room && !matches!(limits.rule, BodyRule::Beginning { .. }) {
            let reason = format!("body over {most} bytes");
            return Err(NoBody::Failed(FetchError::new(Outcome::TooLarge, reason)));
        }
        let chunk = &chunk[..chunk.len().min(room)];
        body.append(chunk, (incoming.kept_bytes(), most), limits, memory)
            .await?;
        if limits.must_be_file && !limits.may_become_file(&body.bytes) {
            let reason = "the body is neither a page nor another file that is read";
            return Err(NoBody::Failed(FetchError::new(
                Outcome::UnsupportedType,
                reason,
            )));
        }
        if body.bytes.len() == limits.bytes && matches!(limits.rule, BodyRule::Beginning { .. }) {
            break;
        }
    }
    if limits.rule.is_page() {
        memory.note_size(body.memory_needed(body.bytes.len()));
    }
    memory.set(body.bytes.capacity() + incoming.kept_bytes());
    Ok(body.bytes)
}

/// Reads the rest of the body, which only the archive needs. `body_bytes` are already in memory. Parts that do not
/// arrive in time are missing there.
pub(super) async fn keep_rest(
    incoming: &mut IncomingBody,
    body_bytes: usize,
    limits: &BodyLimits,
    memory: &mut MemoryPermit,
) -> Result<(), NoBody> {
    loop {
        let until = limits.deadline.min(Instant::now() + limits.pause);
        match timeout_at(until, incoming.keep_chunk()).await {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
        let growing = memory.grow_to(READ_AHEAD + body_bytes + incoming.kept_bytes());
        if timeout_at(limits.deadline, growing).await.is_err() {
            return Err(NoBody::NoMemory);
        }
    }
    memory.set(body_bytes + incoming.kept_bytes());
    Ok(())
}

async fn next_chunk(
    incoming: &mut IncomingBody,
    limits: &BodyLimits,
    waited: Duration,
) -> Result<Option<bytes::Bytes>, NoBody> {
    let until = limits.deadline.min(Instant::now() + limits.pause);
    match timeout_at(until, incoming.next_chunk()).await {
        Ok(Ok(chunk)) => Ok(chunk),
        Ok(Err(error)) => Err(NoBody::Failed(error)),
        // The body waited for memory, and without that wait it might have arrived in time. So the server is not to
        // blame.
        Err(_) if until == limits.deadline && waited >= NOTABLE_WAIT => Err(NoBody::NoMemory),
        Err(_) => Err(NoBody::Failed(FetchError::new(
            Outcome::Timeout,
            "the body took too long",
        ))),
    }
}

struct GrowingBody {
    bytes: Vec<u8>,
    /// The length that the server declared; `None` for a compressed body, whose decoded length is unknown.
    declared: Option<usize>,
    /// The time that this body has spent waiting for memory.
    waited: Duration,
}

impl GrowingBody {
    /// Appends a piece once there is memory for it and for its copy in the archive.
    async fn append(
        &mut self,
        chunk: &[u8],
        (kept_bytes, most): (usize, usize),
        limits: &BodyLimits,
        memory: &mut MemoryPermit,
    ) -> Result<(), NoBody> {
        let length = self.bytes.len() + chunk.len();
        let capacity = match length > self.bytes.capacity() {
            true => self.next_capacity(most).max(length),
            false => self.bytes.capacity(),
        };
        let began = Instant::now();
        let growing = memory.grow_to(self.memory_needed(capacity) + kept_bytes);
        if timeout_at(limits.deadline, growing).await.is_err() {
            return Err(NoBody::NoMemory);
        }
        self.waited += began.elapsed();
        self.bytes.reserve_exact(capacity - self.bytes.len());
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    fn next_capacity(&self, most: usize) -> usize {
        let grown = self.bytes.capacity() * 3 / 2;
        self.declared.unwrap_or(grown).max(grown).min(most)
    }

    /// How much memory is needed to read this many bytes. A decompressor's window can take as much again.
    fn memory_needed(&self, bytes: usize) -> usize {
        match self.declared {
            Some(_) => READ_AHEAD + bytes,
            None => READ_AHEAD + 2 * bytes,
        }
    }
}
