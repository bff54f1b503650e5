//! The parts of the frontier, as [`Frontier`](super::Frontier) hands them out. Their methods are in the other
//! modules of the frontier.

use super::transactions::Transactions;

/// The watches of a fleet, and the records of their runs.
pub struct Watches<'a>(pub(super) &'a mut Transactions);

/// The supervisors that may hold leases.
pub struct Supervisors<'a>(pub(super) &'a mut Transactions);

/// Crawls that have ended but are not in the store yet.
pub struct UnsavedCrawls<'a>(pub(super) &'a mut Transactions);

/// Deletes finished crawls, with their tasks.
pub struct Pruning<'a>(pub(super) &'a mut Transactions);

/// The users' records, and the pages that they want.
pub struct Records<'a>(pub(super) &'a mut Transactions);

/// The pages that runs of watches check.
pub struct Runs<'a>(pub(super) &'a mut Transactions);

/// Queues ended tasks again.
pub struct Reopening<'a>(pub(super) &'a mut Transactions);

/// The queue of sites, and their rules.
pub struct Sites<'a>(pub(super) &'a mut Transactions);

/// The states of sites in trouble.
pub struct SiteStates<'a>(pub(super) &'a mut Transactions);

/// Reports for people on crawls, sites and tasks.
pub struct Reports<'a>(pub(super) &'a mut Transactions);

/// The counters of crawls, applications and the whole frontier.
pub struct Counts<'a>(pub(super) &'a mut Transactions);

/// Lets crawls that handed out nothing for a time hand out tasks again.
pub struct Releases<'a>(pub(super) &'a mut Transactions);

/// The crawls: their specs, states and counters.
pub struct Crawls<'a>(pub(super) &'a mut Transactions);

/// The tasks: fed, leased, completed, given back.
pub struct Tasks<'a>(pub(super) &'a mut Transactions);
