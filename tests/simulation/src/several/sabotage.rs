//! Deliberate faults, which show that faults are found. Each disables something that several dispatchers need.

/// The deliberate faults. Each has a test in `tests/several.rs` with a seed that finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The outbox is kept in memory only.
    OutboxIsNotDurable,
    /// The links of an outcome are committed to the outbox separately, after the outcome.
    OutboxIsCommittedLater,
    /// Repeated links are taken again.
    ReceiverDoesNotDedupe,
    /// Links are confirmed before they are committed.
    ConfirmedBeforeCommit,
    /// Links of a crawl that is not known here yet are dropped.
    LinksOfUnknownCrawlsAreDropped,
    /// A crawl ends when no dispatcher has anything to do, even if links are in transit between them.
    LinksUnderWayAreForgotten,
    /// A crawl ends when one wave finds nothing to do.
    OneWaveIsEnough,
    /// The order of two versions of a crawl is ignored.
    OlderVersionsCount,
    /// A stop is answered as soon as the crawl's home has carried it out.
    StopIsAnsweredEarly,
    /// Old requests for shares are carried out like new ones.
    OldShareRequestsCount,
    /// The pages of a share are used until their return is confirmed.
    ReturnedSharesAreUsed,
    /// A dispatcher continues to hand out tasks although its outbox is full.
    FullOutboxesDoNotHold,
}
