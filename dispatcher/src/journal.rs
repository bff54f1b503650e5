//! The thread that carries the dispatcher's requests to the journal (the commits kept in the store for other
//! dispatchers), and the answers back. [`Member`](webfill_scheduler::journal::Member) decides what is requested, and
//! what an answer means.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use webfill_scheduler::journal::{DispatcherReport, JournalAnswer, JournalRequest, Lease, Survey};
use webfill_service::Fault;
use webfill_service::boot_clock::boot_ms;
use webfill_store::journal::JournalStore;
use webfill_store::{MongoUri, StoreError};

/// The name of the group that the dispatchers of a fleet belong to. There is only one group so far.
pub(crate) const GROUP: &str = "0";

/// How many bytes of the journal are read at once.
const READ_BYTES: usize = 4 << 20;

/// A report of the thread.
pub(crate) enum JournalReport {
    Answer(JournalAnswer),
    Surveyed(Survey),
    /// The state of the group could not be read for now.
    NotSurveyed(String),
    /// A request could not be carried out for now. It is made again.
    Away(String),
    /// The journal cannot be used; the dispatcher ends with this fault.
    Failed(Fault),
}

/// An order to the thread.
enum Order {
    Carry(JournalRequest),
    /// Remove the records with numbers lower than this.
    CutBefore(u64),
    /// Report about this dispatcher, and read the state of the group.
    Survey(DispatcherReport),
}

/// The handle of the thread that exchanges requests and answers with the journal. The thread ends when this value is
/// dropped.
pub(crate) struct JournalConnection {
    orders: UnboundedSender<Order>,
    reports: Receiver<JournalReport>,
}

impl JournalConnection {
    /// Starts the thread. `wake` is called after each report.
    pub(crate) fn start(
        uri: &MongoUri,
        wake: impl Fn(()) + Send + Sync + 'static,
    ) -> Result<JournalConnection, Fault> {
        let fault = |error| Fault::error(format!("cannot start the journal's thread: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(fault)?;
        let store = runtime
            .block_on(JournalStore::connect(uri, GROUP))
            .map_err(store_fault)?;
        let (orders, queue) = unbounded_channel();
        let (reporter, reports) = channel();
        let work = carry_requests(store, queue, reporter, Arc::new(wake));
        std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || runtime.block_on(work))
            .map_err(fault)?;
        Ok(JournalConnection { orders, reports })
    }

    /// Sends requests without waiting for their answers.
    pub(crate) fn send(&self, requests: Vec<JournalRequest>) {
        for request in requests {
            // The thread ends only when this value is dropped, so sending does not fail.
            let _ = self.orders.send(Order::Carry(request));
        }
    }

    /// Removes the records with lower numbers, without waiting for the end.
    pub(crate) fn cut_before(&self, number: u64) {
        let _ = self.orders.send(Order::CutBefore(number));
    }

    /// Reports about this dispatcher, and reads the state of the group.
    pub(crate) fn report_and_survey(&self, own: DispatcherReport) {
        let _ = self.orders.send(Order::Survey(own));
    }

    /// Renews the lease (the right to serve) while `work` runs, which may take longer than the lease. The journal's
    /// answers stay unread meanwhile.
    pub(crate) fn renew_during<R>(
        &self,
        epoch: u64,
        every: Duration,
        work: impl FnOnce() -> R,
    ) -> R {
        let (is_running, ended) = channel::<()>();
        let orders = self.orders.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(every) {
                    let sent_ms = boot_ms();
                    let renew = JournalRequest::Renew { epoch, sent_ms };
                    let _ = orders.send(Order::Carry(renew));
                }
            });
            let done = work();
            drop(is_running);
            done
        })
    }

    /// Waits for the next report, at most for this long.
    pub(crate) fn next_report(&self, within: Duration) -> Option<JournalReport> {
        match self.reports.recv_timeout(within) {
            Ok(report) => Some(report),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(JournalReport::Failed(Fault::error(
                "the journal's thread has stopped",
            ))),
        }
    }
}

/// Carries out requests concurrently, so that a long read does not delay the renewal of the lease.
async fn carry_requests(
    store: JournalStore,
    mut queue: UnboundedReceiver<Order>,
    reporter: Sender<JournalReport>,
    wake: Arc<dyn Fn(()) + Send + Sync>,
) {
    let store = Arc::new(store);
    while let Some(order) = queue.recv().await {
        let (store, reporter) = (Arc::clone(&store), reporter.clone());
        let wake = Arc::clone(&wake);
        tokio::spawn(async move {
            let report = match order {
                Order::Carry(request) => carry_out_and_report(&store, request).await,
                Order::CutBefore(number) => return cut_journal_before(&store, number).await,
                Order::Survey(own) => Some(report_and_survey(&store, own).await),
            };
            let Some(report) = report else {
                return;
            };
            // An error means that the loop has ended.
            let _ = reporter.send(report);
            wake(());
        });
    }
}

async fn carry_out_and_report(
    store: &JournalStore,
    request: JournalRequest,
) -> Option<JournalReport> {
    match carry_out(store, request).await {
        Ok(answer) => answer.map(JournalReport::Answer),
        Err(error) if error.is_retry() => Some(JournalReport::Away(error.to_string())),
        Err(error) => Some(JournalReport::Failed(store_fault(error))),
    }
}

async fn report_and_survey(store: &JournalStore, own: DispatcherReport) -> JournalReport {
    match store.survey(Some(own)).await {
        Ok(survey) => JournalReport::Surveyed(survey),
        Err(error) if error.is_retry() => JournalReport::NotSurveyed(error.to_string()),
        Err(error) => JournalReport::Failed(store_fault(error)),
    }
}

async fn cut_journal_before(store: &JournalStore, number: u64) {
    // An error is harmless, because the next cut removes these records too.
    if let Err(error) = store.cut_before(number).await {
        tracing::warn!(event = "journal_not_cut", %error, "old records of the journal are not removed");
    }
}

async fn carry_out(
    store: &JournalStore,
    request: JournalRequest,
) -> Result<Option<JournalAnswer>, StoreError> {
    Ok(Some(match request {
        JournalRequest::Append(records) => {
            let first = records.first().map_or(0, |record| record.number);
            let count = records.len() as u64;
            let answer = store.append(records).await?;
            JournalAnswer::Appended {
                first,
                count,
                answer,
            }
        }
        JournalRequest::Read { after } => {
            let page = store.read(after, READ_BYTES).await?;
            let lease: Lease = store.lease().await?;
            JournalAnswer::Read {
                records: page.records,
                is_end: page.is_end,
                cut_before: page.cut_before,
                lease,
            }
        }
        JournalRequest::Take {
            seen,
            holder,
            sent_ms,
        } => {
            let epoch = store.take_lease(seen, holder).await?;
            JournalAnswer::Taken { epoch, sent_ms }
        }
        JournalRequest::Renew { epoch, sent_ms } => {
            let is_held = store.renew_lease(epoch).await?;
            JournalAnswer::Renewed {
                epoch,
                is_held,
                sent_ms,
            }
        }
        JournalRequest::Free { epoch } => {
            store.release_lease(epoch).await?;
            return Ok(None);
        }
    }))
}

pub(crate) fn store_fault(error: StoreError) -> Fault {
    Fault::error(format!("the journal of the dispatchers: {error}"))
}
