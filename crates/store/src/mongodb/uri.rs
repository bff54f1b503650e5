//! The URI of a MongoDB database. Its credentials and options are never shown.

use std::collections::BTreeSet;
use std::fmt;

use mongodb::options::{ConnectionString, HostInfo, ServerAddress};

/// The name of the database if the URI has none.
const DEFAULT_DATABASE: &str = "webfill";

/// A valid connection string. No connection is made yet.
#[derive(Clone, PartialEq, Eq)]
pub struct MongoUri {
    /// The whole URI, with credentials.
    text: String,
    database: String,
}

/// Which database a URI names: the servers and the database, without user and options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabasePlace {
    hosts: BTreeSet<String>,
    database: String,
}

/// Options, in lower case, that only affect how a client connects to the named servers. Any other option may name files
/// or further servers.
const CONNECTING_OPTIONS: [&str; 14] = [
    "authsource",
    "replicaset",
    "tls",
    "ssl",
    "directconnection",
    "readpreference",
    "retryreads",
    "retrywrites",
    "w",
    "appname",
    "maxpoolsize",
    "connecttimeoutms",
    "sockettimeoutms",
    "serverselectiontimeoutms",
];

impl MongoUri {
    /// Checks a connection string. The error does not repeat it, because it may contain a password.
    pub(crate) fn parse(text: &str) -> Result<MongoUri, String> {
        let parsed = ConnectionString::parse(text).map_err(|error| {
            let reason = error.kind.to_string();
            // The driver's message may quote the text.
            let is_safe = !reason.contains('`') && !reason.contains('"') && !text.contains('@');
            let reason = if is_safe {
                reason
            } else {
                String::from("it cannot be read")
            };
            format!(
                "the MongoDB address is not right ({reason}): write \
                 mongodb://[USER:PASSWORD@]HOST[:PORT][,HOST...]/[DATABASE][?OPTIONS], with \
                 special characters of user and password percent-encoded"
            )
        })?;
        Ok(MongoUri {
            text: text.to_owned(),
            database: parsed
                .default_database
                .unwrap_or_else(|| DEFAULT_DATABASE.to_owned()),
        })
    }

    /// The servers, as the driver reads them, and the database.
    pub fn database_place(&self) -> Option<DatabasePlace> {
        let hosts = match ConnectionString::parse(&self.text).ok()?.host_info {
            HostInfo::HostIdentifiers(hosts) => hosts.iter().map(host_and_port).collect(),
            HostInfo::DnsRecord(name) => BTreeSet::from([format!("srv {}", name.to_lowercase())]),
            _ => return None,
        };
        Some(DatabasePlace {
            hosts,
            database: self.database.clone(),
        })
    }

    /// The first option that does more than affect how a client connects to the named servers, such as naming a file.
    pub fn option_beyond_connecting(&self) -> Option<String> {
        let (_, options) = self.text.split_once('?')?;
        let names = options.split('&').filter(|option| !option.is_empty());
        let names = names.map(|option| option.split('=').next().unwrap_or_default());
        let mut beyond =
            names.filter(|name| !CONNECTING_OPTIONS.contains(&&*name.to_ascii_lowercase()));
        beyond.next().map(str::to_owned)
    }

    /// The URI as given, with credentials. For the driver and for child processes only.
    pub(crate) fn text_with_credentials(&self) -> &str {
        &self.text
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }
}

fn host_and_port(address: &ServerAddress) -> String {
    const PORT: u16 = 27_017;
    match address {
        ServerAddress::Tcp { host, port } => {
            format!("{}:{}", host.to_lowercase(), port.unwrap_or(PORT))
        }
        other => other.to_string(),
    }
}

impl fmt::Display for MongoUri {
    /// Shows scheme, hosts and database, but neither user nor password nor options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.text.split_once("://").unwrap_or(("mongodb", ""));
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let hosts = authority.rsplit('@').next().unwrap_or_default();
        write!(f, "{scheme}://{hosts}/{}", self.database)
    }
}

impl fmt::Debug for MongoUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_user_nor_password_is_shown() {
        for (text, shown) in [
            ("mongodb://db", "mongodb://db/webfill"),
            (
                "mongodb://me:s%40ecret@a:1,b:2/x?w=1&authSource=secret",
                "mongodb://a:1,b:2/x",
            ),
            ("mongodb://me:secret@db/?tls=true", "mongodb://db/webfill"),
            (
                "mongodb+srv://me:secret@db.example.org",
                "mongodb+srv://db.example.org/webfill",
            ),
        ] {
            let uri = MongoUri::parse(text).unwrap();
            assert_eq!(uri.to_string(), shown);
            assert_eq!(format!("{uri:?}"), shown);
            assert_eq!(uri.text_with_credentials(), text);
        }
    }

    #[test]
    fn a_refusal_shows_the_form_and_no_secret() {
        for text in [
            "mongodb://",
            "mongodb://me:sec@ret@db/x",
            "mongodb://me:secret@db/x?nonsense",
            "mongodb://me:secret@db:99999/x",
            "mongodb://me:sec/ret@db/x",
        ] {
            let refusal = MongoUri::parse(text).unwrap_err();
            assert!(refusal.contains("mongodb://[USER"), "{refusal}");
            assert!(!refusal.contains("sec"), "{refusal}");
        }
    }
}
