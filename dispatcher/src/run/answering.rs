//! Sends the answers to requests on a separate thread, which writes the audit log before. So every answered action is
//! in the log, and the loop does not wait for a second disk write after its commit.
//!
//! Answers are sent in the order of their commits, with or without entries in the log, because a client may have
//! several requests in progress. Commits that arrive meanwhile share one write and one sync. At most [`MOST_WAITING`]
//! commits wait; if the disk is slower than the loop, the loop waits here and takes no further requests.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use webfill_scheduler::effects::Audited;
use webfill_scheduler::effects::Client;
use webfill_service::Fault;
use webfill_wire::socket::{FrameAttachment, Outbox};

use super::sockets::{CONTROL, FEEDERS};
use crate::audit::AuditLog;
use crate::http::PendingRequests;
use crate::permits::AnswerPermit;

/// The maximum number of commits whose answers wait for the log.
const MOST_WAITING: usize = 16;

/// How often to retry the log after a failure, while nothing is added to it.
const TRIED_EVERY: Duration = Duration::from_millis(500);

/// The answers that may be sent after a commit, and the log entries that must be written before.
#[derive(Default)]
pub(super) struct CommittedAnswers {
    pub(super) audited: Vec<Audited>,
    pub(super) answers: Vec<(Client, Value)>,
}

/// How answers are sent: over sockets and HTTP.
pub(super) struct AnswerChannels {
    pub(super) outbox: Outbox,
    pub(super) pending_requests: PendingRequests,
}

impl AnswerChannels {
    fn send_answer(&self, client: Client, answer: Value) {
        match client {
            Client::Socket(one) => {
                let frame = answer.to_string().into_bytes();
                let held = one.permit.map(|permit| {
                    permit.note_answer(frame.len());
                    Box::new(AnswerPermit(permit)) as Box<dyn FrameAttachment>
                });
                self.outbox
                    .send_to_with_attachment(CONTROL, &one.peer, frame, held);
            }
            Client::Feeder(peer) => {
                let frame = answer.to_string().into_bytes();
                self.outbox.send_to(FEEDERS, &peer, frame);
            }
            Client::Http(asker) => self.pending_requests.answer(asker.number, answer),
        }
    }
}

/// The loop's handle for sending answers.
pub(super) enum AnswerSender {
    /// There is no audit log, so answers are sent immediately and without a thread.
    AtOnce(AnswerChannels),
    Noted {
        sender: SyncSender<CommittedAnswers>,
        thread: JoinHandle<()>,
    },
}

impl AnswerSender {
    pub(super) fn start(
        log: Option<AuditLog>,
        ways: AnswerChannels,
    ) -> Result<AnswerSender, Fault> {
        let Some(log) = log else {
            return Ok(AnswerSender::AtOnce(ways));
        };
        let (sender, commits) = mpsc::sync_channel(MOST_WAITING);
        let thread = std::thread::Builder::new()
            .name("answering".into())
            .spawn(move || answer_all(log, &ways, &commits))
            .map_err(|error| Fault::error(format!("cannot start to answer: {error}")))?;
        Ok(AnswerSender::Noted { sender, thread })
    }

    pub(super) fn send(&self, commit: CommittedAnswers) {
        match self {
            AnswerSender::AtOnce(ways) => commit
                .answers
                .into_iter()
                .for_each(|(client, answer)| ways.send_answer(client, answer)),
            AnswerSender::Noted { sender, .. } => {
                if !commit.audited.is_empty() || !commit.answers.is_empty() {
                    sender
                        .send(commit)
                        .expect("the thread ends only with this handle");
                }
            }
        }
    }

    /// Waits until all answers are sent.
    pub(super) fn finish(self) {
        if let AnswerSender::Noted { sender, thread } = self {
            drop(sender);
            // A panic of the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn answer_all(mut log: AuditLog, ways: &AnswerChannels, commits: &Receiver<CommittedAnswers>) {
    loop {
        match commits.recv_timeout(TRIED_EVERY) {
            Ok(first) => {
                let all = merge_pending(first, commits);
                log.write(all.audited);
                for (client, answer) in all.answers {
                    ways.send_answer(client, answer);
                }
            }
            Err(RecvTimeoutError::Timeout) => log.write(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Merges a commit with later ones that have arrived already, so that they share one write.
fn merge_pending(
    first: CommittedAnswers,
    commits: &Receiver<CommittedAnswers>,
) -> CommittedAnswers {
    let since = commits.try_iter().take(MOST_WAITING);
    since.fold(first, |mut all, next| {
        all.audited.extend(next.audited);
        all.answers.extend(next.answers);
        all
    })
}
