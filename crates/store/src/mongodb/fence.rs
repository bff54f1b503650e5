//! The collection `dispatcher_fence`: for each group of dispatchers, the latest epoch that has written states of crawls
//! and sites. A write of an earlier epoch is refused, however late it comes (see [`crate::journal`]).
//!
//! A write changes the document of the fence in its own transaction. So the write happens before the next dispatcher
//! has raised the fence, or not at all. The fence is not the lease, since a dispatcher that is suspended within a
//! transaction would keep others from the lease.

use std::time::Duration;

use mongodb::ClientSession;
use mongodb::bson::raw::cstr;
use mongodb::bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};
use mongodb::error::{Error, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT};

use super::command::{Db, UpdateResult, with_timeout, write_concern};
use super::fault::Fault;
use super::{Mongo, crawls, site_states};
use crate::crawl::Crawl;
use crate::error::StoreError;
use crate::journal::FencedWrite;
use crate::site_state::SiteState;

const FENCE: &str = "dispatcher_fence";

/// How many times a transaction is tried if it conflicts with another one.
const ATTEMPTS: u32 = 10;

/// The pause before the second attempt, and how much longer each further pause is.
const PAUSE: Duration = Duration::from_millis(10);

/// A command within a transaction: its name, its collection, and its statements.
struct Statements {
    command: &'static str,
    collection: &'static str,
    statements: Vec<RawDocumentBuf>,
}

/// Raises the fence to this epoch: writes of dispatchers with earlier epochs are refused from now on.
async fn raise(db: &Db, group: &str, epoch: u64) -> Result<FencedWrite, Fault> {
    let command = rawdoc! {
        "findAndModify": FENCE,
        "query": {"_id": group, "epoch": {"$lte": epoch as i64}},
        "update": {"$set": {"epoch": epoch as i64}},
        "upsert": true,
        "writeConcern": write_concern(),
    };
    match db.run(command).await {
        Ok(_) => Ok(FencedWrite::Written),
        Err(fault) if fault.is_duplicate_key() => Ok(FencedWrite::Replaced),
        Err(fault) => Err(fault),
    }
}

async fn write(
    db: &Db,
    (group, epoch): (&str, u64),
    writes: &[Statements],
) -> Result<FencedWrite, Fault> {
    for attempts in 0..ATTEMPTS {
        tokio::time::sleep(PAUSE * attempts).await;
        match with_timeout(async { Ok(try_transaction(db, (group, epoch), writes).await) }).await? {
            Err(Failure::Driver(error)) if error.contains_label(TRANSIENT_TRANSACTION_ERROR) => {}
            Err(Failure::Driver(error)) => return Err(error.into()),
            Err(Failure::Statement(fault)) => return Err(fault),
            Ok(written) => return Ok(written),
        }
    }
    Err(Fault::Unavailable(String::from(
        "its transactions conflict with those of others",
    )))
}

enum Failure {
    Driver(Error),
    Statement(Fault),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Driver(error)
    }
}

/// Carries out the writes in one transaction, if the fence still has this epoch. After an error, the transaction ends
/// together with its session.
async fn try_transaction(
    db: &Db,
    (group, epoch): (&str, u64),
    writes: &[Statements],
) -> Result<FencedWrite, Failure> {
    let mut session = db.database.client().start_session().await?;
    session.start_transaction().await?;
    let passes = rawdoc! {
        "q": {"_id": group, "epoch": epoch as i64},
        "u": {"$inc": {"writes": 1_i64}},
    };
    let passed = run_in_session(db, &mut session, ("update", FENCE), &[passes]).await?;
    if passed.matched == 0 {
        session.abort_transaction().await?;
        return Ok(FencedWrite::Replaced);
    }
    for write in writes.iter().filter(|write| !write.statements.is_empty()) {
        let target = (write.command, write.collection);
        let done = run_in_session(db, &mut session, target, &write.statements).await?;
        done.into_result().map_err(Failure::Statement)?;
    }
    commit(&mut session).await?;
    Ok(FencedWrite::Written)
}

/// Commits a transaction. The command is repeated as long as it is unknown whether it took effect.
async fn commit(session: &mut ClientSession) -> Result<(), Error> {
    loop {
        match session.commit_transaction().await {
            Err(error) if error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) => {}
            committed => return committed,
        }
    }
}

async fn run_in_session(
    db: &Db,
    session: &mut ClientSession,
    (command, collection): (&'static str, &str),
    statements: &[RawDocumentBuf],
) -> Result<UpdateResult, Error> {
    let statements: RawArrayBuf = statements
        .iter()
        .map(|one| -> &RawDocument { one })
        .collect();
    let mut sent = RawDocumentBuf::new();
    let listed = match command {
        "delete" => {
            sent.append(cstr!("delete"), collection);
            cstr!("deletes")
        }
        _ => {
            sent.append(cstr!("update"), collection);
            cstr!("updates")
        }
    };
    sent.append(listed, statements);
    let answer = db.database.run_raw_command(sent).session(session).await?;
    Ok(UpdateResult::of(&answer))
}

impl Mongo {
    pub(crate) async fn raise_fence(
        &self,
        group: &str,
        epoch: u64,
    ) -> Result<FencedWrite, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| raise(&db, &group, epoch).await)
            .await
    }

    pub(crate) async fn put_fenced_crawl(
        &self,
        (group, epoch): (&str, u64),
        crawl: Crawl,
    ) -> Result<FencedWrite, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| {
            let put = Statements {
                command: "update",
                collection: crawls::CRAWLS,
                statements: vec![crawls::put_statement(&crawl)?],
            };
            write(&db, (&group, epoch), &[put]).await
        })
        .await
    }

    pub(crate) async fn change_fenced_site_states(
        &self,
        (group, epoch): (&str, u64),
        states: Vec<SiteState>,
        open: Vec<String>,
    ) -> Result<FencedWrite, StoreError> {
        let group = group.to_owned();
        self.call(async move |db: Db| {
            let put = Statements {
                command: "update",
                collection: site_states::SITE_STATES,
                statements: states.iter().map(site_states::put_statement).collect(),
            };
            let removed = open.iter().map(|site| {
                rawdoc! {"q": {"_id": site.as_str()}, "limit": 1}
            });
            let remove = Statements {
                command: "delete",
                collection: site_states::SITE_STATES,
                statements: removed.collect(),
            };
            write(&db, (&group, epoch), &[put, remove]).await
        })
        .await
    }
}
