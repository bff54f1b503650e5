//! Isolation: tests that connect to private or public addresses, or fill a disk, run in separate Linux namespaces.
//! There, loopback is the only network, and mounts are invisible to other processes.

mod bridge;

use std::process::{Child, Command};
use std::sync::OnceLock;
use std::time::Duration;

pub use bridge::Bridge;

/// The environment variable that is set inside the namespaces.
const INSIDE: &str = "TEST_IS_ISOLATED";

/// Runs `test` as root in new namespaces. `name` is the path of the test, for example
/// `run_isolated("addresses::some_test", || { ... })`. For this, the test binary is run again with only that test.
///
/// Panics if the system forbids namespaces, so such tests have the attribute `#[needs(namespaces)]`.
pub fn run_isolated(name: &str, test: impl FnOnce()) {
    if is_isolated() {
        run("ip", &["link", "set", "lo", "up"]);
        return test();
    }
    let unshare = unshare_arguments()
        .expect("this system forbids namespaces (`unshare --net --mount` failed)");
    let inner = isolated_command(unshare, name).output();
    let inner = inner.expect("unshare was found a moment ago");
    let said = String::from_utf8_lossy(&inner.stdout).into_owned()
        + &String::from_utf8_lossy(&inner.stderr);
    assert!(inner.status.success(), "isolated {name} failed:\n{said}");
    assert!(
        said.contains("1 passed"),
        "no test is called {name}:\n{said}"
    );
}

/// Like [`run_isolated`], for a long test whose output is shown immediately. If the system forbids namespaces, the test
/// runs without isolation.
pub fn run_isolated_if_possible(name: &str, test: impl FnOnce()) {
    match unshare_arguments().filter(|_| !is_isolated()) {
        Some(unshare) => {
            let status = isolated_command(unshare, name).status();
            let status = status.expect("unshare was found a moment ago");
            assert!(status.success(), "isolated {name} failed");
        }
        None if is_isolated() => run_isolated(name, test),
        None => test(),
    }
}

/// Whether this process runs inside the namespaces that [`run_isolated`] creates.
pub fn is_isolated() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// The command that runs one test of this binary in new namespaces.
fn isolated_command(unshare: &[&str], name: &str) -> Command {
    let this_binary = std::env::current_exe().expect("a running test has a path");
    let mut inner = Command::new("unshare");
    inner.args(unshare).arg(this_binary);
    inner.args(["--exact", name, "--nocapture", "--include-ignored"]);
    // From inside the namespaces, the shared database server cannot be reached.
    inner.env_remove(webfill_test_mongod::SHARED_SERVER);
    inner.env(INSIDE, "1");
    inner
}

/// Makes the kernel soon drop data that a closed connection has not sent yet. By default, it retries for so long that
/// the data may still arrive much later.
pub fn give_up_closed_connections() {
    let file = "/proc/sys/net/ipv4/tcp_orphan_retries";
    std::fs::write(file, "1").unwrap_or_else(|error| panic!("cannot write {file}: {error}"));
}

/// Adds an address to the isolated loopback, so that this test's servers can listen on it.
pub fn add_address(address: &str) {
    assert!(is_isolated(), "addresses are only added in isolation");
    if address.contains(':') {
        // With `nodad`, the address is usable at once, without a check whether another machine has it, too.
        return run(
            "ip",
            &[
                "address",
                "add",
                &format!("{address}/128"),
                "dev",
                "lo",
                "nodad",
            ],
        );
    }
    run(
        "ip",
        &["address", "add", &format!("{address}/32"), "dev", "lo"],
    );
}

/// Removes an address from the isolated loopback. After that, connections to it fail, because there is no route.
pub fn remove_address(address: &str) {
    run(
        "ip",
        &["address", "delete", &format!("{address}/32"), "dev", "lo"],
    );
}

/// A second network that stands for another machine. A virtual cable connects it to the isolated network.
pub struct Network {
    /// A process that runs inside the network. The network exists until this process ends.
    holder: Child,
}

/// The addresses of the two ends of the cable: in the isolated network and in the other one.
pub const OUR_END: &str = "10.77.0.1";
const ITS_END: &str = "10.77.0.2";

impl Network {
    /// Connects another network. From there, only [`OUR_END`] can be reached.
    pub fn connect() -> Network {
        assert!(is_isolated(), "networks are only connected in isolation");
        let mut holder = Command::new("unshare");
        holder.args(["--net", "sleep", "600"]);
        let network = Network {
            holder: holder.spawn().expect("unshare was found a moment ago"),
        };
        network.wait_until_link_is_up();
        let pid = network.holder.id().to_string();
        let cable = "link add ours type veth peer name its netns";
        let mut cable: Vec<&str> = cable.split(' ').collect();
        cable.push(&pid);
        run("ip", &cable);
        let address = format!("{OUR_END}/24");
        run("ip", &["address", "add", &address, "dev", "ours"]);
        run("ip", &["link", "set", "ours", "up"]);
        let address = format!("{ITS_END}/24");
        network.run("ip", &["address", "add", &address, "dev", "its"]);
        network.run("ip", &["link", "set", "its", "up"]);
        // Makes the kernel soon drop data that a closed connection has not sent yet. By default, it retries for so long
        // that the data may still arrive much later.
        let file = "/proc/sys/net/ipv4/tcp_orphan_retries";
        network.run("sh", &["-c", &format!("echo 1 > {file}")]);
        network
    }

    pub fn add_route(&self, to: &str) {
        self.run("ip", &["route", "add", to, "via", OUR_END]);
    }

    pub fn remove_route(&self, to: &str) {
        self.run("ip", &["route", "delete", to]);
    }

    /// Cuts a machine of a [`Bridge`] off from all other machines.
    pub fn unplug(&self) {
        self.run("ip", &["link", "set", "its", "down"]);
    }

    pub fn plug_in(&self) {
        self.run("ip", &["link", "set", "its", "up"]);
    }

    fn wait_until_link_is_up(&self) {
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let pid = self.holder.id().to_string();
        for _ in 0..12_000 {
            let network = of(&pid);
            if network.is_some() && network != of("self") {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("unshare has made no network");
    }

    /// The program that runs a command inside this network, and the first argument of the program.
    pub(crate) fn entry_command(&self) -> (&'static str, String) {
        let pid = self.holder.id();
        ("nsenter", format!("--net=/proc/{pid}/ns/net"))
    }

    fn run(&self, program: &str, args: &[&str]) {
        let (enter, network) = self.entry_command();
        run(enter, &[&[network.as_str(), program], args].concat());
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Mounts an empty file system of this size at a folder. With `again`, changes the size of the file system that is
/// mounted there.
pub fn mount_small_disk(folder: &std::path::Path, kibibytes: u32, again: bool) {
    assert!(is_isolated(), "disks are only mounted in isolation");
    let options = format!("{}size={kibibytes}k", if again { "remount," } else { "" });
    let folder = folder
        .to_str()
        .expect("a temporary folder has a plain name");
    run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", folder]);
}

/// Mounts an empty ext4 file system of this size at a folder. Its image is a file.
pub fn mount_small_ext4(folder: &std::path::Path, image: &std::path::Path, kibibytes: u32) {
    assert!(
        std::env::var_os(INSIDE).is_some(),
        "disks are only mounted in isolation"
    );
    let name = |path: &std::path::Path| path.to_str().expect("plain names").to_owned();
    let (folder, image) = (name(folder), name(image));
    run("truncate", &["-s", &format!("{kibibytes}K"), &image]);
    run("mkfs.ext4", &["-q", "-m", "0", &image]);
    run("mount", &["-o", "loop", &image, &folder]);
}

/// Mounts a file over another file of the system.
pub fn mount_file(file: &std::path::Path, over: &str) {
    assert!(is_isolated(), "files are only mounted in isolation");
    let file = file.to_str().expect("a temporary file has a plain name");
    run("mount", &["--bind", file, over]);
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run {program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
}

/// The arguments that `unshare` needs on this machine; `None` if namespaces are forbidden. Root needs no arguments;
/// other users become root of a user namespace.
fn unshare_arguments() -> Option<&'static [&'static str]> {
    static FOUND: OnceLock<Option<&[&str]>> = OnceLock::new();
    const CHOICES: [&[&str]; 2] = [
        &["--net", "--mount"],
        &["--net", "--mount", "--map-root-user"],
    ];
    *FOUND.get_or_init(|| {
        let works = |args: &&&[&str]| {
            let tried = Command::new("unshare").args(**args).arg("true").output();
            tried.is_ok_and(|output| output.status.success())
        };
        CHOICES.iter().find(works).copied()
    })
}
