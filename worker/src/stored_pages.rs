//! Looks up stored pages. Concurrent lookups of runners are combined, so a worker does not query the store for each
//! task.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use webfill_store::{KnownPage, Store, StoreError};

/// The limit on the pages that are looked up in one query, and on the lookups that wait for the next one.
const MOST_AT_ONCE: usize = 256;

/// How long a request waits for the stored page that it needs to be conditional.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A lookup of a page: the page's key, and the sender for the answer.
type PageLookup<A> = (String, oneshot::Sender<A>);

/// Looks up stored pages, many of them in one query.
pub struct StoredPages {
    known: mpsc::Sender<PageLookup<KnownPage>>,
    versions: mpsc::Sender<PageLookup<bool>>,
    states: mpsc::Sender<PageLookup<Vec<u8>>>,
}

impl StoredPages {
    /// Starts the lookups. Must be called within a `LocalSet`. Its tasks end when the result is dropped.
    pub fn start(store: Arc<dyn Store>) -> StoredPages {
        let (known, known_asked) = mpsc::channel(MOST_AT_ONCE);
        let (versions, versions_asked) = mpsc::channel(MOST_AT_ONCE);
        let of_known = Arc::clone(&store);
        tokio::task::spawn_local(answer_lookups(known_asked, move |ids| {
            known_pages(Arc::clone(&of_known), ids)
        }));
        let of_versions = Arc::clone(&store);
        tokio::task::spawn_local(answer_lookups(versions_asked, move |ids| {
            have_versions(Arc::clone(&of_versions), ids)
        }));
        let (states, states_asked) = mpsc::channel(MOST_AT_ONCE);
        tokio::task::spawn_local(answer_lookups(states_asked, move |ids| {
            states_of(Arc::clone(&store), ids)
        }));
        StoredPages {
            known,
            versions,
            states,
        }
    }

    /// The stored page with this key. `None` if there is none with validators, or if the store does not answer soon.
    pub async fn known_page(&self, id: String) -> Option<KnownPage> {
        let asking = query(&self.known, id);
        tokio::time::timeout(LONGEST_WAIT, asking).await.ok()?
    }

    /// Whether the page with this key has versions to compare with; `None` if the store does not answer.
    pub async fn has_versions(&self, id: String) -> Option<bool> {
        query(&self.versions, id).await
    }

    /// The earlier versions of a page or a site, which new versions are compared with; `None` if there are none or the
    /// store does not answer.
    pub async fn versions_of(&self, id: String) -> Option<Vec<u8>> {
        query(&self.states, id).await
    }
}

async fn query<A>(questions: &mpsc::Sender<PageLookup<A>>, id: String) -> Option<A> {
    let (answer, answered) = oneshot::channel();
    questions.send((id, answer)).await.ok()?;
    answered.await.ok()
}

/// Answers lookups in batches with the results of `look_up`. If a page is not found, its sender is dropped without an
/// answer.
async fn answer_lookups<A, F>(
    mut asked: mpsc::Receiver<PageLookup<A>>,
    look_up: impl Fn(Vec<String>) -> F,
) where
    A: Clone,
    F: Future<Output = Result<HashMap<String, A>, StoreError>>,
{
    let mut questions = Vec::new();
    while asked.recv_many(&mut questions, MOST_AT_ONCE).await > 0 {
        let ids = questions.iter().map(|(id, _)| id.clone()).collect();
        // The store itself logs that it is unreachable.
        let found = look_up(ids).await.unwrap_or_default();
        for (id, answer) in questions.drain(..) {
            if let Some(found) = found.get(&id) {
                // Sending fails if the receiver no longer waits for the answer.
                let _ = answer.send(found.clone());
            }
        }
    }
}

async fn known_pages(
    store: Arc<dyn Store>,
    ids: Vec<String>,
) -> Result<HashMap<String, KnownPage>, StoreError> {
    let known = store.known_pages(ids).await?.into_iter();
    Ok(known.map(|page| (page.id.clone(), page)).collect())
}

async fn states_of(
    store: Arc<dyn Store>,
    ids: Vec<String>,
) -> Result<HashMap<String, Vec<u8>>, StoreError> {
    let versions = store.versions(ids).await?.into_iter();
    Ok(versions.map(|found| (found.id, found.state)).collect())
}

async fn have_versions(
    store: Arc<dyn Store>,
    ids: Vec<String>,
) -> Result<HashMap<String, bool>, StoreError> {
    let with = store.with_versions(ids.clone()).await?;
    let has = |id: String| {
        let has = with.contains(&id);
        (id, has)
    };
    Ok(ids.into_iter().map(has).collect())
}
