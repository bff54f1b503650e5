//! A real Chromium, driven by chromedriver over the WebDriver protocol: JSON by plain HTTP.
//!
//! Only tests use this crate. It panics if a browser does not carry out a command.
//!
//! Each browser has its own driver and profile, which are removed when the browser is dropped. A browser only contacts
//! hosts that its pages request, and every request is recorded ([`Browser::requested_urls`]).

mod driver;
mod keyboard;
pub mod looks;
mod pictures;

use std::process::Child;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

use driver::{send_request, start_driver};
pub use keyboard::Keyboard;

const WAIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// The key of an element's id in the JSON of the WebDriver protocol.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

const FLAGS: &[&str] = &[
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    "--window-size=1280,900",
];

/// A browser with one window.
pub struct Browser {
    driver: Child,
    port: u16,
    /// The path of the session: `/session/ID`.
    session: String,
    /// The URLs requested so far.
    requested: Mutex<Vec<String>>,
    /// The size set by [`Browser::set_size`].
    size: Mutex<Option<(u32, u32)>>,
    _profile: TempDir,
}

/// An element of the open page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element(String);

impl Browser {
    pub fn start() -> Browser {
        Browser::start_with(&[])
    }

    /// Starts a browser with additional command-line flags.
    pub fn start_with(flags: &[&str]) -> Browser {
        let profile = tempfile::tempdir().expect("a folder");
        let (driver, port) = start_driver();
        let folder = format!("--user-data-dir={}", profile.path().display());
        let flags: Vec<&str> = FLAGS
            .iter()
            .chain(flags)
            .copied()
            .chain([&*folder])
            .collect();
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "acceptInsecureCerts": true,
            "goog:chromeOptions": {"binary": "/usr/bin/chromium", "args": flags},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let begun =
            send_request(port, "POST", "/session", Some(&wanted)).expect("a browser starts");
        let id = begun["sessionId"].as_str().expect("a session");
        Browser {
            driver,
            port,
            session: format!("/session/{id}"),
            requested: Mutex::default(),
            size: Mutex::default(),
            _profile: profile,
        }
    }

    pub fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// The URL of the open page.
    pub fn address(&self) -> String {
        text_of(self.get("/url"))
    }

    pub fn title(&self) -> String {
        text_of(self.get("/title"))
    }

    pub fn reload(&self) {
        self.post("/refresh", &json!({}));
    }

    /// The first element that a CSS selector matches.
    pub fn find(&self, selector: &str) -> Option<Element> {
        self.find_all(selector).into_iter().next()
    }

    pub fn find_all(&self, selector: &str) -> Vec<Element> {
        let using = json!({"using": "css selector", "value": selector});
        let found = self.post("/elements", &using);
        let found = found.as_array().expect("a list").iter();
        found
            .map(|element| Element(text_of(element[ELEMENT].clone())))
            .collect()
    }

    /// Waits until an element exists that a CSS selector matches.
    pub fn wait_for(&self, selector: &str) -> Element {
        self.wait_until(selector, || self.find(selector))
    }

    /// Repeats `check` until it returns a value. `what` describes it in the panic after the time limit.
    pub fn wait_until<T>(&self, what: &str, mut check: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + WAIT;
        loop {
            if let Some(found) = check() {
                return found;
            }
            if Instant::now() > deadline {
                self.screenshot("waited-in-vain");
                panic!(
                    "waited in vain for {what}; the page says: {}",
                    self.page_text()
                );
            }
            std::thread::sleep(POLL);
        }
    }

    /// The visible text of the page.
    pub fn page_text(&self) -> String {
        text_of(self.run_script(
            "return document.body ? document.body.innerText : ''",
            json!([]),
        ))
    }

    /// The visible text of the first element that a CSS selector matches. It is found and read in one step, because
    /// pages that update themselves replace their elements.
    pub fn text_at(&self, selector: &str) -> Option<String> {
        let read = "const one = document.querySelector(arguments[0]); return one && one.innerText";
        let text = self.run_script(read, json!([selector]));
        text.as_str().map(|text| text.trim().to_owned())
    }

    /// Waits until an element exists, and returns its text as [`Browser::text_at`] does.
    pub fn wait_for_text(&self, selector: &str) -> String {
        self.wait_until(selector, || self.text_at(selector))
    }

    pub fn attribute(&self, element: &Element, name: &str) -> Option<String> {
        let value = self.get(&format!("/element/{}/attribute/{name}", element.0));
        value.as_str().map(str::to_owned)
    }

    /// Scrolls an element into view, and clicks its middle.
    pub fn click(&self, element: &Element) {
        self.post(&format!("/element/{}/click", element.0), &json!({}));
    }

    /// Clicks the first element that a CSS selector matches, once it exists.
    pub fn wait_and_click(&self, selector: &str) {
        self.wait_until(selector, || {
            let Element(id) = self.find(selector)?;
            let path = format!("{}/element/{id}/click", self.session);
            match send_request(self.port, "POST", &path, Some(&json!({}))) {
                // The page has replaced the element since it was found, so it is searched again.
                Err(error) if error.contains("stale element reference") => None,
                clicked => Some(clicked.unwrap_or_else(|error| panic!("{selector}: {error}"))),
            }
        });
    }

    /// Replaces the text in an input element.
    pub fn fill(&self, element: &Element, text: &str) {
        self.post(&format!("/element/{}/clear", element.0), &json!({}));
        let typed = json!({"text": text});
        self.post(&format!("/element/{}/value", element.0), &typed);
    }

    /// Presses and releases keys one after another; the focused element receives them. Keys are characters or special
    /// keys such as [`TAB`], [`ENTER`] and [`DOWN`].
    pub fn press(&self, keys: &[char]) {
        let presses: Vec<Value> = keys
            .iter()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()}))
            })
            .collect();
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": presses}]});
        self.post("/actions", &actions);
    }

    /// Presses a key while a modifier such as [`CONTROL`] is held.
    pub fn press_with(&self, modifier: char, key: char) {
        let half = |kind: &str, key: char| json!({"type": kind, "value": key.to_string()});
        let presses = [
            half("keyDown", modifier),
            half("keyDown", key),
            half("keyUp", key),
            half("keyUp", modifier),
        ];
        let actions = json!({"actions": [{"type": "key", "id": "keyboard", "actions": presses}]});
        self.post("/actions", &actions);
    }

    /// Drags the mouse from one point of the window to another.
    pub fn drag(&self, from: (i64, i64), to: (i64, i64)) {
        let go =
            |(x, y): (i64, i64)| json!({"type": "pointerMove", "duration": 50, "x": x, "y": y});
        let steps = json!([
            go(from),
            {"type": "pointerDown", "button": 0},
            go(((from.0 + to.0) / 2, (from.1 + to.1) / 2)),
            go(to),
            {"type": "pointerUp", "button": 0},
        ]);
        let mouse = json!({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": steps});
        self.post("/actions", &json!({"actions": [mouse]}));
    }

    /// Runs a script in the page. Returns the script's value.
    pub fn run_script(&self, script: &str, arguments: Value) -> Value {
        let script = json!({"script": script, "args": arguments});
        self.post("/execute/sync", &script)
    }

    /// Runs a script that reports its result by calling its last argument. Returns the result.
    pub fn run_and_wait(&self, script: &str, arguments: Value) -> Value {
        let script = json!({"script": script, "args": arguments});
        self.post("/execute/async", &script)
    }

    /// Runs a command of Chromium's own DevTools protocol.
    pub fn run_devtools_command(&self, name: &str, parameters: Value) -> Value {
        let command = json!({"cmd": name, "params": parameters});
        self.post("/goog/cdp/execute", &command)
    }

    /// Sets whether the browser reports a preference for dark pages.
    pub fn set_prefers_dark(&self, is_dark: bool) {
        let value = if is_dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        self.run_devtools_command("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Sets the time zone that the browser uses.
    pub fn set_time_zone(&self, zone: &str) {
        self.run_devtools_command("Emulation.setTimezoneOverride", json!({"timezoneId": zone}));
    }

    /// Sets the size of the window's content.
    pub fn set_size(&self, width: u32, height: u32) {
        *self.size.lock().expect("no test panics in it") = Some((width, height));
        self.override_size(width, height);
    }

    fn override_size(&self, width: u32, height: u32) {
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.run_devtools_command("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// From now on, elements are searched within this frame.
    pub fn enter_frame(&self, frame: &Element) {
        let element = json!({ELEMENT: frame.0});
        self.post("/frame", &json!({"id": element}));
    }

    /// From now on, elements are searched in the page itself again.
    pub fn leave_frames(&self) {
        self.post("/frame", &json!({"id": null}));
    }

    /// All URLs that pages have requested so far, answered or not.
    pub fn requested_urls(&self) -> Vec<String> {
        let mut requested = self.requested.lock().expect("no test panics in it");
        let entries = self.post("/se/log", &json!({"type": "performance"}));
        for entry in entries.as_array().expect("a list") {
            let message = entry["message"].as_str().unwrap_or_default();
            let message: Value = serde_json::from_str(message).unwrap_or_default();
            let message = &message["message"];
            if message["method"] == "Network.requestWillBeSent" {
                let url = message["params"]["request"]["url"].as_str();
                // URLs of the browser's own pages, such as a new window, are left out.
                let url = url.filter(|url| !url.starts_with("chrome:"));
                requested.extend(url.map(str::to_owned));
            }
        }
        requested.clone()
    }

    /// The messages in the page's console since the last call, including errors of scripts and of the content policy.
    pub fn take_console(&self) -> Vec<String> {
        let entries = self.post("/se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().expect("a list").iter();
        entries
            .map(|entry| text_of(entry["message"].clone()))
            .collect()
    }

    fn get(&self, path: &str) -> Value {
        self.send_command("GET", path, None)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.send_command("POST", path, Some(body))
    }

    fn send_command(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let whole = format!("{}{path}", self.session);
        let answer = send_request(self.port, method, &whole, body);
        answer.unwrap_or_else(|error| panic!("{method} {path} {body:?}: {error}"))
    }
}

pub const TAB: char = '\u{e004}';
pub const ENTER: char = '\u{e007}';
pub const CONTROL: char = '\u{e009}';
pub const ESCAPE: char = '\u{e00c}';
pub const LEFT: char = '\u{e012}';
pub const UP: char = '\u{e013}';
pub const RIGHT: char = '\u{e014}';
pub const DOWN: char = '\u{e015}';

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = send_request(self.port, "DELETE", &self.session, None);
        if let Some(group) = i32::try_from(self.driver.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.driver.wait();
    }
}

fn text_of(value: Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
