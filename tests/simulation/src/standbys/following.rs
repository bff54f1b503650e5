//! How supervisors, the client and the operator find the serving dispatcher. They know all addresses, and try the next
//! address if they get no answer.

use serde_json::Value;
use webfill_scheduler::Caller;
use webfill_scheduler::effects::Client;

use crate::event::{Event, MessageToDispatcher};
use crate::world::World;
use crate::{network, operator};

use super::{Asker, StandbyEvent};

/// A supervisor tries the next dispatcher's address if no message has arrived for this fraction of its lease.
const PATIENCE_IN_LEASES: f64 = 0.25;
const LEAST_PATIENCE_MS: u64 = 300;

/// The client repeats its request after this time.
const CLIENT_ASKS_AGAIN_MS: u64 = 700;

pub(super) fn reaches_fleet(world: &mut World, node: usize) -> bool {
    let now_ms = world.now_ms;
    world.standbys_mut().nodes[node].no_fleet_until_ms <= now_ms
}

/// Notes that a dispatcher's message has reached a machine, so that the machine stays with this dispatcher.
pub(crate) fn note_heard_from_dispatcher(world: &mut World, machine: usize) {
    let now_ms = world.now_ms;
    if let Some(standbys) = &mut world.standbys {
        standbys.following.entry(machine).or_default().since_ms = now_ms;
    }
}

/// Sends a supervisor's message to the dispatcher that the supervisor is connected to.
pub(crate) fn send_to_followed_node(
    world: &mut World,
    machine: usize,
    message: MessageToDispatcher,
) {
    follow_next_node_if_silent(world, machine);
    let sender = &world.machines[machine];
    let peer = Caller {
        peer: sender.connection.to_le_bytes().to_vec(),
        version: sender.version(),
    };
    let way = match message {
        MessageToDispatcher::Word(_) => 0,
        MessageToDispatcher::Outcomes(_) => 1,
    };
    let cut_until_ms = sender.cut_up_until_ms;
    let standbys = world.standbys_mut();
    let node = standbys.following.entry(machine).or_default().node;
    let Some(life) = standbys.nodes[node].process.as_ref().map(|one| one.life) else {
        return;
    };
    if !reaches_fleet(world, node) {
        return;
    }
    for at_ms in network::draw_arrivals(world, machine, way, cut_until_ms) {
        let event = StandbyEvent::FromMachine {
            node,
            life,
            peer: peer.clone(),
            message: message.clone(),
        };
        world.schedule_at(at_ms, Event::Standby(event));
    }
}

fn follow_next_node_if_silent(world: &mut World, machine: usize) {
    let now_ms = world.now_ms;
    let patience_ms = (world.plan.lease_ms as f64 * PATIENCE_IN_LEASES) as u64;
    let standbys = world.standbys_mut();
    let nodes = standbys.nodes.len();
    let following = standbys.following.entry(machine).or_default();
    if now_ms < following.since_ms + patience_ms.max(LEAST_PATIENCE_MS) {
        return;
    }
    following.node = (following.node + 1) % nodes;
    following.since_ms = now_ms;
    world.connections += 1;
    world.machines[machine].connection = world.connections;
}

/// Sends the client's request. Returns when to repeat it.
pub(crate) fn send_client_request_to_node(world: &mut World, question: &Value) -> u64 {
    let standbys = world.standbys_mut();
    let asker = Asker::Client(standbys.question);
    send_to_node(world, asker, question.to_string().into_bytes());
    CLIENT_ASKS_AGAIN_MS
}

pub(crate) fn send_operator_request_to_node(world: &mut World, number: u64, frame: &[u8]) {
    send_to_node(world, Asker::Operator(number), frame.to_vec());
}

/// Sends a request either to the serving dispatcher or to the next address.
fn send_to_node(world: &mut World, asker: Asker, frame: Vec<u8>) {
    let standbys = world.standbys_mut();
    standbys.asked_node = (standbys.asked_node + 1) % standbys.nodes.len();
    let node = match standbys.nodes.iter().position(|node| node.serves()) {
        // In half of the cases, the sender already knows the address of the serving dispatcher, so that worlds end
        // soon.
        Some(node) if standbys.dice.once_in(2) => node,
        _ => standbys.asked_node,
    };
    let takes_ms = standbys.dice.between(1, 20);
    let Some(process) = &standbys.nodes[node].process else {
        return;
    };
    let life = process.life;
    if reaches_fleet(world, node) {
        let event = StandbyEvent::FromClient {
            node,
            life,
            asker,
            frame,
        };
        world.schedule_in(takes_ms, Event::Standby(event));
    }
}

pub(super) fn handle_node_answer(world: &mut World, client: &Client, answer: Value) {
    match client {
        Client::Http(asker) => {
            operator::handle_operator_answer(world, asker.number as usize, &answer)
        }
        Client::Socket(peer) => {
            let standbys = world.standbys_mut();
            let current = standbys.question.to_le_bytes();
            if peer.peer != current.to_vec() {
                return;
            }
            standbys.question += 1;
            if let Some(error) = answer.get("error") {
                let fault = format!("the client is refused: {error}");
                return world.faults.push(fault);
            }
            world.client.handle_answer(&answer);
        }
        Client::Feeder(_) => {}
    }
}
