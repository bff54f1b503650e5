//! The fleet, as seen by the dashboard: its actions go to the dispatcher's loop with the visitor's rights, like those
//! of any other client.

use async_trait::async_trait;
use serde_json::Value;
use webfill_api::Refusal;
use webfill_dashboard::{Fleet, Visitor};
use webfill_scheduler::control::Asked;
use webfill_scheduler::requester::{Way, Who};

use super::PendingRequests;
use crate::clock::SteadyClock;
use crate::health::Health;

pub(super) struct AskLoop {
    pending_requests: PendingRequests,
    health: Health,
    clock: SteadyClock,
}

impl AskLoop {
    pub(super) fn new(
        pending_requests: PendingRequests,
        health: Health,
        clock: SteadyClock,
    ) -> AskLoop {
        AskLoop {
            pending_requests,
            health,
            clock,
        }
    }

    async fn request(&self, visitor: &Visitor, asked: Asked) -> Result<Value, Refusal> {
        let who = Who {
            name: visitor.name.clone(),
            address: visitor.address.map(|address| address.to_string().into()),
            way: Way::Dashboard,
        };
        let rights = visitor.rights.clone();
        let permit = self.pending_requests.admit(&who, 0)?;
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

    fn needs_frontier(&self) -> Result<(), Refusal> {
        match self.health.is_open() {
            true => Ok(()),
            false => {
                let why = "the frontier is being opened: try again in a few seconds";
                Err(Refusal::new("$", why))
            }
        }
    }
}

#[async_trait]
impl Fleet for AskLoop {
    async fn ask(&self, visitor: &Visitor, action: Value) -> Result<Value, Refusal> {
        self.needs_frontier()?;
        let asked = Asked::Act(webfill_api::parse_action(action)?);
        self.request(visitor, asked).await
    }

    async fn feed(&self, visitor: &Visitor, request: Value) -> Result<(), Refusal> {
        self.needs_frontier()?;
        let asked = webfill_api::parse_object(request, self.clock.wall_ms())?;
        self.request(visitor, asked.into()).await.map(drop)
    }
}
