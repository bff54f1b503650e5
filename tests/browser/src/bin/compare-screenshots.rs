//! Compares the screenshots of the last test run, `target/dashboard-screenshots/*.png`, with those of an earlier run,
//! `target/dashboard-screenshots/former/*.png`. Prints which differ and by how much, the largest difference first, and
//! writes `compared.html` with each differing pair side by side. A difference is not a failure: people judge it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use webfill_test_browser::Browser;

/// The most screenshots that are printed. Those that differ most come first.
const MOST: usize = 40;

/// JavaScript that computes the share of pixels that differ between two pictures, over an area that contains both
/// pictures. Faint differences, which come from the smoothing of edges, are ignored.
const COMPARE: &str = "const done = arguments[arguments.length - 1];
    const load = (data) => new Promise((resolve, reject) => {
        const image = new Image(); image.onload = () => resolve(image); image.onerror = reject;
        image.src = 'data:image/png;base64,' + data; });
    Promise.all([load(arguments[0]), load(arguments[1])]).then(([one, other]) => {
        const width = Math.max(one.width, other.width), height = Math.max(one.height, other.height);
        const pixels = (image) => { const canvas = new OffscreenCanvas(width, height); const to = canvas.getContext('2d');
            to.drawImage(image, 0, 0); return to.getImageData(0, 0, width, height).data; };
        const [a, b] = [pixels(one), pixels(other)];
        let differ = 0;
        for (let at = 0; at < a.length; at += 4)
            if (Math.abs(a[at] - b[at]) + Math.abs(a[at + 1] - b[at + 1]) + Math.abs(a[at + 2] - b[at + 2]) + Math.abs(a[at + 3] - b[at + 3]) > 48) differ += 1;
        done(differ / (width * height));
    }, (error) => done(String(error)));";

fn main() {
    let folder = std::env::args().nth(1);
    let folder = folder.unwrap_or_else(|| String::from("target/dashboard-screenshots"));
    let folder = Path::new(&folder);
    let former = folder.join("former");
    let pairs = png_names(folder)
        .into_iter()
        .filter(|name| former.join(name).is_file());
    let pairs: Vec<String> = pairs.collect();
    if pairs.is_empty() {
        println!(
            "no former screenshots in {} to compare with",
            former.display()
        );
        return;
    }
    let browser = Browser::start();
    browser.open("about:blank");
    let mut compared: Vec<(f64, &String)> = pairs
        .iter()
        .map(|name| {
            (
                differing_share(&browser, &folder.join(name), &former.join(name)),
                name,
            )
        })
        .collect();
    compared.sort_by(|one, other| other.0.total_cmp(&one.0));
    let differ = compared.iter().filter(|(share, _)| *share > 0.0);
    println!(
        "{} of {} screenshots differ",
        differ.clone().count(),
        pairs.len()
    );
    for (share, name) in differ.take(MOST) {
        println!("{:6.2} % {name}", share * 100.0);
    }
    let list = folder.join("compared.html");
    fs::write(&list, comparison_html(&compared)).expect("our own file");
    println!("side by side: {}", list.display());
}

/// The names of the pictures in a folder.
fn png_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".png")).collect();
    names.sort();
    names
}

fn differing_share(browser: &Browser, one: &Path, other: &Path) -> f64 {
    let read = |path: &Path| fs::read(path).expect("a picture");
    let (one, other) = (read(one), read(other));
    if one == other {
        return 0.0;
    }
    let texts = [one, other].map(|bytes| BASE64_STANDARD.encode(bytes));
    match browser.run_and_wait(COMPARE, json!(texts)) {
        Value::Number(share) => share.as_f64().unwrap_or(1.0),
        // A picture that cannot be read counts as completely different.
        _ => 1.0,
    }
}

fn comparison_html(compared: &[(f64, &String)]) -> String {
    let mut html = String::from(
        "<!doctype html><meta charset=utf-8><title>Screenshots</title>\
         <style>body{font:15px system-ui}div{display:grid;grid-template-columns:1fr 1fr;gap:1rem}img{width:100%;border:1px solid #999}</style>",
    );
    for (share, name) in compared.iter().filter(|(share, _)| *share > 0.0) {
        let _ = write!(
            html,
            "<h2>{name}: {:.2} %</h2><div><img src='former/{name}' alt='before'><img src='{name}' alt='now'></div>",
            share * 100.0
        );
    }
    html
}
