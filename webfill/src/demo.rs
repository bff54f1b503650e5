//! `webfill demo`: serves a small web of four sites on loopback, and completes a table from it with `webfill fill`.

mod made_web;

use std::path::PathBuf;

use clap::Args;
use webfill_service::{ExitStatus, Fault};

use crate::cli::parse_options;
use crate::fill;
use crate::stdout::print;

/// The table of books that the demo completes, with gaps and a few wrong values.
const TABLE: &str = include_str!("../demo/books.csv");

#[derive(Debug, Args)]
pub struct DemoOptions {
    /// New folder for the table and all outputs [default: one among the temporary files]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
}

pub fn run(options: DemoOptions) -> Result<ExitStatus, Fault> {
    let folder = create_folder(options.folder)?;
    let shown = folder.display();
    let cannot = |error| Fault::error(format!("cannot write to {shown}: {error}"));
    std::fs::write(folder.join("books.csv"), TABLE).map_err(cannot)?;
    // Make the demo's folder the working folder, so that `webfill fill` prints plain file names for its outputs.
    std::env::set_current_dir(&folder).map_err(cannot)?;
    let address = made_web::serve()?;
    print(format_args!(
        "a web of four sites is served on {address}; books.csv in {shown} links to its pages\n"
    ))?;
    let resolve = format!("*:80:{address}");
    let arguments = [
        "books.csv",
        "--report",
        "books.html",
        "--delay",
        "0.1",
        "--allow-private-networks",
        "--resolve",
        &resolve,
    ];
    let shell = arguments
        .join(" ")
        .replace(&resolve, &format!("'{resolve}'"));
    print(format_args!("$ webfill fill {shell}"))?;
    let options = parse_options(arguments)
        .map_err(|error| Fault::error(format!("the demo's command: {error}")))?;
    let status = fill::run(options)?;
    print(format_args!(
        "\nopen {shown}/books.html in a browser; all files are in that folder; delete it when you are done"
    ))?;
    Ok(status)
}

/// Creates the folder for the table and for everything that the demo makes from it.
fn create_folder(wanted: Option<PathBuf>) -> Result<PathBuf, Fault> {
    let path = wanted.unwrap_or_else(|| {
        std::env::temp_dir().join(format!("webfill-demo-{}", std::process::id()))
    });
    // Fail if the folder exists: among temporary files, it may belong to another user.
    let made = std::fs::create_dir(&path).and_then(|()| path.canonicalize());
    made.map_err(|error| Fault::error(format!("cannot create {}: {error}", path.display())))
}
