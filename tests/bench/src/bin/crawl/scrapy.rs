//! The program that runs Scrapy.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;
use crate::webfill::bench_file;

/// The command that runs `spider.py` with Scrapy.
pub fn command() -> Result<Command, Failure> {
    let mut command = Command::new(python_path()?);
    command.arg(bench_file("spider.py"));
    Ok(command)
}

/// The Python interpreter that has Scrapy: the one installed by `tests/bench/run.sh`, or the one in SCRAPY_PYTHON.
fn python_path() -> Result<PathBuf, Failure> {
    let path = match std::env::var_os("SCRAPY_PYTHON") {
        Some(path) => PathBuf::from(path),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.cache/scrapy/bin/python"),
    };
    if !path.exists() {
        return Err(format!("{} is missing: tests/bench/run.sh makes it", path.display()).into());
    }
    Ok(path)
}

/// The version of the installed Scrapy.
pub fn version() -> Result<String, Failure> {
    let output = Command::new(python_path()?)
        .args([
            "-c",
            "import scrapy, sys; print(scrapy.__version__, 'on Python', sys.version.split()[0])",
        ])
        .output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
