//! Tries to break each limit from within: the test starts itself as a confined process, which does one thing that a
//! reader must not do.

use std::fs::File;
use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::*;
use crate::process::OUT_OF_MEMORY;

const ATTEMPT: &str = "WEBFILL_READER_ATTEMPT";

const LIMITS: Limits = Limits {
    memory_bytes: 64 << 20,
    cpu_seconds: 1,
    input_bytes: 0,
    text_bytes: 0,
};

/// Confines this process and then tries the forbidden action `what`. `Ok` means that the action was possible.
fn attempt(what: &str) -> io::Result<()> {
    let open = tempfile::tempfile()?;
    if what == "keep lower limits" {
        set_limits(libc::RLIMIT_CPU, 1, 2)?;
        set_limits(libc::RLIMIT_CPU, 100, 200)?;
        let limits = std::fs::read_to_string("/proc/self/limits")?;
        let line = limits.lines().find(|line| line.starts_with("Max cpu time"));
        let words = line.unwrap_or_default().split_whitespace().skip(3);
        assert!(words.take(2).eq(["2", "2"]), "{limits}");
        return Ok(());
    }
    confine_process(&LIMITS)?;
    perform(what, open)
}

fn perform(what: &str, mut open: File) -> io::Result<()> {
    match what {
        "nothing" => Ok(()),
        "read a file" => File::open("/etc/hostname").map(drop),
        "write a file" => File::create("/tmp/webfill-reader-was-here").map(drop),
        "list a folder" => std::fs::read_dir("/").map(drop),
        "listen" => TcpListener::bind("127.0.0.1:0").map(drop),
        "connect" => TcpStream::connect("127.0.0.1:1").map(drop),
        "send" => UdpSocket::bind("127.0.0.1:0").map(drop),
        "pair" => UnixStream::pair().map(drop),
        "start a program" => Command::new("/bin/true").status().map(drop),
        "start a thread" => std::thread::Builder::new().spawn(|| {}).map(drop),
        "kill the parent" => system_call(|| {
            // SAFETY: a plain call. With signal 0, it only checks whether the process may be signalled.
            #[allow(unsafe_code)]
            unsafe {
                libc::kill(libc::getppid(), 0)
            }
        }),
        "make code" => system_call(|| {
            let both = libc::PROT_WRITE | libc::PROT_EXEC;
            let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: it creates a new mapping that nothing else uses.
            #[allow(unsafe_code)]
            let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 4096, both, private, -1, 0) };
            if mapped == libc::MAP_FAILED { -1 } else { 0 }
        }),
        "grow a file" => open.write_all(b"x"),
        "take memory" => {
            let mut taken = Vec::new();
            loop {
                taken.push(vec![1_u8; 1 << 20]);
            }
        }
        "think forever" => loop {
            std::hint::black_box(());
        },
        other => panic!("{other}"),
    }
}

fn system_call(call: impl FnOnce() -> libc::c_int) -> io::Result<()> {
    match call() {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The code that the confined processes run. It is not a test by itself.
#[test]
fn in_a_process_of_its_own() {
    let Ok(what) = std::env::var(ATTEMPT) else {
        return;
    };
    let ended = attempt(&what);
    println!("ended: {:?}", ended.map_err(|error| error.kind()));
    std::process::exit(0);
}

fn run_confined(what: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "confine::tests::in_a_process_of_its_own",
            "--nocapture",
        ])
        .env(ATTEMPT, what)
        .output()
        .unwrap()
}

#[test]
fn a_confined_process_can_only_read_and_compute() {
    let reported = |what: &str| String::from_utf8_lossy(&run_confined(what).stdout).into_owned();
    assert!(reported("nothing").contains("ended: Ok(())"));
    assert!(reported("keep lower limits").contains("ended: Ok(())"));
    for what in [
        "read a file",
        "write a file",
        "list a folder",
        "listen",
        "connect",
        "send",
        "pair",
        "start a program",
        "start a thread",
        "kill the parent",
        "make code",
    ] {
        let reported = reported(what);
        assert!(reported.contains("ended: Err("), "{what}: {reported}");
    }
}

#[test]
fn a_file_that_is_open_does_not_grow() {
    let ended = run_confined("grow a file");
    let output = String::from_utf8_lossy(&ended.stdout);
    let was_killed = ended.status.signal() == Some(libc::SIGXFSZ);
    assert!(was_killed || output.contains("ended: Err("), "{output}");
}

#[test]
fn memory_is_limited() {
    let ended = run_confined("take memory");
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(words.contains(OUT_OF_MEMORY), "{words}");
    assert_eq!(ended.status.signal(), Some(libc::SIGABRT));
}

#[test]
fn cpu_time_is_limited() {
    let began = Instant::now();
    let ended = run_confined("think forever");
    assert_eq!(ended.status.signal(), Some(libc::SIGXCPU));
    assert!(began.elapsed() >= Duration::from_millis(900));
}

#[test]
fn without_seccomp_landlock_alone_keeps_a_thread_from_all_files() {
    let confined = std::thread::spawn(|| {
        let confinement = restrict_files()?;
        Ok::<_, io::Error>((confinement.landlock, File::open("/etc/passwd").is_ok()))
    });
    let (landlock, opened) = confined.join().unwrap().unwrap();
    assert_eq!(opened, !landlock);
    assert!(File::open("/etc/passwd").is_ok(), "this thread is free");
}
