//! Connects the dashboard to the dispatcher's loop. An action on the dashboard becomes a request with the visitor's
//! rights, like a request of any other client.

use async_trait::async_trait;
use serde_json::Value;
use webfill_api::Refusal;
use webfill_dashboard::{Fleet, Visitor};
use webfill_scheduler::control::ControlRequest;
use webfill_scheduler::requester::{Channel, SenderInfo};

use super::PendingRequests;
use crate::clock::SteadyClock;
use crate::health::Health;

pub(super) struct LoopClient {
    pending_requests: PendingRequests,
    health: Health,
    clock: SteadyClock,
}

impl LoopClient {
    pub(super) fn new(
        pending_requests: PendingRequests,
        health: Health,
        clock: SteadyClock,
    ) -> LoopClient {
        LoopClient {
            pending_requests,
            health,
            clock,
        }
    }

    async fn submit(&self, visitor: &Visitor, asked: ControlRequest) -> Result<Value, Refusal> {
        let who = SenderInfo {
            name: visitor.name.clone(),
            address: visitor.address.map(|address| address.to_string().into()),
            way: Channel::Dashboard,
        };
        let rights = visitor.rights.clone();
        let permit = self.pending_requests.acquire_permit(&who, 0)?;
        let Some(answer) = self.pending_requests.send(who, rights, asked, permit).await else {
            return Err(Refusal::new("$", "the dispatcher does not answer"));
        };
        match answer.get("error") {
            None => Ok(answer),
            Some(error) => {
                let text = |key: &str| error[key].as_str().unwrap_or_default();
                Err(Refusal::new(text("path"), text("message")))
            }
        }
    }

    fn check_frontier_open(&self) -> Result<(), Refusal> {
        match self.health.is_frontier_open() {
            true => Ok(()),
            false => {
                let why = "the frontier is being opened: try again in a few seconds";
                Err(Refusal::new("$", why))
            }
        }
    }
}

#[async_trait]
impl Fleet for LoopClient {
    async fn run_action(&self, visitor: &Visitor, action: Value) -> Result<Value, Refusal> {
        self.check_frontier_open()?;
        let asked = ControlRequest::Act(webfill_api::parse_action(action)?);
        self.submit(visitor, asked).await
    }

    async fn feed(&self, visitor: &Visitor, request: Value) -> Result<(), Refusal> {
        self.check_frontier_open()?;
        let asked = webfill_api::parse_object(request, self.clock.wall_ms())?;
        self.submit(visitor, asked.into()).await.map(drop)
    }
}
