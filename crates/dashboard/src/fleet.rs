//! The fleet's interface for the dashboard, and the visitor on whose behalf it is called.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use webfill_api::Refusal;
use webfill_wire::keys::Rights;

/// The visitor of the dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    /// The name of the login token; `None` if the dashboard requires no token.
    pub name: Option<Arc<str>>,
    pub address: Option<IpAddr>,
    pub rights: Rights,
}

impl Visitor {
    /// The dashboard itself as a visitor. It reads for all visitors, and shows each only what their rights permit.
    pub fn dashboard() -> Visitor {
        Visitor {
            name: None,
            address: None,
            rights: Rights::ALL,
        }
    }
}

/// A running fleet, as the dashboard calls it.
#[async_trait]
pub trait Fleet: Send + Sync {
    /// Carries out an action of the public JSON interface (`status`, `sites`, `stop`, ...) with the visitor's rights.
    /// The fleet's audit log records effects and refusals.
    async fn run_action(&self, visitor: &Visitor, action: Value) -> Result<Value, Refusal>;

    /// Sends a crawl request to the fleet, with the visitor's rights. The audit log records it.
    async fn feed(&self, visitor: &Visitor, request: Value) -> Result<(), Refusal>;
}
