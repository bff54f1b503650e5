//! The mappings in force are named to supervisors, and sent to those that request them.

use webfill_wire::MappingSource;

use super::*;
use crate::reload::{ReloadRequest, ReloadResult, Reloaded};
use crate::requester::SenderInfo;

fn mappings(version: &str) -> Mappings {
    let source = MappingSource {
        name: "shop.json".into(),
        text: version.to_owned(),
    };
    Mappings {
        version: version.into(),
        sources: vec![source],
    }
}

/// The messages to supervisors since the test last took them.
fn take_messages_to_supervisors(fixture: &mut Fixture) -> Vec<DispatcherToSupervisor> {
    let outgoing = std::mem::take(&mut fixture.outgoing);
    let sent = outgoing.into_iter().filter_map(|message| match message {
        OutgoingMessage::ToSupervisor(_, message) => Some(message),
        _ => None,
    });
    sent.collect()
}

fn ask_mappings_message(version: &str) -> SupervisorToDispatcher {
    SupervisorToDispatcher::AskMappings {
        session: 1,
        mappings: version.into(),
    }
}

fn finish_reload(fixture: &mut Fixture, found: Result<Mappings, webfill_service::Fault>) {
    let found = found.map(|mappings| {
        Box::new(Reloaded {
            protection: Default::default(),
            mappings,
            mapping_rules: std::sync::Arc::new(webfill_store::MappingOrder::default()),
            retries: Default::default(),
            backoff: Default::default(),
            excluded: Default::default(),
            changed: Vec::new(),
            needs_restart: Vec::new(),
        })
    });
    let asked = ReloadRequest {
        client: None,
        who: SenderInfo::signal(),
        uuid: None,
    };
    let now_ms = fixture.now_ms;
    let ended = ReloadResult { asked, found };
    fixture.core().finish_reload(ended, now_ms);
    fixture.run_turn();
}

#[test]
fn a_repeated_hello_changes_nothing_and_mappings_come_when_asked_for() {
    let mut fixture = fixture();
    fixture.core().cx.mappings = mappings("a");
    fixture.join_supervisor();
    let reported = take_messages_to_supervisors(&mut fixture);
    assert!(
        matches!(&reported[..], [DispatcherToSupervisor::Welcome { mappings, .. }] if mappings == "a"),
        "{reported:?}"
    );
    fixture.join_supervisor();
    assert_eq!(take_messages_to_supervisors(&mut fixture), []);
    fixture.handle_message(ask_mappings_message("older"));
    assert_eq!(
        take_messages_to_supervisors(&mut fixture),
        [],
        "it is not in force"
    );
    fixture.handle_message(ask_mappings_message("a"));
    let expected = DispatcherToSupervisor::Mappings {
        session: 1,
        version: "a".into(),
        sources: mappings("a").sources,
    };
    assert_eq!(take_messages_to_supervisors(&mut fixture), [expected]);
}

#[test]
fn changed_mappings_are_announced_to_all_unless_they_have_a_fault() {
    let mut fixture = fixture();
    fixture.core().cx.mappings = mappings("a");
    fixture.join_supervisor();
    take_messages_to_supervisors(&mut fixture);
    finish_reload(&mut fixture, Err(webfill_service::Fault::usage("a fault")));
    finish_reload(&mut fixture, Ok(mappings("a")));
    assert_eq!(take_messages_to_supervisors(&mut fixture), []);
    finish_reload(&mut fixture, Ok(mappings("b")));
    let changed = DispatcherToSupervisor::MappingsChanged {
        session: 1,
        number: 1,
        mappings: "b".into(),
    };
    assert_eq!(take_messages_to_supervisors(&mut fixture), [changed]);
}
