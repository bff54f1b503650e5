//! Faults that are put in on purpose, to show that they are found: each takes away one of the things
//! that several dispatchers need.

/// Each has a test in `tests/several.rs` that notes a seed which finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The outbox is in memory.
    OutboxIsNotDurable,
    /// The outbox gets the links of an outcome in a commit of its own, after the outcome's.
    OutboxIsCommittedLater,
    /// Links that arrive again are taken again.
    ReceiverDoesNotDedupe,
    /// Links are confirmed before they are committed.
    ConfirmedBeforeCommit,
    /// Links of a crawl that is not known here yet are dropped.
    LinksOfUnknownCrawlsAreDropped,
    /// A crawl is over when nobody has anything to do, whatever is under way between them.
    LinksUnderWayAreForgotten,
    /// A crawl is over when one wave finds nothing to do.
    OneWaveIsEnough,
    /// Which of two versions of a crawl is the later one is not looked at.
    OlderVersionsCount,
    /// A stop is answered when the crawl's home has carried it out.
    StopIsAnsweredEarly,
    /// Old requests for shares are carried out like new ones.
    OldShareRequestsCount,
    /// Pages of a share are used until their return is confirmed.
    ReturnedSharesAreUsed,
    /// A dispatcher whose outbox is full goes on.
    FullOutboxesDoNotHold,
}
