//! A database for one test.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use mongodb::Client;
use mongodb::options::ConnectionString;

use crate::{Mongod, wait_for};

/// The environment variable with the URI of the server that `with-mongod` has started for all tests of a run. Its name
/// is not `MONGODB_URI`, because builds depend on that variable. It also lacks the prefix `WEBFILL_`, because it is not
/// a setting.
pub const SHARED_SERVER: &str = "SHARED_TEST_MONGOD";

/// A new database for a test. If the server outlives this process, the database is dropped together with this value.
pub struct Database {
    uri: String,
    is_server_shared: bool,
}

impl Database {
    /// The URI of the database, which also names the server.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.is_server_shared {
            let dropped = wait_for(async {
                let client = Client::with_uri_str(&self.uri).await?;
                let database = client.default_database().expect("it is named in the URI");
                database.drop().await
            });
            if let Err(error) = dropped {
                eprintln!("the database of a test stays behind: {error}");
            }
        }
    }
}

/// Creates a database for one test.
pub fn fresh_database() -> Database {
    let shared = std::env::var("MONGODB_URI").or_else(|_| std::env::var(SHARED_SERVER));
    if let Ok(uri) = shared {
        return Database {
            uri: with_database(&uri, &fresh_name()),
            is_server_shared: true,
        };
    }
    static OWN: OnceLock<Mongod> = OnceLock::new();
    let mongod = OWN.get_or_init(Mongod::start);
    Database {
        uri: mongod.uri(&fresh_name()),
        is_server_shared: false,
    }
}

/// The given URI with another database name.
fn with_database(uri: &str, name: &str) -> String {
    ConnectionString::parse(uri).expect("MONGODB_URI is a connection string");
    let (address, options) = uri.split_once('?').unwrap_or((uri, ""));
    let hosts_from = address.find("://").map_or(0, |at| at + "://".len());
    let hosts_to = address[hosts_from..]
        .find('/')
        .map_or(address.len(), |at| hosts_from + at);
    // Users are looked up in the database that the URI names, so this database is kept as an option.
    let users_in = address[hosts_to..].trim_start_matches('/');
    let mut options: Vec<&str> = options.split('&').filter(|one| !one.is_empty()).collect();
    let users_option = format!("authSource={users_in}");
    if !users_in.is_empty() && !options.iter().any(|one| one.starts_with("authSource=")) {
        options.push(&users_option);
    }
    let mark = if options.is_empty() { "" } else { "?" };
    format!("{}/{name}{mark}{}", &address[..hosts_to], options.join("&"))
}

fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_us = now.expect("a clock behind 1970").as_micros();
    format!("webfill_test_{now_us}_{}_{count}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_database_of_the_same_server_keeps_hosts_user_and_options() {
        for (given, expected) in [
            ("mongodb://a:1", "mongodb://a:1/x"),
            ("mongodb://a:1,b:2/?", "mongodb://a:1,b:2/x"),
            ("mongodb://a/?tls=true", "mongodb://a/x?tls=true"),
            ("mongodb://me:pw@a/db", "mongodb://me:pw@a/x?authSource=db"),
        ] {
            assert_eq!(with_database(given, "x"), expected);
        }
    }
}
