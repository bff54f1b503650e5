//! The memory budget for page bodies that are stored with their pages (crawls with `body`).
//!
//! The text of such a page is in memory from its fetch until the store has written it. Each text
//! reserves its bytes in a budget of [`BUDGET_BYTES`] for that time, and fetches wait while the
//! budget is used up. So a slow or unavailable store costs no more memory than a fast one.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A longer text is not stored: together with the rest of its page it may exceed a store's limit.
pub const MAX_BODY_BYTES: usize = 10 << 20;

/// All texts that are in memory at once. A store may need the same amount again to write them.
const BUDGET_BYTES: usize = 32 << 20;

/// The budget is counted in KiB, because a semaphore has at most `u32::MAX >> 3` permits.
const UNIT: usize = 1 << 10;

/// The budget that all tasks of a worker share.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    free: Arc<Semaphore>,
}

/// A page's text together with its share of the budget, which is free again when this is dropped.
#[derive(Debug)]
pub struct BudgetedBody {
    pub text: Arc<str>,
    _reservation: OwnedSemaphorePermit,
}

impl BodyBudget {
    pub fn new() -> BodyBudget {
        BodyBudget {
            free: Arc::new(Semaphore::new(BUDGET_BYTES / UNIT)),
        }
    }

    /// Waits until twice `body_bytes` are free and reserves them: decoding may turn a character of
    /// one byte into one of up to three, but few bodies grow by more than two.
    pub async fn reserve(&self, body_bytes: usize) -> OwnedSemaphorePermit {
        let units = (2 * body_bytes).min(BUDGET_BYTES).div_ceil(UNIT) as u32;
        let permit = Arc::clone(&self.free).acquire_many_owned(units).await;
        permit.expect("the semaphore is never closed")
    }
}

impl BudgetedBody {
    /// The decoded text of a page, in which invalid bytes are U+FFFD. `None` if it is longer than
    /// [`MAX_BODY_BYTES`].
    pub fn new(text: &str, reservation: OwnedSemaphorePermit) -> Option<BudgetedBody> {
        let fits = text.len() <= MAX_BODY_BYTES;
        fits.then(|| BudgetedBody {
            text: text.into(),
            _reservation: reservation,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_fetch_waits_while_the_budget_is_used_up() {
        let budget = BodyBudget::new();
        let first = BudgetedBody::new("<p>", budget.reserve(BUDGET_BYTES).await).unwrap();
        let second = budget.reserve(1);
        tokio::pin!(second);
        let waits = tokio::time::timeout(Duration::from_secs(1), &mut second);
        assert!(waits.await.is_err(), "the budget is used up");
        drop(first);
        drop(second.await);
    }

    #[tokio::test]
    async fn a_text_that_is_too_long_is_not_stored_and_reserves_nothing() {
        let budget = BodyBudget::new();
        let long = "x".repeat(MAX_BODY_BYTES + 1);
        assert!(BudgetedBody::new(&long, budget.reserve(long.len()).await).is_none());
        assert_eq!(budget.free.available_permits(), BUDGET_BYTES / UNIT);
    }
}
