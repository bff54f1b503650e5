//! Real pages: those of the Python manual (Debian's `python3-doc`) that are large enough to make
//! some 160 KB on average, served several times over under numbered folders.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::web::{Answer, Pages, page};

const SMALLEST: usize = 62_000;
const LARGEST: usize = 900_000;

/// The manual, read into memory.
pub struct Manual {
    answers: HashMap<String, Answer>,
    copies: usize,
}

impl Manual {
    /// MANUAL names another folder of HTML pages.
    pub fn load(copies: usize) -> Result<Manual, Failure> {
        let folder = std::env::var_os("MANUAL")
            .map_or("/usr/share/doc/python3-doc/html".into(), PathBuf::from);
        let mut answers = HashMap::new();
        read(&folder, &folder, &mut answers)?;
        if answers.is_empty() {
            return Err(format!(
                "no pages in {}: apt-get install python3-doc",
                folder.display()
            )
            .into());
        }
        Ok(Manual { answers, copies })
    }

    /// The path of each page, of all copies.
    pub fn paths(&self) -> Vec<String> {
        let mut names: Vec<&String> = self.answers.keys().collect();
        names.sort();
        let copies = (0..self.copies)
            .flat_map(|copy| names.iter().map(move |name| format!("/{copy}/{name}")));
        copies.collect()
    }

    pub fn mean_bytes(&self) -> usize {
        self.answers
            .values()
            .map(|answer| answer.len())
            .sum::<usize>()
            / self.answers.len()
    }
}

impl Pages for Manual {
    fn answer(&self, _host: &str, path: &str) -> Option<Answer> {
        let (_copy, name) = path.strip_prefix('/')?.split_once('/')?;
        self.answers.get(name).cloned()
    }
}

fn read(folder: &Path, root: &Path, answers: &mut HashMap<String, Answer>) -> Result<(), Failure> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, root, answers)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            let body = std::fs::read(&path)?;
            if (SMALLEST..=LARGEST).contains(&body.len()) {
                let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
                answers.insert(name, page("text/html", &body));
            }
        }
    }
    Ok(())
}
