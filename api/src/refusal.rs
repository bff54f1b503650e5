//! Why a message was refused, and how a client is told.

use serde_json::{Value, json};

/// A refusal: nothing of the message was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The JSON path of the fault within the message; `$` is the message itself.
    pub path: String,
    /// What is wrong there: one clause, in lower case, without a full stop.
    pub message: String,
}

impl Refusal {
    pub fn new(path: &str, message: impl ToString) -> Refusal {
        Refusal {
            path: path.to_owned(),
            message: message.to_string(),
        }
    }

    /// The answer to the client.
    pub fn answer(&self) -> Value {
        json!({"error": {"path": self.path, "message": self.message}})
    }
}
