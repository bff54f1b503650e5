//! Serves HTTP within limits: how many connections there are, of all and of one address, how long a client may
//! take to send and to read, and how long bodies are. Beyond this machine it speaks TLS and knows its clients
//! by tokens ([`Protection`]). What is answered is up to whoever [`Answering`] is.
//!
//! One thread serves all connections; it only reads and waits.

pub mod body;
mod listener;
mod places;
mod protection;
mod tls;
mod tokens;
mod unread;
mod wrong_tokens;

pub use self::listener::{Answer, AnswerBody, Answering, Peer, start, whole};
pub use self::places::note_known_client;
pub use self::protection::{HttpFiles, InForce, Protection};
pub use self::tokens::{Bearer, TokenDigest, Tokens};
pub use self::wrong_tokens::{PERIOD, WrongTokens};
