//! What the core asks of its process: messages, writes to the store, lines of the audit log. The core
//! carries out none of it. [`Core::commit`](crate::Core::commit) returns it as [`Committed`], and the
//! process does it then.

mod audited;
mod changes;

use std::sync::Arc;

use serde_json::Value;
use webfill_notifications::{Delivery, Standing};
use webfill_store::{Crawl, Page, Save, SiteState};
use webfill_wire::{CrawlKey, DispatcherToSupervisor};

pub use self::audited::{ActionEnd, Audited, AuditedAction};
pub use self::changes::{ChangesAnswer, ChangesAsked, ChangesFound, ChangesQuestion};
use crate::caller::Caller;
pub use crate::client::{Client, ControlPeer, HttpAsker, RequestPermit};
use crate::frontier::{Backfill, TaskId};
use crate::reload::ReloadAsked;

/// A message with its receiver.
#[derive(Debug, Clone, PartialEq)]
pub enum OutgoingMessage {
    ToSupervisor(Caller, DispatcherToSupervisor),
    /// The answer to a request.
    ToClient(Client, Value),
    /// A page with its final outcome, for the subscribers of its application's results.
    FinishedPage(FinishedPage),
    /// A notification about a crawl, for the subscribers of its application's notifications.
    Notification {
        app_id: String,
        notification: Value,
    },
}

/// A write to the store.
pub enum StoreWrite {
    Crawl(CrawlWrite),
    /// A page whose task ended without a worker that could save it.
    Page(Box<Page>),
    Backfill(BackfillWrite),
    /// A page that turns out to have been a block.
    TakeBack(Box<TakeBackWrite>),
    SiteStates(SiteStatesWrite),
}

/// The state of a crawl.
pub struct CrawlWrite {
    pub crawl: Box<Crawl>,
    /// Of a crawl that has ended: what the frontier crosses out once all of the end is saved.
    pub note: Option<i64>,
}

/// A block that takes the place of the page that it was taken for, and the records that this was for.
#[derive(Debug, Clone)]
pub struct TakeBackWrite {
    pub crawl: CrawlKey,
    pub task: TaskId,
    pub save: Save,
}

/// A stored page that is to be applied to a further record.
#[derive(Debug, Clone)]
pub struct BackfillWrite {
    pub crawl: CrawlKey,
    pub app_id: String,
    pub crawl_id: String,
    pub page: Backfill,
}

/// What has become of sites.
#[derive(Debug, Clone, Default)]
pub struct SiteStatesWrite {
    pub in_trouble: Vec<SiteState>,
    /// The names of sites that are open: their states are removed.
    pub open: Vec<String>,
    /// The number of the last state, for the frontier.
    pub last: i64,
}

/// The announcement of a page that has its final outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedPage {
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    /// Its crawl wants the body in results.
    pub body: bool,
}

/// What stands of extractions.
pub type StandingExtractions = Arc<Standing>;

/// Asks for a process that reads the seeds of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeederOrder {
    pub watch: String,
    pub run: u64,
}

/// What may leave, because a commit has made durable what it tells of. Only a commit hands it out, so
/// that after a failed one nothing leaves.
#[derive(Default)]
#[must_use = "the commit is told to nobody unless this is sent"]
pub struct Committed {
    pub outgoing: Vec<OutgoingMessage>,
    pub store_writes: Vec<StoreWrite>,
    /// What clients have done or were refused, to be written before the answers leave.
    pub audited: Vec<Audited>,
    /// Notifications to be delivered; what became of them is passed to
    /// [`Core::delivery_ended`](crate::Core::delivery_ended).
    pub deliveries: Vec<Delivery>,
    /// Changes of pages to be read from the store; the answers are passed to
    /// [`Core::changes_answered`](crate::Core::changes_answered).
    pub changes_asked: Vec<ChangesAsked>,
    /// Feeders of runs to be started.
    pub feeder_orders: Vec<FeederOrder>,
    /// Reloads to be begun; what was read is passed to
    /// [`Core::finish_reload`](crate::Core::finish_reload).
    pub reloads_asked: Vec<ReloadAsked>,
}
