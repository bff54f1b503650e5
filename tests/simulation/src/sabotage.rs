//! Deliberate faults, which show that the simulation finds faults. Each disables something that protects sites or
//! enforces an operator's orders.

/// The deliberate faults. Each has a test in `tests/worlds.rs` with a seed that finds it, except for
/// `NothingIsInherited`: its test is ignored, because no known seed finds it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Workers start requests without a lease.
    LeasesAreIgnored,
    /// A lease is extended from the arrival of an answer, and not from the sending of the message that was answered.
    AnswersStretchTheLease,
    /// Workers keep the tasks that were handed out under a lease that was lost.
    RecallsAreIgnored,
    /// A worker is not informed about requests of the process before it that may still be in progress.
    NothingIsInherited,
    /// Workers are not informed when another worker last requested a site.
    LastRequestsAreNotSent,
    /// The database does not record the owners of sites.
    OwnersAreForgotten,
    /// Two supervisors with the same name cannot be distinguished.
    NamesakesShareAHome,
    /// The wall clock is set by more than the tolerance.
    TheClockIsSetByADay,
    /// The database does not record which crawls require browsers.
    LanesAreForgotten,
    /// Answers wait only a second for supervisors, and not until their leases have expired.
    AnswersDoNotWaitForLeases,
    /// Workers forget the back-off of a site after each answer.
    BackOffIsForgotten,
    /// A robots.txt that cannot be fetched allows everything.
    FailuresOfRobotsAllowEverything,
    /// Entries of robots.txt in the shared cache do not expire.
    CachedRobotsDoNotExpire,
    /// A failed request for robots.txt does not change the clock of its site.
    RefusalsMoveNoClock,
    /// A redirect of robots.txt is followed immediately.
    RobotsHopsTakeNoTurn,
    /// A site does not back off after a block. The task that was blocked ends.
    BlocksEndTasks,
    /// The database does not record which sites back off.
    BackoffsAreForgotten,
    /// Workers do not report the details of failures, so that failures of a machine seem to be failures of its sites.
    FailuresEndTasks,
    /// Failures of a machine without a way to the web count as answers, so that the machine keeps its sites.
    CutOffMachinesKeepTheirSites,
    /// The dispatcher is informed that the store has the states of sites before the store has them.
    StatesAreConfirmedUnwritten,
    /// Workers do not report the addresses of sites.
    AddressesAreNotSent,
    /// After some turns, the dispatcher hands out no more tasks.
    HandingOutStops,
    /// At an unreachable site, crawls take turns, so that the older tasks there wait behind newer tasks.
    UnreachableSitesGoByTurns,
}
