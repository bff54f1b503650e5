//! Real pages that `extraction/fetch-pages` has fetched. They are selected so that their average size is about 160 KB.
//! Each page is served several times, in numbered folders.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::web::{Answer, Pages, page_answer, robots_answer};

const SMALLEST: u64 = 45_000;
const LARGEST: u64 = 1_500_000;

/// The pages, read into memory.
pub struct Articles {
    answers: Vec<Answer>,
}

impl Articles {
    /// Loads the pages. The variable REAL_PAGES names another folder of HTML pages.
    pub fn load() -> Result<Articles, Failure> {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/pages");
        let folder = std::env::var_os("REAL_PAGES").map_or(kept, PathBuf::from);
        let mut files = Vec::new();
        collect_files(&folder, &mut files)?;
        files.sort();
        if files.is_empty() {
            let folder = folder.display();
            return Err(format!(
                "no pages in {folder}: tests/bench/extraction/fetch-pages gets them"
            )
            .into());
        }
        let read = |file| -> Result<Answer, Failure> {
            Ok(page_answer("text/html", &std::fs::read(file)?))
        };
        Ok(Articles {
            answers: files.into_iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// The paths of `count` pages. After all pages were used once, they repeat under another folder.
    pub fn paths(&self, count: usize) -> impl Iterator<Item = String> {
        let different = self.answers.len();
        (0..count).map(move |number| format!("/{}/{}.html", number / different, number % different))
    }

    pub fn describe(&self) -> String {
        let bytes: usize = self.answers.iter().map(|answer| answer.len()).sum();
        let different = self.answers.len();
        format!(
            "{different} different pages of {} KB on average",
            bytes / different / 1000
        )
    }
}

impl Pages for Articles {
    fn answer(&self, _host: &str, path: &str) -> Option<Answer> {
        if path == "/robots.txt" {
            return Some(robots_answer());
        }
        let (_copy, name) = path.strip_prefix('/')?.split_once('/')?;
        let number: usize = name.strip_suffix(".html")?.parse().ok()?;
        self.answers.get(number).cloned()
    }
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect_files(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
            && (SMALLEST..=LARGEST).contains(&path.metadata()?.len())
        {
            files.push(path);
        }
    }
    Ok(())
}
