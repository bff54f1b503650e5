//! Tests publishing sockets: which subscribers get which messages, what a slow subscriber costs, and who is admitted.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use webfill_wire::keys::{
    AllowList, ClientKeys, HEADING, KeyPair, PublicKey, Role, RotationFiles, ServerKeys,
    TrustedKeys,
};
use webfill_wire::socket::{
    ArrivedFrame, PUBLISHED_AHEAD, Pattern, SocketSpec, Sockets, Subscription, new_key_pair,
};

const WAIT: Duration = Duration::from_secs(60);
const NAME: u32 = 1;

/// An endpoint with a port that was free a moment ago.
fn free_endpoint() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("tcp://{}", listener.local_addr().unwrap())
}

fn start_sockets(spec: SocketSpec) -> (Sockets, Receiver<ArrivedFrame>) {
    let (arrivals, arrived) = mpsc::channel();
    let sockets = Sockets::start(vec![spec], move |frame| drop(arrivals.send(frame)));
    (sockets.unwrap(), arrived)
}

fn start_publisher(endpoint: &str) -> (Sockets, Receiver<ArrivedFrame>) {
    start_sockets(SocketSpec::bind(NAME, Pattern::Publish, endpoint))
}

fn start_subscriber(endpoint: &str, topics: &[&str]) -> (Sockets, Receiver<ArrivedFrame>) {
    let topics = topics.iter().map(|topic| String::from(*topic)).collect();
    start_sockets(SocketSpec::connect(NAME, Pattern::Subscribe, endpoint).with_topics(topics))
}

/// Waits until the publisher has received this subscription.
fn wait_for_subscription(heard: &Receiver<ArrivedFrame>, expected: Subscription<'_>) {
    loop {
        let arrived = heard.recv_timeout(WAIT).expect("a subscription");
        if Subscription::parse(&arrived.frame) == Some(expected) {
            return;
        }
    }
}

fn publish(sockets: &Sockets, topic: &str, message: &str) {
    let (topic, message) = (topic.as_bytes().to_vec(), message.as_bytes().to_vec());
    sockets.outbox().publish(NAME, topic, message);
}

fn next_message(arrived: &Receiver<ArrivedFrame>) -> (String, String) {
    let arrived = arrived.recv_timeout(WAIT).expect("a message");
    let topic = String::from_utf8(arrived.topic.expect("a topic")).unwrap();
    (topic, String::from_utf8(arrived.frame).unwrap())
}

#[test]
fn a_subscriber_gets_its_topics_and_the_publisher_the_subscriptions() {
    let endpoint = free_endpoint();
    let (sockets, heard) = start_publisher(&endpoint);
    // Another subscriber receives this message before the one under test subscribes. So the message is no longer in
    // flight then.
    let (earlier, had) = start_subscriber(&endpoint, &["early"]);
    wait_for_subscription(&heard, Subscription::Wanted(b"early"));
    publish(&sockets, "early", "too early");
    next_message(&had);
    drop(earlier);
    wait_for_subscription(&heard, Subscription::Unwanted(b"early"));
    let (subscribed, arrived) = start_subscriber(&endpoint, &["a", "b.x", "early"]);
    for topic in [b"a".as_slice(), b"b.x", b"early"] {
        wait_for_subscription(&heard, Subscription::Wanted(topic));
    }
    for topic in ["a", "b", "a.1", "b.x", "c"] {
        publish(&sockets, topic, &format!("under {topic}"));
    }
    for topic in ["a", "a.1", "b.x"] {
        assert_eq!(
            next_message(&arrived),
            (topic.into(), format!("under {topic}"))
        );
    }
    let (second, _arrived) = start_subscriber(&endpoint, &["a"]);
    drop(subscribed);
    wait_for_subscription(&heard, Subscription::Unwanted(b"b.x"));
    drop(second);
    wait_for_subscription(&heard, Subscription::Unwanted(b"a"));
}

#[test]
fn a_subscriber_finds_a_publisher_that_is_started_again() {
    let endpoint = free_endpoint();
    let (subscribed, arrived) = start_subscriber(&endpoint, &[""]);
    for turn in 0..2 {
        let (sockets, heard) = start_publisher(&endpoint);
        wait_for_subscription(&heard, Subscription::Wanted(b""));
        publish(&sockets, "t", &format!("turn {turn}"));
        assert_eq!(next_message(&arrived).1, format!("turn {turn}"));
    }
    drop(subscribed);
}

/// A slow subscriber gets the messages that fit below the high-water marks of both sides and into the kernel's buffers.
/// It loses the rest, and other subscribers lose nothing.
#[test]
fn a_subscriber_that_does_not_read_loses_messages_and_delays_no_other() {
    const SENT: usize = 40_000;
    let endpoint = free_endpoint();
    let (sockets, heard) = start_publisher(&endpoint);
    let context = zmq::Context::new();
    let slow = context.socket(zmq::SUB).unwrap();
    slow.set_rcvhwm(PUBLISHED_AHEAD).unwrap();
    slow.set_linger(0).unwrap();
    slow.set_subscribe(b"slow").unwrap();
    slow.connect(&endpoint).unwrap();
    wait_for_subscription(&heard, Subscription::Wanted(b"slow"));
    let (_quick_sockets, quick) = start_subscriber(&endpoint, &["quick"]);
    wait_for_subscription(&heard, Subscription::Wanted(b"quick"));
    let started = Instant::now();
    let large = "x".repeat(4_000);
    for number in 0..SENT {
        publish(&sockets, "slow", &large);
        if number.is_multiple_of(100) {
            publish(&sockets, "quick", &number.to_string());
        }
    }
    for number in (0..SENT).step_by(100) {
        assert_eq!(
            next_message(&quick).1,
            number.to_string(),
            "nothing is lost"
        );
    }
    assert!(started.elapsed() < WAIT, "{:?}", started.elapsed());
    let mut kept = 0;
    while slow.poll(zmq::POLLIN, 500).unwrap() > 0 {
        slow.recv_multipart(0).unwrap();
        kept += 1;
    }
    // The kept messages fit below two high-water marks, and into a few megabytes of kernel buffers.
    assert!(kept >= PUBLISHED_AHEAD as usize, "{kept}");
    assert!(kept < SENT / 2, "{kept} of {SENT} were kept for it");
}

#[test]
fn garbage_from_a_subscriber_is_ignored() {
    let endpoint = free_endpoint();
    let (sockets, heard) = start_publisher(&endpoint);
    let context = zmq::Context::new();
    let odd = context.socket(zmq::XSUB).unwrap();
    odd.set_linger(0).unwrap();
    odd.connect(&endpoint).unwrap();
    for frame in [&b"\x07rubbish"[..], &[1; 100_000], b"\x01fine"] {
        odd.send(frame, 0).unwrap();
    }
    let (_subscribed, arrived) = start_subscriber(&endpoint, &["t"]);
    wait_for_subscription(&heard, Subscription::Wanted(b"t"));
    publish(&sockets, "t", "still there");
    assert_eq!(next_message(&arrived).1, "still there");
}

/// A publisher that admits the keys of an allow-list.
struct GuardedPublisher {
    folder: TempDir,
    endpoint: String,
    public: PublicKey,
    sockets: Sockets,
    heard: Receiver<ArrivedFrame>,
}

impl GuardedPublisher {
    fn start(listed: &[(Role, &str, &KeyPair)]) -> GuardedPublisher {
        let folder = tempfile::tempdir().unwrap();
        write_list(&folder, listed);
        let own = new_key_pair().unwrap();
        let public = own.public;
        let allowed = AllowList::open(&folder.path().join("allowed")).unwrap();
        let keys = ServerKeys {
            own,
            allowed,
            of_rotation: RotationFiles::default(),
        };
        let endpoint = free_endpoint();
        let spec = SocketSpec::bind(NAME, Pattern::Publish, &endpoint);
        let (sockets, heard) = start_sockets(spec.with_server_keys(Some(&keys), Role::Client));
        GuardedPublisher {
            folder,
            endpoint,
            public,
            sockets,
            heard,
        }
    }

    fn subscribe(&self, keys: Option<&KeyPair>, topic: &str) -> (Sockets, Receiver<ArrivedFrame>) {
        let keys = keys.map(|own| ClientKeys {
            own: own.clone(),
            trusted: TrustedKeys::from_fixed_key(self.public),
        });
        let spec = SocketSpec::connect(NAME, Pattern::Subscribe, &self.endpoint);
        start_sockets(spec.with_topics(vec![topic.into()]).call(keys.as_ref()))
    }
}

fn write_list(folder: &TempDir, listed: &[(Role, &str, &KeyPair)]) {
    let lines = listed
        .iter()
        .map(|(role, name, keys)| format!("{role} {name} {}\n", keys.public));
    let new = folder.path().join("allowed.new");
    std::fs::write(&new, format!("{HEADING}\n{}", lines.collect::<String>())).unwrap();
    std::fs::rename(new, folder.path().join("allowed")).unwrap();
}

#[test]
fn only_clients_keys_get_messages() {
    let [client, supervisor, stranger] = [(); 3].map(|()| new_key_pair().unwrap());
    let listed = [
        (Role::Client, "app", &client),
        (Role::Supervisor, "vm", &supervisor),
    ];
    let server = GuardedPublisher::start(&listed);
    let refused = [None, Some(&supervisor), Some(&stranger)];
    let refused = refused.map(|keys| server.subscribe(keys, "refused"));
    let (_sockets, arrived) = server.subscribe(Some(&client), "fine");
    wait_for_subscription(&server.heard, Subscription::Wanted(b"fine"));
    for topic in ["refused", "fine"] {
        publish(&server.sockets, topic, "secret");
    }
    assert_eq!(next_message(&arrived).0, "fine");
    for (_sockets, arrived) in &refused {
        let silence = arrived.recv_timeout(Duration::from_millis(300));
        assert_eq!(silence.unwrap_err(), RecvTimeoutError::Timeout);
    }
}

#[test]
fn a_key_that_was_removed_from_the_list_gets_no_more_messages() {
    let [leaves, stays] = [(); 2].map(|()| new_key_pair().unwrap());
    let both = [
        (Role::Client, "leaves", &leaves),
        (Role::Client, "stays", &stays),
    ];
    let server = GuardedPublisher::start(&both);
    let (_left, revoked) = server.subscribe(Some(&leaves), "left");
    let (_stayed, kept) = server.subscribe(Some(&stays), "stayed");
    wait_for_subscription(&server.heard, Subscription::Wanted(b"stayed"));
    let both_hear = |message: &str| {
        publish(&server.sockets, "left", message);
        publish(&server.sockets, "stayed", message);
    };
    // Publishes until both subscribers receive it, because they connect in any order.
    let deadline = Instant::now() + WAIT;
    while revoked.recv_timeout(Duration::from_millis(50)).is_err() {
        assert!(Instant::now() < deadline, "never let in");
        both_hear("before");
    }
    write_list(&server.folder, &both[1..]);
    both_hear("cut off");
    wait_for_subscription(&server.heard, Subscription::AllGone);
    wait_for_subscription(&server.heard, Subscription::Wanted(b"stayed"));
    both_hear("after");
    let mut last = String::new();
    while last != "after" {
        last = next_message(&kept).1;
    }
    let heard_after = revoked.try_iter().any(|message| message.frame != b"before");
    assert!(!heard_after);
}
