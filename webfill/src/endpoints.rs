//! Derives the sockets of a dispatcher from the one address that a user gives.

use webfill_dispatcher::Endpoints;
use webfill_service::Fault;

/// Parses a list of dispatchers' addresses, separated by commas. Returns the endpoints of each; one of the dispatchers
/// serves.
pub fn endpoints_of_list(list: &str) -> Result<Vec<Endpoints>, Fault> {
    list.split(',')
        .map(|tasks| endpoints_from(tasks.trim()))
        .collect()
}

/// All endpoints of a dispatcher, derived from that of its tasks socket.
pub fn endpoints_from(tasks: &str) -> Result<Endpoints, Fault> {
    let wrong = || {
        Fault::usage(format!(
            "--dispatcher `{tasks}`: expected tcp://HOST:PORT, with a port from 1 to 65532 (the dispatcher also uses the next three)"
        ))
    };
    let address = tasks.strip_prefix("tcp://").ok_or_else(wrong)?;
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let port = port
        .parse()
        .ok()
        .filter(|port| (1..=u16::MAX - 3).contains(port))
        .ok_or_else(wrong)?;
    Ok(Endpoints::tcp(host, port))
}
