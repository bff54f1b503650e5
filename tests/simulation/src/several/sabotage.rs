//! Deliberate faults, which show that the checks find faults. Each disables something that several dispatchers need.

/// The deliberate faults. Each has a test in `tests/several.rs` with a seed that finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The outbox (the links that wait to be sent to other dispatchers) is only in memory.
    OutboxIsNotDurable,
    /// The links of an outcome are committed to the outbox only after the outcome.
    OutboxIsCommittedLater,
    /// Links that arrive a second time are accepted again.
    ReceiverDoesNotDedupe,
    /// Links are confirmed before they are committed.
    ConfirmedBeforeCommit,
    /// Links are dropped if the receiver does not know their crawl yet.
    LinksOfUnknownCrawlsAreDropped,
    /// A crawl ends when no dispatcher has anything to do, even if links between dispatchers are in transit.
    LinksUnderWayAreForgotten,
    /// A crawl ends after a single wave where no dispatcher has anything to do.
    OneWaveIsEnough,
    /// Of two versions of a crawl, the one that arrives last is valid, even if it is the older one.
    OlderVersionsCount,
    /// A stop is answered as soon as the crawl's home has carried it out, although other dispatchers have not.
    StopIsAnsweredEarly,
    /// Requests for a share of the page limit are carried out again if they are old and arrive once more.
    OldShareRequestsCount,
    /// A dispatcher still uses the pages of its share that it has given back, until this is confirmed.
    ReturnedSharesAreUsed,
    /// A dispatcher hands out tasks although its outbox is full.
    FullOutboxesDoNotHold,
}
