//! Deliberate faults, which show that the simulation finds faults. Each disables something that protects sites or
//! enforces an operator's orders.

/// The deliberate faults. Each has a test in `tests/worlds.rs` with a seed that finds it, except for
/// `NothingIsInherited`: its test is ignored, because no known seed finds it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Workers start requests without a lease.
    LeasesAreIgnored,
    /// A lease is extended from the arrival of an answer, not from the message that was answered.
    AnswersStretchTheLease,
    /// Workers keep tasks that were handed out under a lost lease.
    RecallsAreIgnored,
    /// A worker does not learn which sites its predecessor was requesting.
    NothingIsInherited,
    /// Workers do not learn when another worker last sent a request.
    LastRequestsAreNotSent,
    /// The database does not record the owners of sites.
    OwnersAreForgotten,
    /// Two supervisors with one name cannot be told apart.
    NamesakesShareAHome,
    /// The wall clock jumps farther than the tolerance.
    TheClockIsSetByADay,
    /// The database does not record which crawls require browsers.
    LanesAreForgotten,
    /// Answers wait for supervisors only a second, instead of until their leases have expired.
    AnswersDoNotWaitForLeases,
    /// Workers forget the back-off of a site after each answer.
    BackOffIsForgotten,
    /// A robots.txt that cannot be fetched allows everything.
    FailuresOfRobotsAllowEverything,
    /// Entries of robots.txt in the shared cache do not expire.
    CachedRobotsDoNotExpire,
    /// A failed request for robots.txt does not move the clock.
    RefusalsMoveNoClock,
    /// A redirect of robots.txt is followed immediately.
    RobotsHopsTakeNoTurn,
    /// A site does not back off after a block; instead, the task that met it ends.
    BlocksEndTasks,
    /// The database does not record which sites back off.
    BackoffsAreForgotten,
    /// Workers do not report the details of failures, so that a machine's failures are taken for its sites'.
    FailuresEndTasks,
    /// Failures of a cut-off machine count as answers, so that it gets its sites back.
    CutOffMachinesKeepTheirSites,
    /// The dispatcher learns that the store has the states of sites before it has them.
    StatesAreConfirmedUnwritten,
    /// Workers do not report the addresses of sites.
    AddressesAreNotSent,
    /// From some turn on, the dispatcher hands nothing out any more.
    HandingOutStops,
    /// An unreachable site serves its crawls in turns, as in former versions, so that its older tasks wait behind
    /// newer ones.
    UnreachableSitesGoByTurns,
}
