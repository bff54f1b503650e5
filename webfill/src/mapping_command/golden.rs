//! Golden cases: a page, and the result that a mapping must yield on it. They are stored beside the mappings, as
//! `golden/MAPPING/CASE.html` (or another ending) with `CASE.json`. The JSON has `url`, `mapping`, `fields`, `links`,
//! `rows` if the mapping has them, and `content_type` if known. Members that the JSON omits are not compared.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use webfill_mapping::{Extraction, Listing};
use webfill_service::Fault;
use webfill_urls::Url;
use webfill_values::parse_exact_json;

use super::row_difference;
use super::sources::{Source, SourcePlace};
use super::writing::write_atomically;

/// The name of the folder of golden cases, which is beside the mappings.
pub const FOLDER: &str = "golden";

/// The members of a golden case that are compared.
const COMPARED: [&str; 4] = ["mapping", "fields", "rows", "links"];

/// The longest name, in characters, that is made from a URL for a golden case.
const MOST_NAME_CHARS: usize = 80;

/// A golden case that is stored in a folder.
pub struct Case {
    /// The path of the JSON file.
    pub path: PathBuf,
    pub url: Url,
    content_type: Option<String>,
    expected: Map<String, Value>,
}

impl Case {
    pub fn read(path: PathBuf) -> Result<Case, Fault> {
        let broken = |reason: &dyn std::fmt::Display| {
            Fault::error(format!("{}: not a golden case: {reason}", path.display()))
        };
        let text = fs::read_to_string(&path).map_err(|error| broken(&error))?;
        let expected = parse_exact_json(&text).and_then(serde_json::from_value);
        let mut expected: Map<String, Value> = expected.map_err(|error| broken(&error))?;
        let url = expected.get("url").and_then(Value::as_str);
        let url = url.ok_or_else(|| broken(&"it has no `url`"))?;
        let url = webfill_urls::canonical_url(url, None).map_err(|error| broken(&error))?;
        let content_type = expected.get("content_type").and_then(Value::as_str);
        let content_type = content_type.map(str::to_owned);
        expected.retain(|name, _| COMPARED.contains(&name.as_str()));
        Ok(Case {
            path,
            url,
            content_type,
            expected,
        })
    }

    /// The page of the case: the file with the same name and another ending.
    pub fn page(&self) -> Result<Source, Fault> {
        let missing = || {
            let path = self.path.display();
            Fault::error(format!(
                "{path}: its page is missing: no file has this name with another ending"
            ))
        };
        let folder = self.path.parent().ok_or_else(missing)?;
        let mut files: Vec<PathBuf> = visible_files(folder)?;
        files.retain(|file| *file != self.path && file.file_stem() == self.path.file_stem());
        let file = files.into_iter().next().ok_or_else(missing)?;
        Ok(Source {
            name: file.display().to_string(),
            place: SourcePlace::File(file),
            url: Some(self.url.clone()),
            content_type: self.content_type.clone(),
            is_found: false,
        })
    }

    /// Compares the expected with the actual result; `None` if they are equal.
    pub fn difference(&self, found: Option<&Extraction>) -> Option<Difference> {
        let listings = found.map_or(&[][..], |found| &found.listings);
        let found = found.map_or_else(|| json!({"mapping": null}), result_json);
        let compared = |name: &&String| found.get(name.as_str()).is_some();
        let part = self.expected.keys().filter(compared);
        let part = part.map(|name| (name.clone(), found[name].clone()));
        let found = Value::Object(part.collect());
        let expected = Value::Object(self.expected.clone());
        let rows = || match self.expected.get("rows") {
            Some(expected) => row_difference::difference_lines(expected, listings),
            None => Vec::new(),
        };
        (found != expected).then(|| Difference {
            rows: rows(),
            expected,
            found,
        })
    }
}

/// The difference between the expected and the actual result of a case.
pub struct Difference {
    pub expected: Value,
    pub found: Value,
    /// The rows and fields that differ, as one line each for people.
    pub rows: Vec<String>,
}

fn result_json(extraction: &Extraction) -> Value {
    let mut result = json!({
        "mapping": extraction.mapping,
        "fields": extraction.fields,
        "links": extraction.links,
    });
    if !extraction.listings.is_empty() {
        result["rows"] = extraction.listings.iter().map(Listing::to_json).collect();
    }
    result
}

/// All golden cases of the named mappings. `folder` is the folder of all golden cases.
pub fn cases_of<'n>(
    folder: &Path,
    mappings: impl Iterator<Item = &'n str>,
) -> Result<Vec<PathBuf>, Fault> {
    let mut cases = Vec::new();
    for mapping in mappings {
        let folder = folder.join(mapping);
        if folder.is_dir() {
            let is_case = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
            cases.extend(visible_files(&folder)?.into_iter().filter(is_case));
        }
    }
    cases.sort();
    Ok(cases)
}

fn visible_files(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    let unreadable =
        |error: std::io::Error| Fault::error(format!("cannot read {}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && !name.starts_with('.') {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A golden case to be stored.
pub struct NewCase<'c> {
    /// The folder of all golden cases.
    pub folder: &'c Path,
    /// The name of the case; `None` makes one from the URL.
    pub name: Option<&'c str>,
    /// Whether to append a number to the name if another page already has it.
    pub is_numbered: bool,
    pub url: &'c Url,
    pub content_type: Option<&'c str>,
    pub body: &'c [u8],
    /// The ending of the page's file, without a dot.
    pub ending: &'c str,
    pub extraction: &'c Extraction,
}

impl NewCase<'_> {
    /// Keeps the case, and replaces an earlier case of the same URL. The page is written before its JSON, so that there
    /// is never a case without a page. An old page with another ending is removed last. Returns the path of the JSON.
    pub fn save_case(&self) -> Result<PathBuf, Fault> {
        let mapping = self.extraction.mapping.as_deref().unwrap_or_default();
        let folder = self.folder.join(mapping);
        let case = self.choose_path(&folder)?;
        let mut kept = json!({"url": self.url.as_str()});
        if let Some(content_type) = self.content_type {
            kept["content_type"] = json!(content_type);
        }
        let mut result = result_json(self.extraction);
        for name in COMPARED {
            if let Some(value) = result.get_mut(name) {
                kept[name] = value.take();
            }
        }
        // A page with the ending `json` would overwrite the JSON file of its case.
        let ending = match self.ending {
            "json" | "" => "txt",
            other => other,
        };
        let page = case.with_extension(ending);
        let former = files_beside(&case)?;
        write_atomically(&page, self.body)?;
        write_atomically(&case, format!("{kept:#}\n").as_bytes())?;
        for former in former.iter().filter(|former| **former != page) {
            fs::remove_file(former)
                .map_err(|error| Fault::error(format!("{}: {error}", former.display())))?;
        }
        Ok(case)
    }

    /// Chooses the path of the case: that of an existing case with this URL, or else the first free one.
    fn choose_path(&self, folder: &Path) -> Result<PathBuf, Fault> {
        let name = match self.name {
            Some(name) if is_file_name(name) => name.to_owned(),
            Some(name) => {
                return Err(Fault::usage(format!(
                    "--as {name}: use only letters, digits, `-` and `_`"
                )));
            }
            None => case_name_from_url(self.url),
        };
        for number in 1_u32.. {
            let case = match number {
                1 => folder.join(format!("{name}.json")),
                number => folder.join(format!("{name}-{number}.json")),
            };
            let is_free = !case.exists() && files_beside(&case)?.is_empty();
            if is_free || Case::read(case.clone()).is_ok_and(|kept| kept.url == *self.url) {
                return Ok(case);
            }
            if !self.is_numbered {
                let case = case.display();
                return Err(Fault::usage(format!(
                    "--as {name}: {case} belongs to another page; choose another name"
                )));
            }
        }
        Err(Fault::error("all names are taken"))
    }
}

/// The files of a case besides its JSON.
fn files_beside(case: &Path) -> Result<Vec<PathBuf>, Fault> {
    let Some(folder) = case.parent().filter(|folder| folder.is_dir()) else {
        return Ok(Vec::new());
    };
    let mut files = visible_files(folder)?;
    files.retain(|file| file != case && file.file_stem() == case.file_stem());
    Ok(files)
}

fn is_file_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_".contains(c);
    !name.is_empty() && name.chars().all(is_plain)
}

/// Makes a name for a golden case from the last parts of a URL: `ada_html_x_1` for
/// `https://people.example/p/ada.html?x=1`.
pub fn case_name_from_url(url: &Url) -> String {
    let path = url.path().trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    let query = url.query().map(|query| format!("_{query}"));
    let text = format!("{last}{}", query.unwrap_or_default());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let name: String = text
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(MOST_NAME_CHARS)
        .collect();
    match name.trim_matches('_') {
        "" => String::from("index"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_page_stays_until_the_new_case_is_written() {
        let folder = std::env::temp_dir().join(format!("webfill-golden-{}", std::process::id()));
        let url = Url::parse("https://people.example/ada").unwrap();
        let extraction = Extraction {
            mapping: Some("people".to_owned()),
            ..Extraction::default()
        };
        let keep = |ending: &str| {
            let case = NewCase {
                folder: &folder,
                name: None,
                is_numbered: true,
                url: &url,
                content_type: None,
                body: b"page",
                ending,
                extraction: &extraction,
            };
            case.save_case().map_err(|fault| fault.message)
        };
        let place = folder.join("people");
        keep("html").unwrap();
        // A folder has the name of the page's file, so the page cannot be written.
        fs::create_dir(place.join("ada.xml")).unwrap();
        keep("xml").unwrap_err();
        assert!(place.join("ada.html").is_file());
        assert!(place.join("ada.json").is_file());
        fs::remove_dir(place.join("ada.xml")).unwrap();
        keep("xml").unwrap();
        assert!(place.join("ada.xml").is_file());
        assert!(!place.join("ada.html").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_case_is_named_after_its_url() {
        for (url, name) in [
            ("https://people.example/p/ada.html", "ada_html"),
            ("https://people.example/", "index"),
            ("https://people.example/show/?id=7", "show_id_7"),
            ("https://people.example/%2e%2e%2f", "2e_2e_2f"),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(case_name_from_url(&url), name, "{url}");
        }
    }
}
