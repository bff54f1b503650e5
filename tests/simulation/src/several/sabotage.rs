//! Deliberate faults, which show that the checks find faults. Each disables something that several dispatchers need.

/// The deliberate faults. Each has a test in `tests/several.rs` with a seed that finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The outbox is only in memory.
    OutboxIsNotDurable,
    /// The links of an outcome are committed to the outbox only after the outcome.
    OutboxIsCommittedLater,
    /// Links that are repeated are accepted again.
    ReceiverDoesNotDedupe,
    /// Links are confirmed before they are committed.
    ConfirmedBeforeCommit,
    /// Links are dropped if the receiver does not know their crawl yet.
    LinksOfUnknownCrawlsAreDropped,
    /// A crawl ends when no dispatcher has anything to do, even if links between dispatchers are in transit.
    LinksUnderWayAreForgotten,
    /// A crawl ends after a single wave in which no dispatcher has anything to do.
    OneWaveIsEnough,
    /// Of two versions of a crawl, the one that arrives last is valid, even if it is older.
    OlderVersionsCount,
    /// A stop is answered as soon as it was carried out at the home of the crawl.
    StopIsAnsweredEarly,
    /// Repeated old requests for shares are carried out again.
    OldShareRequestsCount,
    /// A dispatcher uses the pages of a share until their return is confirmed.
    ReturnedSharesAreUsed,
    /// A dispatcher hands out tasks although its outbox is full.
    FullOutboxesDoNotHold,
}
