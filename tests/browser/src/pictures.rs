//! Takes screenshots of pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use crate::{Browser, text_of};

/// The largest height of a screenshot, in pixels. Taller pages are cut.
const MOST_HIGH: u32 = 4_000;

/// A screenshot file of at least this age comes from an earlier run.
const FORMER: Duration = Duration::from_secs(30 * 60);

/// JavaScript that waits until all charts are drawn at their present width, and then for one more frame. A change of
/// the window's size makes charts draw again. Charts without data are never drawn, so it waits for at most one second.
const PAINTED: &str = "
    const done = arguments[arguments.length - 1];
    const deadline = performance.now() + 1000;
    const isDrawn = (place) => {
        const chart = place.querySelector('.u-wrap');
        if (!chart) return place.firstElementChild !== null;
        return Math.abs(chart.offsetWidth - Math.max(place.clientWidth, 200)) < 2;
    };
    const check = () => {
        const charts = [...document.querySelectorAll('#charts:not([hidden]) [data-chart]')];
        const isOver = charts.every(isDrawn) || performance.now() > deadline;
        requestAnimationFrame(isOver ? () => done(null) : check);
    };
    requestAnimationFrame(check);
";

impl Browser {
    /// Stores a picture of the whole page as `target/dashboard-screenshots/NAME.png`, for people to inspect. Returns
    /// its path.
    pub fn screenshot(&self, name: &str) -> PathBuf {
        let metrics = self.run_devtools_command("Page.getLayoutMetrics", json!({}));
        let size = |of: &str, side: &str| metrics[of][side].as_f64().unwrap_or(0.0) as u32;
        let width = size("cssLayoutViewport", "clientWidth");
        let height = size("cssContentSize", "height").min(MOST_HIGH);
        // Frames (`iframe`) below the window's lower edge are not painted, so the window is made as high as the page.
        let before = *self.size.lock().expect("no test panics in it");
        self.override_size(width, height);
        let path = self.screenshot_of_window(name);
        match before {
            Some((width, height)) => self.override_size(width, height),
            None => {
                drop(self.run_devtools_command("Emulation.clearDeviceMetricsOverride", json!({})))
            }
        }
        path
    }

    /// Like [`Browser::screenshot`], but stores only the part of the page that is visible without scrolling.
    pub fn screenshot_of_window(&self, name: &str) -> PathBuf {
        let folder = screenshots_folder();
        fs::create_dir_all(&folder).expect("our own folder");
        let path = folder.join(format!("{name}.png"));
        self.run_and_wait(PAINTED, json!([]));
        let picture = self.run_devtools_command("Page.captureScreenshot", json!({"format": "png"}));
        move_former_screenshot(&path);
        let picture = BASE64_STANDARD.decode(text_of(picture["data"].clone()));
        fs::write(&path, picture.expect("a picture")).expect("our own file");
        path
    }
}

/// Moves a picture from an earlier run to the folder `former`, so that `compare-screenshots` can compare both.
fn move_former_screenshot(path: &Path) {
    let written = fs::metadata(path).and_then(|known| known.modified());
    let age = written
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        && age.is_some_and(|age| age > FORMER)
    {
        let former = folder.join("former");
        let _ = fs::create_dir_all(&former);
        let _ = fs::rename(path, former.join(name));
    }
}

/// The folder of the screenshots, in the build folder of the running test.
fn screenshots_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let target = test.ancestors().nth(3);
    target
        .expect("a test is in target/PROFILE/deps")
        .join("dashboard-screenshots")
}
