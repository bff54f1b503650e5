//! Looks host names up with the system's resolver: hosts file, name servers, search domains, and whatever else
//! `/etc/nsswitch.conf` names.

use std::ffi::CStr;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use super::refusal::LookupError;

/// Looks a name up, and blocks until there is an answer or the system gives up. The addresses have
/// port 0; there is at least one.
pub(super) fn look_up(host: &str) -> Result<Vec<SocketAddr>, LookupError> {
    match (host, 0).to_socket_addrs() {
        Ok(found) => {
            let addresses: Vec<SocketAddr> = found.collect();
            match addresses.is_empty() {
                true => Err(LookupError::NotFound),
                false => Ok(addresses),
            }
        }
        Err(error) if is_not_found(&error) => Err(LookupError::NotFound),
        Err(error) => Err(LookupError::Failed(error)),
    }
}

/// Whether the resolver answered that the name does not exist or has no address. The standard library hides the error
/// code, but its message contains the system's text for the code.
fn is_not_found(error: &io::Error) -> bool {
    let said = error.to_string();
    [libc::EAI_NONAME, libc::EAI_NODATA]
        .iter()
        .any(|code| said.ends_with(&error_text(*code)))
}

fn error_text(code: i32) -> String {
    // SAFETY: for any code, the function returns a string that is never freed.
    #[allow(unsafe_code)]
    let text = unsafe { CStr::from_ptr(libc::gai_strerror(code)) };
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_file_is_read() {
        let found = look_up("localhost").unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback()));
    }

    #[test]
    fn a_missing_name_is_distinguished_from_a_failure() {
        // The name is longer than a name server accepts, so it is not looked up on the network.
        let missing = look_up(&"x".repeat(300)).unwrap_err();
        assert!(matches!(missing, LookupError::NotFound), "{missing}");
        assert!(!is_not_found(&io::Error::other(error_text(
            libc::EAI_AGAIN
        ))));
    }
}
