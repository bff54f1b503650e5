//! Serves HTTP with limits on the number of connections in total and per address, on the time that a client may take to
//! send and to read, and on the length of bodies. For other machines it uses TLS, and it identifies clients by tokens
//! ([`Protection`]). An implementation of [`RequestHandler`] provides the answers.
//!
//! One thread serves all connections with asynchronous I/O.

pub mod body;
mod connections;
mod listener;
mod protection;
mod tls;
mod tokens;
mod unread;
mod wrong_tokens;

pub use self::connections::note_known_client;
pub use self::listener::{Answer, AnswerBody, Peer, RequestHandler, complete_body, start};
pub use self::protection::{HttpFiles, Protection, SharedProtection};
pub use self::tokens::{Bearer, TokenDigest, Tokens};
pub use self::wrong_tokens::{PERIOD, WrongTokens};
