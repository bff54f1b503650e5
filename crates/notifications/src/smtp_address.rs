//! Parses the address of the mail server as it is written in the settings.

use std::net::IpAddr;

/// How the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// TLS from the first byte: `smtps://`.
    Tls,
    /// TLS before any other command: `smtp://`.
    StartTls,
    /// No encryption, which is only for servers on this machine: `plain://`.
    Plain,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SmtpAddress {
    pub(crate) secrecy: Secrecy,
    pub(crate) host: String,
    pub(crate) port: u16,
}

const FORM: &str =
    "expected smtps://HOST[:PORT], smtp://HOST[:PORT] (STARTTLS), or plain://127.0.0.1[:PORT]";

impl SmtpAddress {
    pub(crate) fn parse(text: &str) -> Result<SmtpAddress, String> {
        let (scheme, authority) = text.split_once("://").ok_or(FORM)?;
        let (secrecy, port) = match scheme {
            "smtps" => (Secrecy::Tls, 465),
            "smtp" => (Secrecy::StartTls, 587),
            "plain" => (Secrecy::Plain, 25),
            _ => return Err(FORM.into()),
        };
        let authority = authority.trim_end_matches('/');
        // A final `]` ends an IPv6 address, so no port follows.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, text)) if !text.ends_with(']') => (host, text.parse().map_err(|_| FORM)?),
            _ => (authority, port),
        };
        let host = host.trim_matches(['[', ']']);
        if host.is_empty() || host.contains(['/', '@', '?', ' ']) {
            return Err(FORM.into());
        }
        if secrecy == Secrecy::Plain && !is_this_machine(host) {
            return Err(
                "plain:// is only for an address of this machine, such as 127.0.0.1".into(),
            );
        }
        Ok(SmtpAddress {
            secrecy,
            host: host.to_owned(),
            port,
        })
    }
}

/// Whether the host is a loopback address. A name does not count, because it may resolve to another machine.
fn is_this_machine(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_the_encryption_of_the_connection() {
        let read = |text: &str| {
            let address = SmtpAddress::parse(text).unwrap();
            (address.secrecy, address.host, address.port)
        };
        assert_eq!(
            read("smtps://mx.example"),
            (Secrecy::Tls, "mx.example".into(), 465)
        );
        assert_eq!(
            read("smtp://mx.example:2525/"),
            (Secrecy::StartTls, "mx.example".into(), 2525)
        );
        assert_eq!(read("plain://[::1]"), (Secrecy::Plain, "::1".into(), 25));
        assert_eq!(
            read("plain://127.0.0.1:2500"),
            (Secrecy::Plain, "127.0.0.1".into(), 2500)
        );
        for wrong in [
            "mx.example",
            "http://mx.example",
            "smtp://",
            "smtp://a:b",
            "smtp://user@mx.example",
            "plain://mx.example",
            "plain://localhost",
            "plain://10.0.0.1",
            "smtp://a/b",
        ] {
            assert!(SmtpAddress::parse(wrong).is_err(), "{wrong}");
        }
    }
}
