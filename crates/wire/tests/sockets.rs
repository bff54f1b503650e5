//! Tests sockets between two processes of webfill, without keys.

use std::sync::mpsc;
use std::time::Duration;

use webfill_wire::socket::{ArrivedFrame, Pattern, SocketSpec, Sockets};

const WAIT: Duration = Duration::from_secs(60);

fn endpoint(name: &str) -> String {
    let folder = std::env::temp_dir();
    format!(
        "ipc://{}/wf-{name}-{}",
        folder.display(),
        std::process::id()
    )
}

fn start_sockets(spec: SocketSpec) -> (Sockets, mpsc::Receiver<ArrivedFrame>) {
    let (arrivals, arrived) = mpsc::channel();
    let sockets = Sockets::start(vec![spec], move |frame| {
        let _ = arrivals.send(frame);
    });
    (sockets.unwrap(), arrived)
}

#[test]
fn a_router_answers_dealers_and_clients_in_their_own_format() {
    let at = endpoint("router");
    let (router, asked) = start_sockets(SocketSpec::bind(1, Pattern::Router, &at));
    for pattern in [Pattern::Dealer, Pattern::Client] {
        let (dealer, answered) = start_sockets(SocketSpec::connect(1, pattern, &at));
        dealer.outbox().send(1, b"ping".to_vec());
        let question = asked.recv_timeout(WAIT).unwrap();
        assert_eq!((&*question.frame, question.sender), (&b"ping"[..], None));
        let peer = question.peer.unwrap();
        router.outbox().send_to(1, &peer, b"pong".to_vec());
        assert_eq!(answered.recv_timeout(WAIT).unwrap().frame, b"pong");
    }
}

#[test]
fn frames_wait_for_a_peer_that_comes_later() {
    let at = endpoint("late");
    let (push, _) = start_sockets(SocketSpec::bind(1, Pattern::Push, &at));
    for n in 0..1_000u32 {
        push.outbox().send(1, n.to_be_bytes().to_vec());
    }
    let (_pull, arrived) = start_sockets(SocketSpec::connect(1, Pattern::Pull, &at));
    for n in 0..1_000u32 {
        assert_eq!(arrived.recv_timeout(WAIT).unwrap().frame, n.to_be_bytes());
    }
}

#[test]
fn send_now_does_not_queue_frames() {
    let at = endpoint("now");
    let (dealer, _) = start_sockets(SocketSpec::connect(1, Pattern::Dealer, &at));
    for _ in 0..100 {
        dealer.outbox().send_now(1, b"heartbeat".to_vec());
    }
    // `open` waits until earlier commands are carried out. So all frames sent before it were dropped.
    let elsewhere = SocketSpec::bind(2, Pattern::Pull, endpoint("elsewhere"));
    dealer.outbox().open(elsewhere).unwrap();
    dealer.outbox().send(1, b"hello".to_vec());
    let (_router, arrived) = start_sockets(SocketSpec::bind(1, Pattern::Router, &at));
    assert_eq!(arrived.recv_timeout(WAIT).unwrap().frame, b"hello");
    dealer.outbox().send_now(1, b"heartbeat".to_vec());
    assert_eq!(arrived.recv_timeout(WAIT).unwrap().frame, b"heartbeat");
}

#[test]
fn the_error_names_a_port_in_use() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp://{}", listener.local_addr().unwrap());
    let refused = Sockets::start(vec![SocketSpec::bind(1, Pattern::Pull, &at)], |_| {});
    let message = refused.err().unwrap().to_string();
    assert!(
        message.contains(&at) && message.contains("in use"),
        "{message}"
    );
}

#[test]
fn no_socket_that_other_machines_can_reach_is_opened_without_keys() {
    for spec in [
        SocketSpec::bind(1, Pattern::Pull, "tcp://0.0.0.0:*"),
        SocketSpec::bind(1, Pattern::Router, "tcp://*:*"),
        SocketSpec::connect(1, Pattern::Dealer, "tcp://192.0.2.1:5555"),
    ] {
        let refused = Sockets::start(vec![spec], |_| {}).err().unwrap();
        assert!(refused.to_string().contains("without keys"), "{refused}");
    }
}
