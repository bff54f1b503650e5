//! Freezes the bytes of every message for each value of `WIRE_VERSION`.
//!
//! Processes of different builds know only by the version byte whether they can read each other's messages. If a
//! message changed its shape without a new version, they would misread it. The encoded example of each message and
//! variant is kept as hex in `frozen/vVERSION.txt`. This test fails if the bytes change while the version stays, or if
//! a message of the oldest supported version now has other bytes. A new field or variant does not compile until it has
//! an example here.

#[path = "frozen/examples.rs"]
mod examples;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use webfill_wire::codec::{self, OLDEST_VERSION, WIRE_VERSION};
use webfill_wire::handshake;
use webfill_wire::{
    DispatcherToSupervisor, Follow, Lane, Outcome, ReturnCause, SupervisorOutcomes,
    SupervisorToDispatcher, SupervisorToWorker, WorkerToSupervisor,
};

use examples::*;

const WRITE: &str = "UPDATE_COMMITTED";

/// The examples by name, each with its bytes.
type Frozen = BTreeMap<String, Vec<u8>>;

/// Adds one example for each variant of an enum. The patterns also become a `match`, so the test does not compile if a
/// variant is missing.
macro_rules! freeze_variants {
    ($frozen:ident, $kind:ident { $($variant:pat => $example:expr,)+ }) => {
        let complete = |value: &$kind| match value { $($variant => (),)+ };
        $(
            let example: $kind = $example;
            complete(&example);
            assert!(matches!(&example, $variant), "this is no {}", stringify!($variant));
            freeze(&mut $frozen, name(stringify!($kind), stringify!($variant)), &example);
        )+
    };
}

/// The name `Kind::Variant`, taken from the text of a pattern such as `Kind::Variant { .. }`.
fn name(kind: &str, pattern: &str) -> String {
    let variant = pattern.rsplit("::").next().unwrap_or_default();
    let variant = variant.split(|c: char| !c.is_alphanumeric()).next();
    format!("{kind}::{}", variant.unwrap_or_default())
}

/// Adds one example, and asserts that it survives encoding and decoding.
fn freeze<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    frozen: &mut Frozen,
    name: String,
    example: &M,
) {
    let bytes = codec::encode(example);
    assert_eq!(codec::decode::<M>(&bytes).as_ref(), Ok(example), "{name}");
    let before = frozen.insert(name.clone(), bytes);
    assert!(before.is_none(), "two examples are called {name}");
}

fn freeze_parts(frozen: &mut Frozen) {
    freeze(frozen, "CrawlSettings".into(), &crawl());
    freeze(frozen, "MappingSource".into(), &mapping());
    freeze(frozen, "FailedAttempt".into(), &failed_attempt());
    freeze(frozen, "Task".into(), &task());
    freeze(frozen, "RecallScope".into(), &scope());
    freeze(frozen, "SiteClock".into(), &clock());
    freeze(frozen, "TaskDone".into(), &task_done());
    freeze(frozen, "TaskReturned".into(), &task_returned());
    freeze(frozen, "Credit".into(), &credit());
    freeze(frozen, "Hello".into(), &hello());
    freeze(frozen, "SupervisorHeartbeat".into(), &heartbeat());
    for outcome in Outcome::ALL {
        freeze(frozen, format!("Outcome::{outcome:?}"), outcome);
    }
    for lane in Lane::ALL {
        freeze(frozen, format!("Lane::{lane:?}"), lane);
    }
    for follow in Follow::ALL {
        freeze(frozen, format!("Follow::{follow:?}"), follow);
    }
}

fn freeze_causes(mut frozen: Frozen) -> Frozen {
    freeze_variants!(frozen, ReturnCause {
        ReturnCause::Unstarted => ReturnCause::Unstarted,
        ReturnCause::WorkerDied => ReturnCause::WorkerDied,
        ReturnCause::KilledWorker => ReturnCause::KilledWorker,
        ReturnCause::CutShort => ReturnCause::CutShort,
    });
    frozen
}

fn freeze_supervisor_messages(mut frozen: Frozen) -> Frozen {
    freeze_variants!(frozen, SupervisorToDispatcher {
        SupervisorToDispatcher::Hello(_) => SupervisorToDispatcher::Hello(hello()),
        SupervisorToDispatcher::Credit { .. } => SupervisorToDispatcher::Credit {
            session: 111,
            credit: credit(),
        },
        SupervisorToDispatcher::Heartbeat(_) => SupervisorToDispatcher::Heartbeat(heartbeat()),
        SupervisorToDispatcher::Goodbye { .. } => SupervisorToDispatcher::Goodbye {
            session: 112,
            outcomes_sent: 113,
        },
        SupervisorToDispatcher::AskMappings { .. } => SupervisorToDispatcher::AskMappings {
            session: 114,
            mappings: "hash".into(),
        },
        SupervisorToDispatcher::Report(_) => SupervisorToDispatcher::Report(report()),
    });
    let outcomes = SupervisorOutcomes {
        supervisor: "vm-01".into(),
        session: 121,
        number: 122,
        done: vec![task_done()],
        returned: vec![task_returned()],
        recalled: vec![123],
    };
    freeze(&mut frozen, "SupervisorOutcomes".into(), &outcomes);
    frozen
}

fn freeze_dispatcher_messages(mut frozen: Frozen) -> Frozen {
    freeze_variants!(frozen, DispatcherToSupervisor {
        DispatcherToSupervisor::Welcome { .. } => DispatcherToSupervisor::Welcome {
            session: 131,
            heard_ms: 132,
            lease_ms: 133,
            mappings: "hash".into(),
        },
        DispatcherToSupervisor::NameTaken { .. } => DispatcherToSupervisor::NameTaken {
            session: 134,
        },
        DispatcherToSupervisor::Tasks { .. } => DispatcherToSupervisor::Tasks {
            session: 135,
            number: 136,
            crawls: vec![crawl()],
            tasks: vec![task()],
        },
        DispatcherToSupervisor::ForgetCrawls { .. } => DispatcherToSupervisor::ForgetCrawls {
            session: 137,
        },
        DispatcherToSupervisor::Recall { .. } => DispatcherToSupervisor::Recall {
            session: 138,
            number: 139,
            recall: 140,
            scope: scope(),
        },
        DispatcherToSupervisor::Heartbeat { .. } => DispatcherToSupervisor::Heartbeat {
            session: 141,
            heard_ms: 142,
            outcomes_heard: 143,
        },
        DispatcherToSupervisor::SayHello { .. } => DispatcherToSupervisor::SayHello {
            session: 144,
        },
        DispatcherToSupervisor::Drain => DispatcherToSupervisor::Drain,
        DispatcherToSupervisor::MappingsChanged { .. } => {
            DispatcherToSupervisor::MappingsChanged {
                session: 149,
                number: 150,
                mappings: "hash".into(),
            }
        },
        DispatcherToSupervisor::Mappings { .. } => DispatcherToSupervisor::Mappings {
            session: 148,
            version: "hash".into(),
            sources: vec![mapping()],
        },
        DispatcherToSupervisor::SiteScripts { .. } => DispatcherToSupervisor::SiteScripts {
            session: 169,
            number: 170,
            scripts: site_scripts(),
        },
    });
    frozen
}

fn freeze_worker_messages(mut frozen: Frozen) -> Frozen {
    freeze_variants!(frozen, SupervisorToWorker {
        SupervisorToWorker::Mappings(_) => SupervisorToWorker::Mappings(vec![mapping()]),
        SupervisorToWorker::Crawl(_) => SupervisorToWorker::Crawl(crawl()),
        SupervisorToWorker::ForgetCrawls => SupervisorToWorker::ForgetCrawls,
        SupervisorToWorker::Inherited { .. } => SupervisorToWorker::Inherited {
            sites: vec!["example.net".into()],
        },
        SupervisorToWorker::LeaseUntil { .. } => SupervisorToWorker::LeaseUntil { boot_ms: 151 },
        SupervisorToWorker::Tasks(_) => SupervisorToWorker::Tasks(vec![task()]),
        SupervisorToWorker::Recall { .. } => SupervisorToWorker::Recall {
            recall: 152,
            scope: scope(),
        },
        SupervisorToWorker::Drain => SupervisorToWorker::Drain,
        SupervisorToWorker::SiteScripts(_) => SupervisorToWorker::SiteScripts(site_scripts()),
    });
    let from_worker = WorkerToSupervisor {
        worker_index: 161,
        incarnation: 162,
        done: vec![task_done()],
        returned: vec![task_returned()],
        recalled: vec![163],
        waiting: vec![(164, delivery(2))],
        ready: true,
    };
    freeze(&mut frozen, "WorkerToSupervisor".into(), &from_worker);
    frozen
}

/// Formats each example as a line: its name, and its bytes in hex.
fn format_frozen(frozen: &Frozen) -> String {
    let mut text = String::new();
    for (name, bytes) in frozen {
        write!(text, "{name} ").unwrap();
        for byte in bytes {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

fn freeze_all() -> Frozen {
    let mut frozen = Frozen::new();
    freeze_parts(&mut frozen);
    frozen = freeze_causes(frozen);
    frozen = freeze_supervisor_messages(frozen);
    frozen = freeze_dispatcher_messages(frozen);
    freeze_worker_messages(frozen)
}

fn path_of(name: &str) -> PathBuf {
    let file = format!("tests/frozen/{name}.txt");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[test]
fn the_bytes_of_every_message_belong_to_the_wire_version() {
    let text = format_frozen(&freeze_all());
    let name = format!("v{WIRE_VERSION}");
    let path = path_of(&name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|_| {
        panic!(
            "crates/wire/tests/frozen/{name}.txt is missing; write it with \
             `{WRITE}=1 cargo test -p webfill-wire --test frozen_bytes` and commit it"
        )
    });
    let changed: Vec<&str> = text
        .lines()
        .filter(|line| !kept.lines().any(|kept| kept == *line))
        .chain(
            kept.lines()
                .filter(|kept| !text.lines().any(|line| line == *kept)),
        )
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(
        changed.is_empty(),
        "the bytes of these messages are not those of wire version {WIRE_VERSION} any more: \
         {changed:?}. New variants belong at the end of their enum: the others keep their numbers. If a release \
         speaks it, give what is new a variant of its own, and raise WIRE_VERSION in \
         crates/wire/src/codec.rs. Then write the file with \
         `{WRITE}=1 cargo test -p webfill-wire --test frozen_bytes` and commit it"
    );
}

#[test]
fn every_message_of_the_oldest_version_is_still_read() {
    let today = freeze_all();
    let name = format!("v{OLDEST_VERSION}");
    let kept = std::fs::read_to_string(path_of(&name)).expect("it was frozen");
    for line in kept.lines() {
        let (name, hex) = line.split_once(' ').expect("a name and bytes");
        let body: String = today[name][1..]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            format!("{OLDEST_VERSION:02x}{body}"),
            hex,
            "{name} has another shape than in version {OLDEST_VERSION}, which is still spoken: \
             give what is new a variant of its own, at the end of its enum"
        );
    }
}

#[test]
fn the_handshake_never_changes() {
    let kept = std::fs::read_to_string(path_of("handshake")).expect("it was frozen");
    let today = format_frozen(&Frozen::from([
        (String::from("Handshake"), handshake::encode_hello(&hello())),
        (String::from("Refusal"), handshake::encode_refusal(171)),
    ]));
    // In the handshake, only the versions may change: they follow the first byte of a hello, and end a refusal.
    let versions = format!("{OLDEST_VERSION:02x}{WIRE_VERSION:02x}");
    assert_eq!(
        today,
        kept.replace("VERSIONS", &versions),
        "any two builds must read each other's handshake"
    );
}
