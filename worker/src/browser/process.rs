//! A Chromium process: started with a fresh profile, connected to by [`DevTools`], and killed with its
//! whole process group.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use webfill_service::child;

use super::BrowserConfig;
use super::devtools::DevTools;

/// The longest time that a browser may take to answer after its start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Chromium reads DevTools messages on descriptor 3 and writes them on 4. So this shell script moves standard input and
/// output there. It also limits the memory of each of the browser's processes, in KiB.
const SHELL: [&str; 3] = [
    "/bin/sh",
    "-c",
    r#"exec 3<&0 4>&1 </dev/null >/dev/null; ulimit -d "$0"; exec "$@""#,
];

/// Flags that keep the browser off the network. A page's requests are intercepted (see [`tab`](super::tab)).
/// Connections that cannot be intercepted (WebSockets, WebRTC, preconnects) fail, because no name resolves and the
/// proxy does not exist.
const NO_NETWORK: [&str; 9] = [
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=socks5://nowhere.invalid:1",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-quic",
];

/// Flags for a browser without a screen, without a person who uses it, and with a profile for one run only.
const HEADLESS: [&str; 17] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--mute-audio",
    "--hide-scrollbars",
    "--disable-gpu",
    "--disable-sync",
    "--disable-extensions",
    "--disable-default-apps",
    "--disable-breakpad",
    "--disable-dev-shm-usage",
    "--disable-hang-monitor",
    "--disable-features=Translate,MediaRouter,OptimizationHints,BackForwardCache,Prerender2,SpeculationRulesPrefetch",
    "--blink-settings=imagesEnabled=false",
    "--password-store=basic",
];

/// A running browser, killed on drop.
pub struct Process {
    child: Child,
    profile: PathBuf,
    pub devtools: DevTools,
}

impl Process {
    /// Starts a browser with a fresh profile, which is deleted when it ends. The error is one sentence.
    pub async fn start(
        config: &BrowserConfig,
        profile: PathBuf,
        max_bytes: usize,
    ) -> Result<Process, String> {
        let cannot =
            |why: &dyn std::fmt::Display| format!("cannot start {}: {why}", config.command);
        std::fs::create_dir_all(&profile).map_err(|error| cannot(&error))?;
        let mut child = build_command(config, &profile)
            .spawn()
            .map_err(|error| cannot(&error))?;
        let words = child
            .stderr
            .take()
            .map(spawn_stderr_reader)
            .unwrap_or_default();
        let (Some(from_browser), Some(to_browser)) = (child.stdout.take(), child.stdin.take())
        else {
            return Err(cannot(&"it has no pipes"));
        };
        let devtools = DevTools::connect(from_browser, to_browser, max_bytes);
        let devtools = match devtools {
            Ok(devtools) => devtools,
            Err(error) => {
                child::kill_group_and_wait(&mut child);
                return Err(cannot(&error));
            }
        };
        let process = Process {
            child,
            profile,
            devtools,
        };
        let greeting = process.devtools.call(None, "Browser.getVersion", json!({}));
        match timeout(START_TIMEOUT, greeting).await {
            Ok(Ok(version)) => {
                let product = version["product"].as_str().unwrap_or_default();
                tracing::info!(event = "browser_started", product, "a browser was started");
                Ok(process)
            }
            Ok(Err(_)) => Err(cannot(
                &words.lock().unwrap_or_else(PoisonError::into_inner),
            )),
            Err(_) => Err(cannot(&"it does not answer")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        child::kill_group_and_wait(&mut self.child);
        // Processes of the browser may still be writing. Files that remain are deleted at the next start of this
        // worker, with the folder of all profiles.
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn build_command(config: &BrowserConfig, profile: &Path) -> Command {
    let mut command = Command::new(SHELL[0]);
    command
        .args(&SHELL[1..])
        .arg((u64::from(config.memory_mib) << 10).to_string())
        .arg(&config.command)
        .args(HEADLESS)
        .args(NO_NETWORK)
        .arg(format!(
            "--js-flags=--max-old-space-size={}",
            config.memory_mib / 4
        ))
        .arg(format!("--user-data-dir={}", profile.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if !config.sandbox {
        command.arg("--no-sandbox");
    }
    child::kill_with_parent(&mut command);
    command.arg("about:blank");
    command
}

/// Reads the browser's standard error and keeps its last line, which says why a start has failed.
fn spawn_stderr_reader(stderr: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let words = Arc::new(Mutex::new(String::from("it ended immediately")));
    let kept = Arc::clone(&words);
    let reader = move || {
        let mut lines = BufReader::new(stderr);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut lines).take(4_096).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if !text.is_empty() {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
        }
    };
    // Without this thread, the pipe is closed, and the browser's messages are lost.
    let thread = std::thread::Builder::new().name("browser-words".into());
    if let Err(error) = thread.spawn(reader) {
        tracing::warn!(event = "no_thread", %error, "what the browser says is not read");
    }
    words
}
