//! What the dashboard needs of a fleet, and on whose behalf it asks.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use webfill_api::Refusal;
use webfill_wire::keys::Rights;

/// Who looks at the dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    /// The name of the token; there is none where no token is asked for.
    pub name: Option<Arc<str>>,
    pub address: Option<IpAddr>,
    pub rights: Rights,
}

impl Visitor {
    /// The dashboard itself, which reads for all visitors and shows to each what its rights permit.
    pub fn dashboard() -> Visitor {
        Visitor {
            name: None,
            address: None,
            rights: Rights::ALL,
        }
    }
}

/// A running fleet.
#[async_trait]
pub trait Fleet: Send + Sync {
    /// Carries out an action of the public language (`status`, `sites`, `stop`, ...) with the visitor's rights. What it
    /// does, or is refused, is in the fleet's audit log.
    async fn ask(&self, visitor: &Visitor, action: Value) -> Result<Value, Refusal>;

    /// Feeds a crawl request, in the same way.
    async fn feed(&self, visitor: &Visitor, request: Value) -> Result<(), Refusal>;
}
