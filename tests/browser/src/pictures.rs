//! Screenshots of pages.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use crate::{Browser, text_of};

/// Higher pages are cut.
const MOST_HIGH: u32 = 4_000;

/// The time to repaint after a change of the window's size; charts are drawn again.
const PAINTED_WITHIN: Duration = Duration::from_millis(250);

impl Browser {
    /// Stores a picture of the whole page as `target/dashboard-screenshots/NAME.png`, for people. Returns its path.
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let folder = screenshots();
        fs::create_dir_all(&folder).expect("our own folder");
        let path = folder.join(format!("{name}.png"));
        let metrics = self.command("Page.getLayoutMetrics", json!({}));
        let size = |of: &str, side: &str| metrics[of][side].as_f64().unwrap_or(0.0) as u32;
        let width = size("cssLayoutViewport", "clientWidth");
        let height = size("cssContentSize", "height").min(MOST_HIGH);
        // The window is made as high as the page: content beyond a window's end is painted without its frames.
        let before = *self.size.lock().expect("no test panics in it");
        self.override_size(width, height);
        std::thread::sleep(PAINTED_WITHIN);
        let picture = self.command("Page.captureScreenshot", json!({"format": "png"}));
        match before {
            Some((width, height)) => self.override_size(width, height),
            None => drop(self.command("Emulation.clearDeviceMetricsOverride", json!({}))),
        }
        let picture = BASE64_STANDARD.decode(text_of(picture["data"].clone()));
        fs::write(&path, picture.expect("a picture")).expect("our own file");
        path
    }
}

/// In the build folder of the running test.
fn screenshots() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let target = test.ancestors().nth(3);
    target
        .expect("a test is in target/PROFILE/deps")
        .join("dashboard-screenshots")
}
