//! The pages of real documentation from Debian packages, served under their public names.

use std::path::{Path, PathBuf};

use crate::site::{Reply, Request, Site, document, status};

/// The folder of the Python manual, as its package installs it.
pub const PYTHON: &str = "/usr/share/doc/python3-doc/html";
/// The folder of the PostgreSQL 15 manual, as its package installs it.
pub const POSTGRESQL: &str = "/usr/share/doc/postgresql-doc-15/html";

/// Serves the files of `folder` under the path `prefix` of a site.
pub fn serve_folder(site: &Site, prefix: &'static str, folder: &'static str) {
    assert!(
        Path::new(folder).is_dir(),
        "{folder} is missing: install its package"
    );
    site.serve_otherwise(move |request| file_reply(request, prefix, folder));
}

fn file_reply(request: &Request, prefix: &str, folder: &str) -> Reply {
    let path = request.path.split('?').next().unwrap_or_default();
    let Some(name) = path
        .strip_prefix(prefix)
        .filter(|name| !name.contains(".."))
    else {
        return status(404).into();
    };
    let mut file = PathBuf::from(folder).join(name.trim_start_matches('/'));
    if file.is_dir() {
        file.push("index.html");
    }
    match std::fs::read(&file) {
        Ok(body) => document(content_type(&file), body).into(),
        Err(_) => status(404).into(),
    }
}

fn content_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html",
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}
