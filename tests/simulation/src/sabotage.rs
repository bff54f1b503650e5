//! Deliberate faults, which show that the simulation finds faults. Each fault disables something that protects sites or
//! enforces an operator's orders.

/// The deliberate faults. Each has a test in `tests/worlds.rs` with a seed that finds it, except for
/// `NothingIsInherited`: its test is ignored, because no known seed finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Workers start requests although they have no valid lease.
    LeasesAreIgnored,
    /// A worker counts its lease from the arrival of the supervisor's answer. It must count from the sending of the
    /// message that was answered.
    AnswersStretchTheLease,
    /// Workers keep tasks although the lease for them was lost.
    RecallsAreIgnored,
    /// A worker is not informed about requests of its predecessor (the process that it replaces) that may still be in
    /// progress.
    NothingIsInherited,
    /// Workers are not informed when another worker last requested a site.
    LastRequestsAreNotSent,
    /// The database does not record which supervisor owns a site.
    OwnersAreForgotten,
    /// The dispatcher cannot distinguish two supervisors with the same name.
    NamesakesShareAHome,
    /// The wall clock is set by more than the tolerance.
    TheClockIsSetByADay,
    /// The database does not record which crawls require browsers (the lane of a crawl).
    LanesAreForgotten,
    /// Answers to orders wait only a second for silent supervisors, and not until the supervisors' leases have expired.
    AnswersDoNotWaitForLeases,
    /// Workers forget the back-off of a site (its wait after failures) after each answer.
    BackOffIsForgotten,
    /// A robots.txt that cannot be fetched allows everything.
    FailuresOfRobotsAllowEverything,
    /// Entries of robots.txt in the shared cache do not expire.
    CachedRobotsDoNotExpire,
    /// A failed request for robots.txt does not count as the last request to its site, so the next one may follow too
    /// soon.
    RefusalsMoveNoClock,
    /// A redirect of robots.txt is followed immediately, without waiting for the site's delay.
    RobotsHopsTakeNoTurn,
    /// A site does not back off after a block. The task that was blocked ends.
    BlocksEndTasks,
    /// The database does not record which sites back off.
    BackoffsAreForgotten,
    /// Workers do not report the details of failures. So failures of a machine's own connection seem to be failures of
    /// its sites.
    FailuresEndTasks,
    /// Failures of a machine without a connection to the web count as answers, so that the machine keeps its sites.
    CutOffMachinesKeepTheirSites,
    /// The dispatcher is informed that the store has saved the states of sites before this is true.
    StatesAreConfirmedUnwritten,
    /// Workers do not report the IP addresses of sites.
    AddressesAreNotSent,
    /// After some turns, the dispatcher hands out no more tasks.
    HandingOutStops,
    /// At an unreachable site, crawls take turns, so that older tasks there wait behind newer tasks of other crawls.
    UnreachableSitesGoByTurns,
}
