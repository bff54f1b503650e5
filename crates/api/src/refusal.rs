//! Why a message was refused, and the answer to the client.

use serde_json::{Value, json};

/// A refusal: nothing of the message was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The JSON path of the fault within the message; `$` is the message itself.
    pub path: String,
    /// The fault at that path: one clause, in lower case, without a full stop.
    pub message: String,
    /// Whether the same message may be accepted later, because nothing is wrong with the message itself.
    pub retry: bool,
}

impl Refusal {
    pub fn new(path: &str, message: impl ToString) -> Refusal {
        Refusal {
            path: path.to_owned(),
            message: message.to_string(),
            retry: false,
        }
    }

    /// The refusal of a message that may be accepted later.
    pub fn temporary(path: &str, message: impl ToString) -> Refusal {
        Refusal {
            retry: true,
            ..Refusal::new(path, message)
        }
    }

    /// The answer to the client, as JSON: the path of the fault, and the reason.
    pub fn to_answer(&self) -> Value {
        let mut answer = json!({"error": {"path": self.path, "message": self.message}});
        if self.retry {
            answer["error"]["retry"] = true.into();
        }
        answer
    }
}
