//! `webfill demo`: serves a small fictional site of profiles on loopback and crawls it, with the same
//! code that crawls the web: robots.txt, delays, mappings, records.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;
use webfill_service::{ExitStatus, Fault};
use webfill_store::{ExportFilter, ExportKind};

use crate::cli::{Cli, Command, CrawlOptions, DemoOptions};
use crate::crawl::Crawl;
use crate::stdout::tell;

/// A file of the demo, compiled into the binary.
struct Asset {
    path: &'static str,
    text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/demo_assets.rs"));

/// The host that the demo's URLs name.
const HOST: &str = "profiles.example";

pub fn run(options: DemoOptions) -> Result<ExitStatus, Fault> {
    let folder = DemoFolder::create()?;
    let address = serve()?;
    let store = match &options.store {
        Some(uri) => uri.clone(),
        None => format!("sqlite:{}", folder.path.join("demo.db").display()),
    };
    tell(format_args!(
        "a small site of profiles is served on {address}; its records miss fields, this crawl fills them in\n"
    ))?;
    let crawl_options = crawl_options(&folder.path, &store, &address)?;
    let (summary, end) = Crawl::prepare(crawl_options)?.run()?;
    print_records(&store, &summary.crawl_id)?;
    tell(format_args!("\n{}", summary.text().trim_end()))?;
    if options.keep {
        tell(format_args!("kept: {}", folder.path.display()))?;
        folder.keep();
    } else if options.store.is_none() {
        tell("the temporary folder is removed again; --keep or --store URI keep the records")?;
    }
    Ok(end.status())
}

fn crawl_options(folder: &Path, store: &str, address: &str) -> Result<CrawlOptions, Fault> {
    let at = |name: &str| folder.join(name).display().to_string();
    let resolve = format!("{HOST}:80:{address}");
    let arguments = [
        "webfill",
        "crawl",
        "--seeds",
        &at("records.jsonl"),
        "--mappings",
        &at("mappings"),
        "--state",
        &at("state"),
        "--store",
        store,
        "--resolve",
        &resolve,
        "--allow-private-networks",
        "--workers",
        "2",
        "--depth",
        "2",
        "--delay",
        "0.2",
        "--progress",
        "none",
    ];
    match Cli::try_parse_from(arguments) {
        Ok(Cli {
            command: Command::Crawl(options),
        }) => Ok(*options),
        Ok(_) => Err(Fault::error("the demo's command is not a crawl")),
        Err(error) => Err(Fault::error(format!("the demo's command: {error}"))),
    }
}

/// A temporary folder for the demo's mappings, records and results.
struct DemoFolder {
    path: PathBuf,
    kept: bool,
}

impl DemoFolder {
    fn create() -> Result<DemoFolder, Fault> {
        let path = std::env::temp_dir().join(format!("webfill-demo-{}", std::process::id()));
        // Fails if it exists: in a folder shared by all users, an existing one might not be ours.
        let created = std::fs::create_dir(&path);
        let created = created.and_then(|()| std::fs::create_dir(path.join("mappings")));
        let written = created.and_then(|()| {
            let mut files = ASSETS
                .iter()
                .filter(|asset| !asset.path.starts_with("site/"));
            files.try_for_each(|asset| std::fs::write(path.join(asset.path), asset.text))
        });
        written.map_err(|error| {
            Fault::error(format!("cannot write to {}: {error}", path.display()))
        })?;
        Ok(DemoFolder { path, kept: false })
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if !self.kept {
            // An error only leaves a temporary folder behind.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Serves the site on a free loopback port until the process ends.
fn serve() -> Result<String, Fault> {
    let cannot = |error| Fault::error(format!("cannot serve the demo's site: {error}"));
    let listener = TcpListener::bind("127.0.0.1:0").map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?.to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // An error means that the client has disconnected.
                let _ = answer(stream);
            });
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut request = String::new();
    while reader.read_line(&mut request)? > 0 {
        let mut header = String::new();
        while reader.read_line(&mut header)? > 2 {
            header.clear();
        }
        let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
        stream.write_all(&response(&path))?;
        request.clear();
    }
    Ok(())
}

fn response(path: &str) -> Vec<u8> {
    let name = match path.trim_start_matches('/') {
        "" => "site/index.html".to_owned(),
        "robots.txt" => "site/robots.txt".to_owned(),
        page => format!("site/{}.html", page.trim_end_matches(".html")),
    };
    let found = ASSETS.iter().find(|asset| asset.path == name);
    let (status, body) = found.map_or(("404 Not Found", "no such page"), |asset| {
        ("200 OK", asset.text)
    });
    let kind = if name.ends_with(".txt") {
        "text/plain"
    } else {
        "text/html"
    };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Prints the records from the store.
fn print_records(store: &str, crawl_id: &str) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::error(format!("cannot read the records: {error}")))?;
    let uri = store.parse().map_err(Fault::usage)?;
    let filter = ExportFilter {
        app_id: None,
        crawl_id: Some(crawl_id.to_owned()),
        dataset: None,
        extractions: false,
        looks: false,
        parents: false,
    };
    let mut print = |record: serde_json::Value| {
        tell(format_args!(
            "{}  {}  missing: {}",
            record["record_id"], record["fields"], record["missing"]
        ))
        .map_err(|fault| std::io::Error::other(fault.message))
    };
    runtime
        .block_on(async {
            let store = webfill_store::open_existing(&uri).await?;
            store.export(ExportKind::Records, &filter, &mut print).await
        })
        .map(drop)
        .map_err(|error| Fault::error(error.to_string()))
}
