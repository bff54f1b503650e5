//! A Chromium of our own: started, spoken to, and gone with all its children.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use webfill_startup::child;

use super::BrowserConfig;
use super::devtools::DevTools;

/// A browser that does not answer by then is not going to.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Chromium speaks on descriptors 3 and 4. The shell puts them there: they are ours as standard input
/// and output. And it limits what each of the browser's processes may allocate, in KiB.
const SHELL: [&str; 3] = [
    "/bin/sh",
    "-c",
    r#"exec 3<&0 4>&1 </dev/null >/dev/null; ulimit -d "$0"; exec "$@""#,
];

/// A browser asks for nothing by itself. Every request of a page comes to us first (see
/// [`tab`](super::tab)); what would pass us by, because it is none (WebSockets, WebRTC, preconnects),
/// finds neither a name nor a way: the proxy does not exist.
const CLOSED: [&str; 9] = [
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

/// Nobody looks at it, and nothing is to be kept.
const PLAIN: [&str; 17] = [
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

/// A running browser. Dropped, it is killed.
pub struct Process {
    child: Child,
    profile: PathBuf,
    pub devtools: DevTools,
}

impl Process {
    /// Starts a browser with a fresh profile, which is deleted in the end. An error says why in a
    /// sentence.
    pub async fn start(
        config: &BrowserConfig,
        profile: PathBuf,
        most_bytes: usize,
    ) -> Result<Process, String> {
        let cannot =
            |why: &dyn std::fmt::Display| format!("cannot start {}: {why}", config.command);
        std::fs::create_dir_all(&profile).map_err(|error| cannot(&error))?;
        let mut child = command(config, &profile)
            .spawn()
            .map_err(|error| cannot(&error))?;
        let words = child.stderr.take().map(last_words).unwrap_or_default();
        let (Some(from_browser), Some(to_browser)) = (child.stdout.take(), child.stdin.take())
        else {
            return Err(cannot(&"it has no pipes"));
        };
        let devtools = DevTools::connect(from_browser, to_browser, most_bytes);
        let devtools = match devtools {
            Ok(devtools) => devtools,
            Err(error) => {
                child::kill_group(&mut child);
                return Err(cannot(&error));
            }
        };
        let process = Process {
            child,
            profile,
            devtools,
        };
        let greeting = process.devtools.call(None, "Browser.getVersion", json!({}));
        match timeout(START_WITHIN, greeting).await {
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
        child::kill_group(&mut self.child);
        // Processes of the browser may still be writing; what is left is deleted with the folder
        // around it at the next start.
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

fn command(config: &BrowserConfig, profile: &Path) -> Command {
    let mut command = Command::new(SHELL[0]);
    command
        .args(&SHELL[1..])
        .arg((u64::from(config.memory_mib) << 10).to_string())
        .arg(&config.command)
        .args(PLAIN)
        .args(CLOSED)
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
    child::die_with_us(&mut command);
    command.arg("about:blank");
    command
}

/// Reads what a browser has to complain of; the last line is kept, for it tells why a start failed.
fn last_words(stderr: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let words = Arc::new(Mutex::new(String::from("it has ended at once")));
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
    // Without the thread there are no words, and the pipe may fill up: better no browser than that.
    let thread = std::thread::Builder::new().name("browser-words".into());
    if let Err(error) = thread.spawn(reader) {
        tracing::warn!(event = "no_thread", %error, "what the browser says is not read");
    }
    words
}
