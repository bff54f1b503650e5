//! Tests sockets with CURVE keys, and which peers they admit. The server is webfill's own. The clients use libzmq
//! directly, as any program could.

use std::fmt::Write;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use webfill_wire::keys::{
    AllowList, ClientKeys, Entry, HEADING, KeyPair, PublicKey, Role, RotationFiles, ServerKeys,
    TrustedKeys,
};
use webfill_wire::socket::{
    ArrivedFrame, FrameHandler, Pattern, Peer, SocketName, SocketSpec, Sockets, TakenPart,
    new_key_pair,
};

const WAIT: Duration = Duration::from_secs(60);
const TASKS: u32 = 1;
const CONTROL: u32 = 2;

/// A server with two sockets: one for supervisors, one for clients.
struct Server {
    folder: TempDir,
    sockets: Sockets,
    arrived: mpsc::Receiver<ArrivedFrame>,
    /// Receives a message when the server has stopped reading.
    holding: mpsc::Receiver<()>,
    /// Lets the server read again after the frame `hold` has stopped it.
    hold: mpsc::Sender<()>,
    public: PublicKey,
    listed: Vec<(Role, &'static str, PublicKey)>,
    tasks: String,
    control: String,
}

/// Treats the frame `flood` as a flood. After the frame `hold`, nothing is read until the test ends the pause.
struct FloodHandler {
    arrivals: mpsc::Sender<ArrivedFrame>,
    holds: mpsc::Sender<()>,
    held: mpsc::Receiver<()>,
}

impl FrameHandler for FloodHandler {
    fn how_much_to_take(
        &mut self,
        _: SocketName,
        _: &Peer,
        _: Option<&Entry>,
        frame: &[u8],
    ) -> TakenPart {
        match frame {
            b"flood" => return TakenPart::Flood,
            b"hold" => {
                self.holds.send(()).expect("the server lives");
                self.held.recv_timeout(WAIT).expect("an end");
            }
            _ => {}
        }
        TakenPart::Whole
    }

    fn handle_frame(&mut self, arrived: ArrivedFrame) {
        // An error is ignored, because the test may already be over.
        let _ = self.arrivals.send(arrived);
    }
}

/// An endpoint with a port that was free a moment ago.
fn free_endpoint() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("tcp://{}", listener.local_addr().unwrap())
}

impl Server {
    fn start(listed: &[(Role, &'static str, &KeyPair)]) -> Server {
        Server::start_at(free_endpoint(), new_key_pair().unwrap(), listed)
    }

    fn start_at(tasks: String, own: KeyPair, listed: &[(Role, &'static str, &KeyPair)]) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let listed: Vec<_> = listed
            .iter()
            .map(|(role, name, keys)| (*role, *name, keys.public))
            .collect();
        write_list(&folder, &listed);
        let keys = ServerKeys {
            own: own.clone(),
            allowed: AllowList::open(&folder.path().join("allowed")).unwrap(),
            of_rotation: RotationFiles::default(),
        };
        let control = free_endpoint();
        let (arrivals, arrived) = mpsc::channel();
        let specs = vec![
            SocketSpec::bind(TASKS, Pattern::Router, &tasks)
                .with_server_keys(Some(&keys), Role::Supervisor),
            SocketSpec::bind(CONTROL, Pattern::Router, &control)
                .with_server_keys(Some(&keys), Role::Client),
        ];
        let (hold, held) = mpsc::channel();
        let (holds, holding) = mpsc::channel();
        let handler = FloodHandler {
            arrivals,
            holds,
            held,
        };
        let sockets = Sockets::start_with_handler(specs, handler);
        Server {
            holding,
            hold,
            folder,
            sockets: sockets.unwrap(),
            arrived,
            public: own.public,
            listed,
            tasks,
            control,
        }
    }

    fn allow_key(&mut self, role: Role, name: &'static str, keys: &KeyPair) {
        self.listed.push((role, name, keys.public));
        write_list(&self.folder, &self.listed);
    }

    fn revoke(&mut self, name: &str) {
        self.listed.retain(|(_, listed, _)| *listed != name);
        write_list(&self.folder, &self.listed);
    }

    /// Receives the next message: its text, the name of its sender, and the peer to answer.
    fn receive(&self) -> (String, String, Vec<u8>) {
        let arrived = self.arrived.recv_timeout(WAIT).expect("a message");
        (
            String::from_utf8(arrived.frame).unwrap(),
            arrived.sender.expect("a sender").name.to_string(),
            arrived.peer.expect("a peer"),
        )
    }

    fn expect_frame(&self, frame: &str, sender: &str) -> Vec<u8> {
        let (heard, from, peer) = self.receive();
        assert_eq!((&*heard, &*from), (frame, sender));
        peer
    }

    /// Like `expect_frame`, but skips messages `late`, which were still in flight when their sender was admitted again.
    fn expect_frame_after(&self, late: &str, frame: &str, sender: &str) -> Vec<u8> {
        loop {
            let (heard, from, peer) = self.receive();
            assert_eq!(&*from, sender);
            if *heard != *late {
                assert_eq!(heard, frame);
                return peer;
            }
        }
    }
}

fn write_list(folder: &TempDir, listed: &[(Role, &'static str, PublicKey)]) {
    let mut text = format!("{HEADING}\n");
    for (role, name, key) in listed {
        writeln!(text, "{role} {name} {key}").unwrap();
    }
    let new = folder.path().join("allowed.new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, folder.path().join("allowed")).unwrap();
}

/// For each connection that a server of this process has accepted at an endpoint, the number of bytes that it has not
/// read.
fn connections_at(endpoint: &str) -> Vec<u64> {
    let port: u16 = endpoint.rsplit(':').next().unwrap().parse().unwrap();
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    let rows = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (own, state, queues, inode) = (fields[1], fields[3], fields[4], fields[9]);
        let is_listening = state == "0A";
        // A connection without an inode is not accepted yet, or already closed.
        let is_accepted = own.ends_with(&format!(":{port:04X}")) && !is_listening && inode != "0";
        let (_, unread) = queues.split_once(':')?;
        is_accepted.then(|| u64::from_str_radix(unread, 16).unwrap())
    });
    rows.collect()
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + WAIT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A client that uses libzmq directly.
struct Caller {
    socket: zmq::Socket,
    events: zmq::Socket,
    _context: zmq::Context,
}

impl Caller {
    fn new(kind: zmq::SocketType) -> Caller {
        let context = zmq::Context::new();
        let socket = context.socket(kind).unwrap();
        let events = i32::from(zmq::SocketEvent::ALL.to_raw());
        socket.monitor("inproc://events", events).unwrap();
        let events = context.socket(zmq::PAIR).unwrap();
        events.connect("inproc://events").unwrap();
        for socket in [&socket, &events] {
            socket.set_linger(0).unwrap();
            socket.set_rcvtimeo(WAIT.as_millis() as i32).unwrap();
        }
        socket.set_reconnect_ivl(10).unwrap();
        // A refused client gets no answer, and tries again after this many milliseconds.
        socket.set_handshake_ivl(500).unwrap();
        Caller {
            socket,
            events,
            _context: context,
        }
    }

    fn with_keys(own: &KeyPair, server: &PublicKey) -> Caller {
        let caller = Caller::new(zmq::DEALER);
        caller.socket.set_curve_serverkey(server.bytes()).unwrap();
        caller
            .socket
            .set_curve_publickey(own.public.bytes())
            .unwrap();
        caller
            .socket
            .set_curve_secretkey(own.secret.bytes())
            .unwrap();
        caller
    }

    fn connect(self, endpoint: &str) -> Caller {
        self.socket.connect(endpoint).unwrap();
        self
    }

    fn send_text(&self, text: &str) {
        self.socket.send(text, 0).unwrap();
    }

    fn expect_text(&self, text: &str) {
        let heard = self.socket.recv_bytes(0).expect("an answer in time");
        assert_eq!(String::from_utf8_lossy(&heard), text);
    }

    /// Waits until libzmq reports this event of the connection.
    fn wait_for_event(&self, event: zmq::SocketEvent) {
        loop {
            let frames = self.events.recv_multipart(0).expect("an event in time");
            let number = u16::from_ne_bytes([frames[0][0], frames[0][1]]);
            if zmq::SocketEvent::from_raw(number) == event {
                return;
            }
        }
    }

    /// Whether the connection has ended so far, by the events that libzmq has reported.
    fn was_disconnected(&self) -> bool {
        let events = std::iter::from_fn(|| self.events.recv_multipart(zmq::DONTWAIT).ok());
        let numbers = events.map(|frames| u16::from_ne_bytes([frames[0][0], frames[0][1]]));
        let mut events = numbers.map(zmq::SocketEvent::from_raw);
        events.any(|event| event == zmq::SocketEvent::DISCONNECTED)
    }

    /// Waits for the end of a handshake. Returns whether it has failed.
    fn wait_and_check_refused(&self) -> bool {
        let deadline = Instant::now() + WAIT;
        while Instant::now() < deadline {
            let frames = self.events.recv_multipart(0).expect("an event in time");
            let event = u16::from_ne_bytes([frames[0][0], frames[0][1]]);
            match zmq::SocketEvent::from_raw(event) {
                zmq::SocketEvent::HANDSHAKE_SUCCEEDED => return false,
                zmq::SocketEvent::HANDSHAKE_FAILED_AUTH
                | zmq::SocketEvent::HANDSHAKE_FAILED_NO_DETAIL
                | zmq::SocketEvent::HANDSHAKE_FAILED_PROTOCOL => return true,
                _ => {}
            }
        }
        panic!("no handshake in time");
    }
}

#[test]
fn messages_of_listed_keys_carry_their_names_and_are_answered() {
    let (vm, feeder) = (new_key_pair().unwrap(), new_key_pair().unwrap());
    let server = Server::start(&[
        (Role::Supervisor, "vm-01", &vm),
        (Role::Client, "feeder", &feeder),
    ]);
    let callers = [
        (&vm, &server.tasks, "vm-01"),
        (&feeder, &server.control, "feeder"),
    ];
    for (socket, (keys, endpoint, name)) in [TASKS, CONTROL].into_iter().zip(callers) {
        let caller = Caller::with_keys(keys, &server.public).connect(endpoint);
        caller.send_text("hello");
        let peer = server.expect_frame("hello", name);
        server
            .sockets
            .outbox()
            .send_to(socket, &peer, b"welcome".to_vec());
        caller.expect_text("welcome");
    }
}

#[test]
fn only_listed_keys_get_through_and_only_to_the_sockets_of_their_role() {
    let (vm, feeder, stranger) = (
        new_key_pair().unwrap(),
        new_key_pair().unwrap(),
        new_key_pair().unwrap(),
    );
    let server = Server::start(&[
        (Role::Supervisor, "vm-01", &vm),
        (Role::Client, "feeder", &feeder),
    ]);
    let with = |keys| Caller::with_keys(keys, &server.public);
    let mut mixed = vm.clone();
    mixed.secret = stranger.secret.clone();
    let refused = [
        ("an unknown key", with(&stranger).connect(&server.tasks)),
        (
            "a client's key for tasks",
            with(&feeder).connect(&server.tasks),
        ),
        (
            "a supervisor's key for control",
            with(&vm).connect(&server.control),
        ),
        (
            "a listed key without its secret",
            with(&mixed).connect(&server.tasks),
        ),
        (
            "another server's key",
            Caller::with_keys(&vm, &stranger.public).connect(&server.tasks),
        ),
        ("no keys", Caller::new(zmq::DEALER).connect(&server.tasks)),
        (
            "no keys, pushed",
            Caller::new(zmq::PUSH).connect(&server.tasks),
        ),
    ];
    for (who, caller) in &refused {
        // libzmq sends this text as soon as the caller is admitted, which must never happen.
        let _ = caller.socket.send("let me in", zmq::DONTWAIT);
        assert!(caller.wait_and_check_refused(), "{who}");
    }
    let good = with(&vm).connect(&server.tasks);
    good.send_text("hello");
    server.expect_frame("hello", "vm-01");
    assert!(
        server.arrived.try_recv().is_err(),
        "no other message has arrived"
    );
}

#[test]
fn a_client_whose_key_is_added_later_is_admitted_without_a_restart() {
    let vm = new_key_pair().unwrap();
    let mut server = Server::start(&[]);
    let caller = Caller::with_keys(&vm, &server.public).connect(&server.tasks);
    caller.send_text("hello");
    assert!(caller.wait_and_check_refused());
    server.allow_key(Role::Supervisor, "vm-01", &vm);
    server.expect_frame("hello", "vm-01");
}

#[test]
fn a_client_reconnects_to_a_server_that_had_no_keys_for_a_while() {
    let (vm, own) = (new_key_pair().unwrap(), new_key_pair().unwrap());
    let at = free_endpoint();
    let mistaken = Caller::new(zmq::ROUTER);
    mistaken.socket.bind(&at).unwrap();
    let keys = ClientKeys {
        own: vm.clone(),
        trusted: TrustedKeys::from_fixed_key(own.public),
    };
    let spec = SocketSpec::connect(1, Pattern::Dealer, &at).call(Some(&keys));
    let caller = Sockets::start(vec![spec], |_| {}).unwrap();
    caller.outbox().send(1, b"hello".to_vec());
    assert!(
        mistaken.wait_and_check_refused(),
        "neither side trusts the other"
    );
    // Waits until libzmq no longer tries to connect. On its own, it would not reconnect after that.
    mistaken.events.set_rcvtimeo(500).unwrap();
    while mistaken.events.recv_multipart(0).is_ok() {}
    drop(mistaken);
    let server = Server::start_at(at, own, &[(Role::Supervisor, "vm-01", &vm)]);
    server.expect_frame("hello", "vm-01");
}

#[test]
fn a_revoked_key_is_refused_from_its_next_message_on_and_sent_nothing() {
    let (vm, other) = (new_key_pair().unwrap(), new_key_pair().unwrap());
    let mut server = Server::start(&[
        (Role::Supervisor, "vm-01", &vm),
        (Role::Supervisor, "vm-02", &other),
    ]);
    let revoked = Caller::with_keys(&vm, &server.public).connect(&server.tasks);
    revoked.send_text("hello");
    let peer = server.expect_frame("hello", "vm-01");
    let staying = Caller::with_keys(&other, &server.public).connect(&server.tasks);
    staying.send_text("hello");
    server.expect_frame("hello", "vm-02");
    server.revoke("vm-01");
    server
        .sockets
        .outbox()
        .send_to(TASKS, &peer, b"secret".to_vec());
    for _ in 0..100 {
        revoked.send_text("still here");
        staying.send_text("me too");
        server.expect_frame("me too", "vm-02");
    }
    let heard = server.arrived.recv_timeout(Duration::from_millis(300));
    assert!(heard.is_err(), "{heard:?}");
    // Once the key is admitted again, the same connection works in both directions. Frames that were held back in the
    // meantime do not arrive.
    server.allow_key(Role::Supervisor, "vm-01-back", &vm);
    revoked.send_text("back");
    let peer = server.expect_frame_after("still here", "back", "vm-01-back");
    server
        .sockets
        .outbox()
        .send_to(TASKS, &peer, b"open".to_vec());
    revoked.expect_text("open");
}

#[test]
fn a_key_that_changes_its_role_loses_access_to_its_former_sockets() {
    let (vm, other) = (new_key_pair().unwrap(), new_key_pair().unwrap());
    let mut server = Server::start(&[
        (Role::Supervisor, "vm-01", &vm),
        (Role::Supervisor, "vm-02", &other),
    ]);
    let demoted = Caller::with_keys(&vm, &server.public).connect(&server.tasks);
    demoted.send_text("hello");
    server.expect_frame("hello", "vm-01");
    let staying = Caller::with_keys(&other, &server.public).connect(&server.tasks);
    server.revoke("vm-01");
    server.allow_key(Role::Client, "vm-01", &vm);
    for _ in 0..100 {
        demoted.send_text("still here");
        staying.send_text("me too");
        server.expect_frame("me too", "vm-02");
    }
    let asking = Caller::with_keys(&vm, &server.public).connect(&server.control);
    asking.send_text("may I ask");
    server.expect_frame("may I ask", "vm-01");
}

#[test]
fn claiming_another_peers_routing_id_does_not_divert_its_messages() {
    let (vm, thief) = (new_key_pair().unwrap(), new_key_pair().unwrap());
    let server = Server::start(&[
        (Role::Supervisor, "vm-01", &vm),
        (Role::Supervisor, "vm-02", &thief),
    ]);
    let named = |keys| {
        let caller = Caller::with_keys(keys, &server.public);
        caller.socket.set_identity(b"vm-01").unwrap();
        caller.connect(&server.tasks)
    };
    let owner = named(&vm);
    owner.send_text("hello");
    let peer = server.expect_frame("hello", "vm-01");
    let spoofer = named(&thief);
    spoofer.send_text("I am vm-01");
    assert!(!spoofer.wait_and_check_refused(), "its key is good");
    for _ in 0..10 {
        server
            .sockets
            .outbox()
            .send_to(TASKS, &peer, b"task".to_vec());
        owner.expect_text("task");
        owner.send_text("done");
        server.expect_frame("done", "vm-01");
    }
    assert_eq!(
        spoofer.socket.recv_bytes(zmq::DONTWAIT),
        Err(zmq::Error::EAGAIN)
    );
}

#[test]
fn garbage_on_the_port_does_not_disturb_admitted_peers() {
    use std::io::Write;
    let vm = new_key_pair().unwrap();
    let server = Server::start(&[(Role::Supervisor, "vm-01", &vm)]);
    let address = server.tasks.strip_prefix("tcp://").unwrap();
    let greeting = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0CURVE\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let noises: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[0xff; 4096],
        &[0; 4096],
        greeting,
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
    ];
    let mut held = Vec::new();
    for noise in noises.iter().cycle().take(50) {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        // An error is ignored: the server may close the connection while this is sent.
        let _ = stream.write_all(noise);
        let _ = stream.write_all(&[0x06; 512]);
        held.push(stream);
    }
    let caller = Caller::with_keys(&vm, &server.public).connect(&server.tasks);
    caller.send_text("hello");
    server.expect_frame("hello", "vm-01");
}

#[test]
fn only_a_flooding_client_is_disconnected_and_refused_for_a_while() {
    let (shop, news) = (new_key_pair().unwrap(), new_key_pair().unwrap());
    let listed = [(Role::Client, "shop", &shop), (Role::Client, "news", &news)];
    let server = Server::start(&listed);
    let with = |keys| Caller::with_keys(keys, &server.public).connect(&server.control);
    let [calm, other, flooding] = [with(&news), with(&shop), with(&shop)];
    for (caller, name) in [(&calm, "news"), (&other, "shop"), (&flooding, "shop")] {
        caller.send_text("hello");
        server.expect_frame("hello", name);
    }
    let begun = Instant::now();
    for frame in ["flood", "flood", "behind it"] {
        flooding.send_text(frame);
    }
    flooding.wait_for_event(zmq::SocketEvent::DISCONNECTED);
    assert!(flooding.wait_and_check_refused(), "it comes back too soon");
    for (caller, name) in [(&calm, "news"), (&other, "shop")] {
        caller.send_text("still here");
        // Messages that the client sent after the flood are dropped.
        server.expect_frame("still here", name);
        assert!(!caller.was_disconnected(), "{name}");
    }
    while flooding.wait_and_check_refused() {}
    let refused = begun.elapsed();
    assert!(refused > Duration::from_secs(4), "{refused:?}");
    flooding.send_text("again");
    server.expect_frame("again", "shop");
}

#[test]
fn a_flood_of_a_closed_connection_does_not_disconnect_a_later_one() {
    let (shop, news) = (new_key_pair().unwrap(), new_key_pair().unwrap());
    let listed = [(Role::Client, "shop", &shop), (Role::Client, "news", &news)];
    let server = Server::start(&listed);
    let calm = Caller::with_keys(&news, &server.public);
    let flooding = Caller::with_keys(&shop, &server.public).connect(&server.control);
    for frame in ["hold", "flood", "flood"] {
        flooding.send_text(frame);
    }
    // Frames that were queued before the handshake arrive together. The flood is still unread when its sender
    // disconnects.
    server.holding.recv_timeout(WAIT).unwrap();
    wait_until(|| connections_at(&server.control) == [0]);
    flooding.socket.disconnect(&server.control).unwrap();
    // The next connection gets the same file descriptor once this one is closed. libzmq closes it only while its socket
    // is used.
    wait_until(|| {
        assert_eq!(flooding.socket.poll(zmq::POLLIN, 10), Ok(0));
        connections_at(&server.control).is_empty()
    });
    let calm = calm.connect(&server.control);
    wait_until(|| connections_at(&server.control).len() == 1);
    server.hold.send(()).unwrap();
    server.expect_frame("hold", "shop");
    for text in ["hello", "again"] {
        calm.send_text(text);
        server.expect_frame(text, "news");
    }
    assert!(!calm.was_disconnected());
}
