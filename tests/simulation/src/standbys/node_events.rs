//! The course of a world with standbys: each event is given to the dispatcher or to the journal that it affects.

use crate::world::World;

use super::{StandbyEvent, journalling, node_trouble, serving};

pub(crate) fn handle_standby_event(world: &mut World, event: StandbyEvent) {
    match event {
        StandbyEvent::Starts(node) => journalling::start_node(world, node),
        StandbyEvent::Ticks { node, life } => journalling::tick_node(world, node, life),
        StandbyEvent::JournalGets {
            node,
            life,
            request,
            wall_ms,
        } => journalling::execute_at_journal(world, node, life, (request, wall_ms)),
        StandbyEvent::JournalSays { node, life, answer } => {
            journalling::handle_journal_answer(world, node, life, answer);
        }
        StandbyEvent::AnswerIsMissed {
            node,
            life,
            first,
            count,
        } => journalling::note_missing_answer(world, node, life, (first, count)),
        StandbyEvent::StoreGets {
            node,
            life,
            epoch,
            write,
        } => serving::store_states_of(world, node, (life, epoch), *write),
        StandbyEvent::Fault(fault) => node_trouble::inject_node_fault(world, fault),
        StandbyEvent::Wakes { .. }
        | StandbyEvent::FromMachine { .. }
        | StandbyEvent::FromClient { .. }
        | StandbyEvent::StatesConfirmed { .. }
        | StandbyEvent::Applied { .. } => serving::deliver_to_node(world, event),
    }
}
