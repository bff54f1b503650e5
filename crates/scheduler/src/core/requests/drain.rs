//! Drains on request: a client makes one or all supervisors finish their fetches in flight, return their other tasks,
//! and exit. The answer is sent when they have left. The dispatcher keeps running.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use webfill_api::Refusal;
use webfill_wire::DispatcherToSupervisor;

use super::reply::Reply;
use crate::core::context::Context;
use crate::effects::{Client, OutgoingMessage};

/// The maximum number of drains in progress.
const MOST_DRAINS: usize = 1_000;

/// Requested drains that have not ended.
#[derive(Debug, Default)]
pub(in crate::core) struct Drains(Vec<Drain>);

#[derive(Debug)]
struct Drain {
    client: Client,
    uuid: Option<String>,
    awaited: BTreeSet<String>,
    drained: Vec<String>,
    lost: Vec<String>,
}

impl Drain {
    fn to_answer(&self) -> Value {
        let mut answer = json!({"action": "drain", "drained": self.drained, "lost": self.lost});
        if let Some(uuid) = &self.uuid {
            answer["uuid"] = uuid.as_str().into();
        }
        answer
    }
}

/// Why a drained supervisor is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::core) enum DrainEnd {
    Left,
    Lost,
}

impl Drains {
    pub(in crate::core) fn is_draining(&self, supervisor: &str) -> bool {
        self.0
            .iter()
            .any(|drain| drain.awaited.contains(supervisor))
    }
}

impl Drains {
    /// Drains the supervisor of this name, or all connected ones.
    pub(super) fn drain_supervisors(
        &mut self,
        cx: &mut Context,
        client: &Client,
        supervisor: Option<String>,
        uuid: Option<String>,
    ) -> Reply {
        if self.0.len() >= MOST_DRAINS {
            return Refusal::new("$", "too many drains in progress: try again later").into();
        }
        let connected: BTreeSet<String> = {
            let connected = cx.dispatch.fleet.connected_lanes();
            connected.map(|(name, _)| name.to_owned()).collect()
        };
        let awaited = match supervisor {
            None => connected,
            Some(name) if connected.contains(&name) => BTreeSet::from([name]),
            Some(name) => {
                let connected: Vec<String> = connected.into_iter().collect();
                let why = match connected.is_empty() {
                    true => format!("supervisor {name} is not connected, and no other is"),
                    false => format!(
                        "supervisor {name} is not connected; connected: {}",
                        connected.join(", ")
                    ),
                };
                return Refusal::new("$.supervisor", why).into();
            }
        };
        awaited.iter().for_each(|name| send_drain(cx, name));
        let drain = Drain {
            client: client.clone(),
            uuid,
            awaited,
            drained: Vec::new(),
            lost: Vec::new(),
        };
        if drain.awaited.is_empty() {
            return Reply::Now(drain.to_answer());
        }
        self.0.push(drain);
        Reply::Later
    }

    /// Notes that a supervisor has gone, and answers the drains that waited only for it.
    pub(in crate::core) fn on_supervisor_gone(
        &mut self,
        cx: &mut Context,
        supervisor: &str,
        gone: DrainEnd,
    ) {
        for drain in &mut self.0 {
            if drain.awaited.remove(supervisor) {
                match gone {
                    DrainEnd::Left => drain.drained.push(supervisor.to_owned()),
                    DrainEnd::Lost => drain.lost.push(supervisor.to_owned()),
                }
            }
        }
        let ended = self.0.extract_if(.., |drain| drain.awaited.is_empty());
        for drain in ended {
            let answer = drain.to_answer();
            cx.outgoing
                .push(OutgoingMessage::ToClient(drain.client, answer));
        }
    }
}

/// Asks a supervisor to drain. Repeated when it reconnects, because the message may have been lost.
pub(in crate::core) fn send_drain(cx: &mut Context, supervisor: &str) {
    tracing::info!(
        event = "supervisor_drains",
        supervisor,
        "draining a supervisor"
    );
    cx.dispatch.drain_supervisor(supervisor);
    if let Some((peer, ..)) = cx.dispatch.fleet.next_message_address(supervisor) {
        cx.send_to_supervisor(&peer, DispatcherToSupervisor::Drain);
    }
}
