//! The files of the repository, and the names that their sources declare and use.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::markdown::Document;
use crate::program::ROOT;

/// Folders without files of ours, and folders that tools fill. Paths into them are not checked.
pub const SKIPPED_FOLDERS: &[&str] = &[".git", ".cache", ".webfill", "target", "node_modules"];

/// The folder of these tests, which is skipped because it mentions names that do not exist.
const OWN_FOLDER: &str = "webfill/tests/documents";

const SOURCE_ENDINGS: &[&str] = &["rs", "py", "sh", "toml", "json", "js", "yml"];

/// The Rust sources by their paths.
pub fn sources() -> Vec<(String, String)> {
    let files = Repository::read().files.into_iter();
    let sources = files.filter(|path| path.ends_with(".rs"));
    sources
        .map(|path| {
            let text = std::fs::read_to_string(Path::new(ROOT).join(&path)).expect("UTF-8");
            (path, text)
        })
        .collect()
}

/// The files of the repository, and the names in their sources.
pub struct Repository {
    pub files: HashSet<String>,
    /// The paths of files and folders; folders have no final slash.
    pub paths: HashSet<String>,
    pub words: HashSet<String>,
    /// The files that declare a name, by that name.
    declared: HashMap<String, Vec<String>>,
}

impl Repository {
    pub fn read() -> Repository {
        let mut repository = Repository {
            files: HashSet::new(),
            paths: HashSet::from([String::new()]),
            words: HashSet::new(),
            declared: HashMap::new(),
        };
        repository.add_folder(Path::new(ROOT), "");
        repository
    }

    fn add_folder(&mut self, folder: &Path, name: &str) {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let base = entry.file_name().to_string_lossy().into_owned();
            let path = join_path(name, &base);
            if entry.path().is_dir() {
                if !SKIPPED_FOLDERS.contains(&base.as_str()) {
                    self.paths.insert(path.clone());
                    self.add_folder(&entry.path(), &path);
                }
                continue;
            }
            self.paths.insert(path.clone());
            if is_source(&path) && !path.starts_with(OWN_FOLDER) {
                let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
                self.add_source(&path, &text);
            }
            self.files.insert(path);
        }
    }

    fn add_source(&mut self, path: &str, text: &str) {
        for line in text.lines() {
            self.words.extend(words(line).map(str::to_owned));
            for name in declared_names(line) {
                let files = self.declared.entry(name.to_owned()).or_default();
                if files.last().is_none_or(|last| last != path) {
                    files.push(path.to_owned());
                }
            }
        }
    }

    pub fn documents(&self) -> Vec<Document> {
        let mut paths: Vec<&String> = self.files.iter().collect();
        paths.retain(|path| path.ends_with(".md"));
        paths.sort();
        paths.into_iter().map(|path| Document::read(path)).collect()
    }

    pub fn is_declared(&self, name: &str, is_in: impl Fn(&str) -> bool) -> bool {
        let files = self.declared.get(name);
        files.is_some_and(|files| files.iter().any(|file| is_in(file)))
    }

    pub fn has_member(&self, owner: &str, member: &str) -> bool {
        let is_type = owner.starts_with(|first: char| first.is_ascii_uppercase());
        match is_type {
            true => self.is_declared(member, |file| self.knows_type(file, owner)),
            false => self.is_declared(member, |file| {
                let mut parts = file.trim_end_matches(".rs").split('/');
                parts.any(|part| part == owner)
            }),
        }
    }

    /// Whether a file declares a type, or has an `impl` block for it.
    fn knows_type(&self, file: &str, name: &str) -> bool {
        if self.is_declared(name, |declares| declares == file) {
            return true;
        }
        let text = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_default();
        let mut impls = text.lines().filter(|line| line.starts_with("impl"));
        impls.any(|line| words(line).any(|word| word == name))
    }

    /// Finds the file or folder that a path in a document leads to. The path may be relative to the document's folder
    /// or to the top of the repository.
    pub fn resolve(&self, document: &Document, path: &str) -> Option<String> {
        let folder = Path::new(&document.path).parent();
        let folder = folder.and_then(Path::to_str).unwrap_or_default();
        let seen_from = [folder, ""].into_iter();
        let mut places = seen_from.filter_map(|from| normalise_path(&join_path(from, path)));
        places.find(|place| self.paths.contains(place))
    }
}

pub fn join_path(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        _ => format!("{folder}/{name}"),
    }
}

/// Removes `.`, `..` and a final slash from a path. `None` if the path leads out of the repository.
pub fn normalise_path(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_source(path: &str) -> bool {
    let ending = PathBuf::from(path);
    let ending = ending.extension().and_then(|ending| ending.to_str());
    ending.is_none_or(|ending| SOURCE_ENDINGS.contains(&ending))
}

pub fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// The names that a line of Rust declares. Items are recognised by their keywords, fields and variants by their
/// position at the beginning.
fn declared_names(line: &str) -> Vec<&str> {
    const KEYWORDS: &[&str] = &[
        "fn", "struct", "enum", "trait", "const", "static", "type", "mod", "union",
    ];
    let code = line.trim_start();
    if code.starts_with("//") {
        return Vec::new();
    }
    let all: Vec<&str> = words(code).collect();
    let pairs = all.windows(2);
    let mut names: Vec<&str> = pairs
        .filter(|pair| KEYWORDS.contains(&pair[0]))
        .map(|pair| pair[1])
        .collect();
    let is_visibility = |word: &&&str| ["pub", "crate", "super", "in"].contains(*word);
    names.extend(all.iter().find(|word| !is_visibility(word)));
    names
}
