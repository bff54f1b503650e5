//! Classifies the errors of the driver and the server by what the caller does next.

use mongodb::error::{Error, ErrorKind};

use crate::error::StoreError;

/// Why a command or an entry failed.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// The server cannot be used at present. The text is the reason.
    Unavailable(String),
    /// A document with this key already exists. The text is the server's message.
    DuplicateKey(String),
    /// The entry cannot be stored. The text is the reason.
    InvalidEntry(String),
    /// The store as a whole cannot be used. The text is the reason and the remedy.
    Unusable(String),
}

/// The server's codes of transient errors: it is starting, stopping, electing a primary, or short of time or disk
/// space.
const TRANSIENT_CODES: [i32; 23] = [
    6, 7, 50, 64, 79, 89, 91, 100, 112, 133, 134, 189, 202, 246, 262, 9001, 10107, 11600, 11602,
    13435, 13436, 14031, 11601,
];

/// After errors with these codes, the same command may succeed at once: another member has become the primary, or
/// another client has just created the same document.
const RETRY_AT_ONCE_CODES: [i32; 11] = [
    6,
    7,
    89,
    91,
    189,
    9001,
    10107,
    11600,
    13435,
    13436,
    DUPLICATE_KEY,
];

pub(super) const DUPLICATE_KEY: i32 = 11000;
const USER_NOT_FOUND: i32 = 11;
const UNAUTHORIZED: i32 = 13;
const AUTHENTICATION_FAILED: i32 = 18;

/// The code of errors that have no code of their own.
const UNKNOWN_ERROR: i32 = 8;

/// The name of the storage engine, which all of its errors contain.
const STORAGE_ENGINE: &str = "WiredTiger";

/// The most characters of an external message that an error message quotes.
const QUOTED: usize = 300;

impl Fault {
    /// The error of a call that has failed as a whole, by what the caller can do next.
    pub(super) fn into_error(self, store: &str) -> StoreError {
        let store = store.to_owned();
        match self {
            Fault::Unavailable(reason) | Fault::DuplicateKey(reason) => {
                StoreError::Retry { store, reason }
            }
            Fault::Unusable(reason) => StoreError::Fatal { store, reason },
            Fault::InvalidEntry(reason) => StoreError::Entry {
                entry: format!("an entry of {store}"),
                reason,
            },
        }
    }

    /// Whether another client has inserted the same key first.
    pub(super) fn is_duplicate_key(&self) -> bool {
        matches!(self, Fault::DuplicateKey(_))
    }

    /// The fault for one failed statement of a command.
    pub(super) fn from_statement_error(code: i32, message: &str) -> Fault {
        if is_transient(code, message) {
            return Fault::Unavailable(shorten_to_line(message));
        }
        Fault::InvalidEntry(format!(
            "the server refuses it: {}",
            shorten_to_line(message)
        ))
    }
}

/// Whether the error is temporary. Errors of the storage engine have no code of their own. They never concern the
/// document that is written: a full disk, for example, refuses any document.
fn is_transient(code: i32, message: &str) -> bool {
    TRANSIENT_CODES.contains(&code) || code == UNKNOWN_ERROR && message.contains(STORAGE_ENGINE)
}

/// Whether the command may succeed if it is retried immediately, with a new server selection.
pub(super) fn is_retryable_at_once(error: &Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => true,
        ErrorKind::Command(command) => RETRY_AT_ONCE_CODES.contains(&command.code),
        _ => false,
    }
}

/// Converts the error of a temporary file.
impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Unusable(error.to_string())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        match error.kind.as_ref() {
            ErrorKind::Authentication { message, .. } => {
                Fault::Unusable(unknown_user_message(message))
            }
            ErrorKind::Command(command) => classify_command_error(command.code, &command.message),
            ErrorKind::ServerSelection { message, .. } => {
                classify_connection_error(&errors_by_server(message))
            }
            kind @ (ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. }) => {
                classify_connection_error(&kind.to_string())
            }
            ErrorKind::DnsResolve { message, .. } => Fault::Unavailable(format!(
                "its address cannot be looked up: {}",
                shorten_to_line(message)
            )),
            ErrorKind::InvalidTlsConfig { message, .. } => Fault::Unusable(format!(
                "TLS cannot be set up: {}; check tlsCAFile and tlsCertificateKeyFile",
                shorten_to_line(message)
            )),
            ErrorKind::IncompatibleServer { message, .. } => Fault::Unusable(format!(
                "the server is too old or too new: {}",
                shorten_to_line(message)
            )),
            kind => Fault::Unusable(shorten_to_line(&kind.to_string())),
        }
    }
}

fn classify_command_error(code: i32, message: &str) -> Fault {
    // The rest of the message is left out, because it repeats the command with all of its content.
    let message = shorten_to_line(
        message
            .split(" to execute command")
            .next()
            .unwrap_or(message),
    );
    match code {
        DUPLICATE_KEY => Fault::DuplicateKey(message),
        UNAUTHORIZED => Fault::Unusable(format!(
            "the user may not do this: grant the role readWrite on the database, or check user \
             and authSource in the URI ({message})"
        )),
        AUTHENTICATION_FAILED | USER_NOT_FOUND => Fault::Unusable(unknown_user_message(&message)),
        code if is_transient(code, &message) => Fault::Unavailable(message),
        _ => Fault::Unusable(format!("the server refuses a command: {message}")),
    }
}

fn unknown_user_message(message: &str) -> String {
    format!(
        "the server knows no such user, or the password is wrong: check user, password and \
         authSource in the URI; with a certificate, its subject must be a user in $external \
         ({})",
        shorten_to_line(message)
    )
}

/// Classifies a failed connection by the text of the error, because there are no codes.
fn classify_connection_error(message: &str) -> Fault {
    let has = |word: &str| message.contains(word);
    // The TLS library appends a link to its manual.
    let reason = shorten_to_line(message.split(": https://").next().unwrap_or(message));
    if has("UnknownIssuer") || has("BadSignature") {
        return Fault::Unusable(format!(
            "the server's certificate is not from the authority in tlsCAFile: name the file of \
             the server's authority there ({reason})"
        ));
    }
    if has("NotValidForName") {
        return Fault::Unusable(format!(
            "the server's certificate is for another name than the host in the URI: write the \
             name that is in the certificate ({reason})"
        ));
    }
    if has("invalid peer certificate") {
        return Fault::Unusable(format!("the server's certificate is refused ({reason})"));
    }
    let hint = if has("close_notify") || has("fatal alert") {
        "; if this stays so, the server may want a certificate from its own authority: name one \
         in tlsCertificateKeyFile"
    } else if has("end of file") || has("reset by peer") || has("fill whole buffer") {
        "; if this stays so, the server may want TLS: add tls=true to the URI"
    } else {
        ""
    };
    Fault::Unavailable(format!("no server answers: {reason}{hint}"))
}

/// The error of each server, extracted from the driver's description of the whole deployment.
fn errors_by_server(message: &str) -> String {
    let of_server = |part: &str| {
        let (address, rest) = part.split_once(',')?;
        let reason = rest.split_once("Error: Kind: ")?.1;
        let reason = reason.split(", labels: ").next().unwrap_or(reason);
        Some(format!("{address}: {reason}"))
    };
    let servers: Vec<String> = message.split("Address: ").filter_map(of_server).collect();
    match servers.is_empty() {
        true => message.to_owned(),
        false => servers.join("; "),
    }
}

/// The text on one line, truncated to [`QUOTED`] characters.
fn shorten_to_line(text: &str) -> String {
    let mut line: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(QUOTED)
        .collect();
    if line.len() < text.len() {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_no_fault_of_the_document() {
        let full = "WiredTigerIdIndex::_insert: index: _id_; uri: table:index-43 28: No space left \
                    on device";
        let fault = Fault::from_statement_error(8, full);
        assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
        let fault = classify_command_error(8, full);
        assert!(matches!(fault, Fault::Unavailable(_)), "{fault:?}");
        let fault = Fault::from_statement_error(121, "Document failed validation");
        assert!(matches!(fault, Fault::InvalidEntry(_)), "{fault:?}");
    }
}
