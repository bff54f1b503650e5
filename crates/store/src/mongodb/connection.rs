//! Connects to a server with webfill's options, and prepares the database.

use std::time::Duration;

use mongodb::bson::doc;
use mongodb::options::{
    ClientOptions, DatabaseOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use mongodb::{Client, Database};

use super::command::{Db, with_timeout};
use super::fault::Fault;
use super::indexes;
use super::page_log;
use super::uri::MongoUri;
use crate::error::StoreError;
use crate::open_mode::{OpenMode, Uses};

/// How long a call waits for a server that accepts it; `serverSelectionTimeoutMS` in the URI.
const SELECTION_WITHIN: Duration = Duration::from_secs(5);

/// How long connecting may take; `connectTimeoutMS` in the URI.
const CONNECTED_WITHIN: Duration = Duration::from_secs(5);

/// How often the state of each server is checked; `heartbeatFrequencyMS` in the URI. Less than
/// [`SELECTION_WITHIN`], so that a server that was marked unavailable by mistake is found again in
/// time.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(3);

/// How many connections a process opens to a server for data; `maxPoolSize` in the URI. A worker saves over one
/// connection, and uses the cache over others. Thousands of workers share a server, where each connection is a thread
/// with its own stack.
const MOST_CONNECTIONS: u32 = 4;

/// How long a connection may be unused before it is closed; `maxIdleTimeMS` in the URI.
const IDLE_CLOSED_AFTER: Duration = Duration::from_secs(60);

/// Connects and authenticates. Creates the indexes and the log of pages if `mode` allows it.
pub(super) async fn open(uri: &MongoUri, mode: OpenMode, uses: Uses) -> Result<Db, StoreError> {
    let refused = |fault: Fault| fault.into_error(&uri.to_string());
    let db = connect(uri).await.map_err(refused)?;
    match mode {
        OpenMode::Create => create_indexes_and_log(&db, uses).await,
        OpenMode::MustExist => check_exists(&db).await,
    }
    .map_err(refused)?;
    Ok(db)
}

/// The database. No command has been sent to it yet.
pub(super) async fn connect(uri: &MongoUri) -> Result<Db, Fault> {
    let client = Client::with_options(client_options(uri).await?)?;
    Ok(Db {
        database: database(&client, uri.database()),
        store: uri.to_string(),
    })
}

async fn client_options(uri: &MongoUri) -> Result<ClientOptions, Fault> {
    let mut options =
        with_timeout(async { ClientOptions::parse(uri.text_with_credentials()).await }).await?;
    options
        .app_name
        .get_or_insert_with(|| String::from("webfill"));
    options
        .server_selection_timeout
        .get_or_insert(SELECTION_WITHIN);
    options.heartbeat_freq.get_or_insert(HEARTBEAT_EVERY);
    options.connect_timeout.get_or_insert(CONNECTED_WITHIN);
    let most = MOST_CONNECTIONS.max(options.min_pool_size.unwrap_or(0));
    options.max_pool_size.get_or_insert(most);
    options.max_idle_time.get_or_insert(IDLE_CLOSED_AFTER);
    Ok(options)
}

/// The database with the read and write concern `majority`, whatever the URI says. With less, acknowledged pages would
/// be lost when a primary dies. Reads go to the primary, because the other members lag behind.
fn database(client: &Client, name: &str) -> Database {
    let options = DatabaseOptions::builder()
        .read_concern(ReadConcern::majority())
        .write_concern(journaled_majority())
        .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
        .build();
    client.database_with_options(name, options)
}

fn journaled_majority() -> WriteConcern {
    let mut concern = WriteConcern::majority();
    concern.journal = Some(true);
    concern
}

async fn create_indexes_and_log(db: &Db, uses: Uses) -> Result<(), Fault> {
    if uses.includes_store() {
        page_log::check_format(db).await?;
    }
    indexes::create(db, uses).await?;
    if uses.includes_store() {
        page_log::create(db).await?;
    }
    Ok(())
}

async fn check_exists(db: &Db) -> Result<(), Fault> {
    let ours = doc! {"name": {"$in": ["records", "pages", "crawls"]}};
    let names =
        with_timeout(async { db.database.list_collection_names().filter(ours).await }).await?;
    match names.is_empty() {
        false => page_log::check_format(db).await,
        true => Err(Fault::Unusable(String::from(
            "there is no such database, or nothing of webfill's in it: check its name in the URI",
        ))),
    }
}
