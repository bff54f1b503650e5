//! Tests a server whose key is replaced, and clients that trust two keys in the meantime.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;
use webfill_wire::keys::{
    AllowList, ClientKeys, HEADING, KeyPair, Role, RotationFiles, ServerKeys, TrustedKeys,
};
use webfill_wire::socket::{
    ArrivedFrame, Pattern, SocketSpec, Sockets, Subscription, new_key_pair,
};

const WAIT: Duration = Duration::from_secs(60);
const NAME: u32 = 1;

/// A folder with the files of both sides: the list of a server that admits one client, and the keys that the client
/// trusts.
struct Ground {
    folder: TempDir,
    client: KeyPair,
    endpoint: String,
}

impl Ground {
    fn new() -> Ground {
        let (folder, client) = (tempfile::tempdir().unwrap(), new_key_pair().unwrap());
        let list = format!("{HEADING}\nclient feeder {}\n", client.public);
        std::fs::write(folder.path().join("allowed"), list).unwrap();
        // A port that was free a moment ago.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
        Ground {
            folder,
            client,
            endpoint,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn trust(&self, file: &str, key: &KeyPair) {
        std::fs::write(self.file(file), key.public.to_string()).unwrap();
    }

    fn start_server(
        &self,
        own: &KeyPair,
        pattern: Pattern,
    ) -> (Sockets, mpsc::Receiver<ArrivedFrame>) {
        let keys = ServerKeys {
            own: own.clone(),
            allowed: AllowList::open(&self.file("allowed")).unwrap(),
            of_rotation: RotationFiles::default(),
        };
        let (arrivals, arrived) = mpsc::channel();
        // The address of a closed server becomes free only a moment later, so opening it is tried several times.
        let spec = SocketSpec::bind(NAME, pattern, &self.endpoint)
            .with_server_keys(Some(&keys), Role::Client);
        for _ in 0..3_000 {
            let arrivals = arrivals.clone();
            match Sockets::start(vec![spec.clone()], move |frame| drop(arrivals.send(frame))) {
                Ok(sockets) => return (sockets, arrived),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        panic!("the address is not free again");
    }

    fn start_client(
        &self,
        first: &KeyPair,
        pattern: Pattern,
    ) -> (Sockets, mpsc::Receiver<ArrivedFrame>) {
        let files = ["dispatcher.pub", "dispatcher-next.pub"].map(|name| self.file(name));
        let keys = ClientKeys {
            own: self.client.clone(),
            trusted: TrustedKeys::from_files(first.public, files.to_vec()),
        };
        let (arrivals, arrived) = mpsc::channel();
        let spec = SocketSpec::connect(NAME, pattern, &self.endpoint);
        let spec = spec.with_topics(vec!["topic".into()]).call(Some(&keys));
        let sockets = Sockets::start(vec![spec], move |frame| drop(arrivals.send(frame)));
        (sockets.unwrap(), arrived)
    }
}

/// Sends a frame again until it is received. As without keys, a frame to a server that has just closed is lost.
fn send_until_received(caller: &Sockets, arrived: &mpsc::Receiver<ArrivedFrame>, text: &str) {
    for _ in 0..600 {
        caller.outbox().send(NAME, text.into());
        while let Ok(arrived) = arrived.recv_timeout(Duration::from_millis(100)) {
            if arrived.frame == text.as_bytes() {
                return;
            }
        }
    }
    panic!("`{text}` is not heard");
}

fn next_text(arrived: &mpsc::Receiver<ArrivedFrame>) -> String {
    let arrived = arrived.recv_timeout(WAIT).expect("a frame");
    String::from_utf8(arrived.frame).unwrap()
}

/// The next key is distributed while the client is connected. The client uses it once the server has it.
#[test]
fn senders_follow_a_server_to_its_next_key() {
    for (server, client) in [
        (Pattern::Router, Pattern::Dealer),
        (Pattern::Router, Pattern::Client),
        (Pattern::Pull, Pattern::Push),
    ] {
        let ground = Ground::new();
        let (former, next) = (new_key_pair().unwrap(), new_key_pair().unwrap());
        ground.trust("dispatcher.pub", &former);
        let serving = ground.start_server(&former, server);
        let caller = ground.start_client(&former, client);
        send_until_received(&caller.0, &serving.1, "one");
        ground.trust("dispatcher-next.pub", &next);
        drop(serving);
        let serving = ground.start_server(&next, server);
        send_until_received(&caller.0, &serving.1, "two");
        // The former key returns, as if the new key had to be withdrawn.
        drop(serving);
        let serving = ground.start_server(&former, server);
        send_until_received(&caller.0, &serving.1, "three");
    }
}

#[test]
fn subscribers_follow_a_publisher_to_its_next_key() {
    let ground = Ground::new();
    let (former, next) = (new_key_pair().unwrap(), new_key_pair().unwrap());
    ground.trust("dispatcher.pub", &former);
    ground.trust("dispatcher-next.pub", &next);
    let subscriber = ground.start_client(&former, Pattern::Subscribe);
    for own in [&former, &next] {
        let publisher = ground.start_server(own, Pattern::Publish);
        let wanted = publisher.1.recv_timeout(WAIT).expect("a subscription");
        assert_eq!(
            Subscription::parse(&wanted.frame),
            Some(Subscription::Wanted(b"topic"))
        );
        let frame = own.public.to_string().into_bytes();
        publisher.0.outbox().publish(NAME, b"topic".to_vec(), frame);
        assert_eq!(next_text(&subscriber.1), own.public.to_string());
    }
}

/// No frame is sent before or after a server with an untrusted key has answered.
#[test]
fn a_server_with_an_untrusted_key_receives_nothing() {
    let ground = Ground::new();
    let keys = [(); 3].map(|()| new_key_pair().unwrap());
    let [former, next, impostor] = &keys;
    ground.trust("dispatcher.pub", former);
    ground.trust("dispatcher-next.pub", next);
    let listening = ground.start_server(impostor, Pattern::Pull);
    let caller = ground.start_client(former, Pattern::Push);
    caller.0.outbox().send(NAME, b"secret".to_vec());
    let reported = listening.1.recv_timeout(Duration::from_secs(3));
    assert!(reported.is_err(), "{reported:?}");
    assert!(caller.0.outbox().refusal_reason().is_some());
    drop(listening);
    // After the replacement, a server with the former key counts as an impostor too.
    std::fs::rename(
        ground.file("dispatcher-next.pub"),
        ground.file("dispatcher.pub"),
    )
    .unwrap();
    let listening = ground.start_server(former, Pattern::Pull);
    let reported = listening.1.recv_timeout(Duration::from_secs(3));
    assert!(reported.is_err(), "{reported:?}");
    drop(listening);
    let serving = ground.start_server(next, Pattern::Pull);
    assert_eq!(
        next_text(&serving.1),
        "secret",
        "it was kept for whom it is meant"
    );
}
