//! The core's effects: messages, writes to the store, lines of the audit log. The core carries out none of them:
//! [`Core::commit`](crate::Core::commit) returns them as [`Committed`], and the process carries them out.

mod audited;
mod changes;

use std::sync::Arc;

use serde_json::Value;
use webfill_notifications::{Delivery, Standing};
use webfill_store::{Crawl, Page, Save, SiteState};
use webfill_wire::{CrawlKey, DispatcherToSupervisor};

pub use self::audited::{ActionEnd, Audited, AuditedAction};
pub use self::changes::{ChangesAnswer, ChangesQuestion, ChangesRequest, ChangesResult};
use crate::caller::Caller;
pub use crate::client::{Client, ControlPeer, HttpAsker, RequestPermit};
use crate::frontier::{Backfill, TaskId};
use crate::reload::ReloadRequest;

/// A message that the process sends once it may leave, with its receiver.
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

/// A write to the store, which the process carries out.
pub enum StoreWrite {
    Crawl(CrawlWrite),
    /// A page whose task ended without a worker that could save it.
    Page(Box<Page>),
    Backfill(BackfillWrite),
    /// Replaces a page that turned out to be a block page.
    TakeBack(Box<RetractionWrite>),
    SiteStates(SiteStatesWrite),
}

/// A crawl's state to be written to the store.
pub struct CrawlWrite {
    pub crawl: Box<Crawl>,
    /// For a crawl that has ended: the number of the frontier's note that its end is not saved yet. The note is removed
    /// once it is.
    pub note: Option<i64>,
}

/// The block page that replaces a supposed page, and the records of that page.
#[derive(Debug, Clone)]
pub struct RetractionWrite {
    pub crawl: CrawlKey,
    pub task: TaskId,
    pub save: Save,
}

/// A stored page to be applied to a further record.
#[derive(Debug, Clone)]
pub struct BackfillWrite {
    pub crawl: CrawlKey,
    pub app_id: String,
    pub crawl_id: String,
    pub page: Backfill,
}

/// New states of sites to be written to the store.
#[derive(Debug, Clone, Default)]
pub struct SiteStatesWrite {
    pub in_trouble: Vec<SiteState>,
    /// The names of open sites, whose stored states are removed.
    pub open: Vec<String>,
    /// The number of the last of these states, to be passed to the frontier once they are written.
    pub last: i64,
}

/// The announcement of a page that has its final outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedPage {
    pub app_id: String,
    pub crawl_id: String,
    pub url: String,
    /// Whether the crawl wants the body in results.
    pub body: bool,
}

/// The current alerts about mappings that extract less than before.
pub type StandingExtractions = Arc<Standing>;

/// An order to start a process that reads the seeds of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeederOrder {
    pub watch: String,
    pub run: u64,
}

/// Effects that may take place now, because a commit has made the state behind them durable. Only a commit creates
/// this value, so a failed one has no effects.
#[derive(Default)]
#[must_use = "nobody hears of the commit unless this is sent"]
pub struct Committed {
    /// The changes of each commit for the journal, if there is one. They must be in the journal before any other effect
    /// takes place.
    pub changes: Vec<Vec<u8>>,
    pub outgoing: Vec<OutgoingMessage>,
    pub store_writes: Vec<StoreWrite>,
    /// Actions and refusals of clients, to be logged before the answers leave.
    pub audited: Vec<Audited>,
    /// Notifications to deliver; the results are passed to [`Core::on_delivery_ended`](crate::Core::on_delivery_ended).
    pub deliveries: Vec<Delivery>,
    /// Changes of pages to read from the store; the answers are passed to
    /// [`Core::on_changes_answered`](crate::Core::on_changes_answered).
    pub changes_asked: Vec<ChangesRequest>,
    /// Feeders (processes that read the seeds of a run) to start.
    pub feeder_orders: Vec<FeederOrder>,
    /// Reloads to begin; the files that were read are passed to [`Core::finish_reload`](crate::Core::finish_reload).
    pub reloads_asked: Vec<ReloadRequest>,
}
