//! Deliberate faults, which show that faults are found: each disables something that several dispatchers need.

/// Each has a test in `tests/several.rs` with a seed that finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The outbox is in memory.
    OutboxIsNotDurable,
    /// The outbox gets the links of an outcome in a separate commit, after the outcome's.
    OutboxIsCommittedLater,
    /// Repeated links are taken again.
    ReceiverDoesNotDedupe,
    /// Links are confirmed before they are committed.
    ConfirmedBeforeCommit,
    /// Links of a crawl that is not known here yet are dropped.
    LinksOfUnknownCrawlsAreDropped,
    /// A crawl ends when no dispatcher has anything to do, even if messages between them are in transit.
    LinksUnderWayAreForgotten,
    /// A crawl ends when one wave finds nothing to do.
    OneWaveIsEnough,
    /// The order of two versions of a crawl is ignored.
    OlderVersionsCount,
    /// A stop is answered when the crawl's home has carried it out.
    StopIsAnsweredEarly,
    /// Old requests for shares are carried out like new ones.
    OldShareRequestsCount,
    /// Pages of a share are used until their return is confirmed.
    ReturnedSharesAreUsed,
    /// A dispatcher with a full outbox continues.
    FullOutboxesDoNotHold,
}
