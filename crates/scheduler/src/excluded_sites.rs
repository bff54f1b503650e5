//! Excluded sites: domains that no crawl fetches from, such as the top of a popularity ranking. Each
//! domain is stored as an eight-byte hash, so a million domains take 8 MB.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use siphasher::sip::SipHasher13;
use webfill_api::scope::{canonical_domain, printable_beginning};
use webfill_urls::Url;
use zip::ZipArchive;

/// The maximum length of a domain name in text form, by RFC 1035.
const MAX_DOMAIN_BYTES: usize = 253;

/// The maximum length of a line that is read into memory. A longer one cannot be a domain.
const MAX_LINE_BYTES: u64 = 1024;

/// Why a list of excluded sites cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExcludedSitesError {
    #[error("cannot read the excluded sites {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("excluded sites {path}, line {line}: `{text}` is not a domain", path = path.display())]
    NotADomain {
        path: PathBuf,
        line: u64,
        text: String,
    },
}

/// The domains that are never crawled.
///
/// A URL is excluded if its site (registrable domain) or its exact host is listed. Domains are
/// compared by a 64-bit hash: with a million entries, a URL is excluded by mistake with a
/// probability of one in 10^13.
#[derive(Debug, Clone, Default)]
pub struct ExcludedSites {
    hashes: Vec<u64>,
}

impl ExcludedSites {
    /// Reads `FILE`, or the first N entries of it for `FILE:N`. Each line has a domain or `rank,domain`. `.gz` and
    /// `.zip` (its first file) are unpacked. Empty lines and `#` comments are skipped.
    pub fn load(list: &str) -> Result<ExcludedSites, ExcludedSitesError> {
        let (path, first) = split_path_and_count(list);
        let read = |source| ExcludedSitesError::Read {
            path: path.to_owned(),
            source,
        };
        with_reader(path, |reader| Self::read(path, reader, first)).map_err(read)?
    }

    /// The path in `FILE` or `FILE:N`.
    pub fn path_of(list: &str) -> &Path {
        split_path_and_count(list).0
    }

    fn read(
        path: &Path,
        reader: &mut dyn Read,
        first: usize,
    ) -> io::Result<Result<ExcludedSites, ExcludedSitesError>> {
        let mut reader = BufReader::new(reader);
        let mut hashes = Vec::new();
        let mut text = Vec::new();
        let mut line = 0;
        while hashes.len() < first && read_line(&mut reader, &mut text)? {
            line += 1;
            match parse_line(&text) {
                ListedLine::Domain(domain) => hashes.push(hash(&domain)),
                ListedLine::Nothing => {}
                ListedLine::Unreadable(text) => {
                    let path = path.to_owned();
                    return Ok(Err(ExcludedSitesError::NotADomain { path, line, text }));
                }
            }
        }
        Ok(Ok(Self::from_hashes(hashes)))
    }

    fn from_hashes(mut hashes: Vec<u64>) -> ExcludedSites {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.shrink_to_fit();
        ExcludedSites { hashes }
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether a canonical URL of this site is excluded.
    pub fn excludes(&self, url: &Url, site: &str) -> bool {
        let host = url.host_str().unwrap_or_default();
        self.contains_domain(site) || (host != site && self.contains_domain(host))
    }

    /// Whether a canonical URL is excluded.
    pub(crate) fn excludes_url(&self, url: &str) -> bool {
        let parsed = || Url::parse(url).ok();
        let is_listed = |url: Url| self.excludes(&url, &webfill_urls::site(&url));
        !self.is_empty() && parsed().is_some_and(is_listed)
    }

    fn contains_domain(&self, domain: &str) -> bool {
        !self.hashes.is_empty() && self.hashes.binary_search(&hash(domain)).is_ok()
    }
}

enum ListedLine {
    Domain(String),
    Nothing,
    Unreadable(String),
}

fn parse_line(line: &[u8]) -> ListedLine {
    let line = String::from_utf8_lossy(line);
    let text = line.trim_start_matches('\u{feff}').trim();
    if text.is_empty() || text.starts_with('#') {
        return ListedLine::Nothing;
    }
    let domain = match text.split_once(',') {
        Some((rank, domain)) if rank.bytes().all(|byte| byte.is_ascii_digit()) => domain,
        _ => text,
    };
    if is_canonical(domain) {
        return ListedLine::Domain(domain.to_owned());
    }
    match canonical_domain(domain) {
        Some(domain) => ListedLine::Domain(domain),
        None => ListedLine::Unreadable(printable_beginning(text)),
    }
}

/// Whether a domain is already in canonical form. Most entries are; the others have to be parsed.
fn is_canonical(domain: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    domain.len() <= MAX_DOMAIN_BYTES
        && domain.bytes().all(plain)
        && domain.starts_with(|first: char| first.is_ascii_alphanumeric())
        && domain.ends_with(|last: char| last.is_ascii_lowercase())
        && !domain.contains("xn--")
}

/// Reads one line, and keeps at most [`MAX_LINE_BYTES`] of it. Returns false at the end of the file.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = reader
        .by_ref()
        .take(MAX_LINE_BYTES)
        .read_until(b'\n', line)?;
    if read as u64 == MAX_LINE_BYTES && line.last() != Some(&b'\n') {
        reader.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

fn split_path_and_count(list: &str) -> (&Path, usize) {
    match list
        .rsplit_once(':')
        .map(|(path, count)| (path, count.parse()))
    {
        Some((path, Ok(count))) if !path.is_empty() => (Path::new(path), count),
        _ => (Path::new(list), usize::MAX),
    }
}

fn with_reader<T>(path: &Path, read: impl FnOnce(&mut dyn Read) -> io::Result<T>) -> io::Result<T> {
    let mut file = File::open(path)?;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => read(&mut MultiGzDecoder::new(BufReader::new(file))),
        Some("zip") => {
            let mut archive = ZipArchive::new(BufReader::new(file))?;
            read(&mut archive.by_index(0)?)
        }
        _ => read(&mut file),
    }
}

fn hash(domain: &str) -> u64 {
    SipHasher13::new_with_keys(0, 0).hash(domain.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn excludes(sites: &ExcludedSites, url: &str) -> bool {
        let url = Url::parse(url).unwrap();
        sites.excludes(&url, &webfill_urls::site(&url))
    }

    fn write_list(name: &str, bytes: &[u8]) -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap().to_owned();
        (dir, path)
    }

    #[test]
    fn a_site_is_excluded_with_its_hosts_and_a_host_alone() {
        let (_dir, path) = write_list("list", b"# top\nGoogle.com\n\nwww.example.org\r\n");
        let sites = ExcludedSites::load(&path).unwrap();
        assert_eq!(sites.len(), 2);
        assert!(excludes(&sites, "https://maps.google.com/x"));
        assert!(excludes(&sites, "https://www.example.org/"));
        assert!(!excludes(&sites, "https://example.org/"));
        assert!(!excludes(&sites, "https://notgoogle.com/"));
    }

    #[test]
    fn only_the_first_n_of_a_ranking_count() {
        let (_dir, path) = write_list("top.csv", b"1,a.com\n2,b.com\n3,c.com\n");
        let sites = ExcludedSites::load(&format!("{path}:2")).unwrap();
        assert!(excludes(&sites, "http://b.com/"));
        assert!(!excludes(&sites, "http://c.com/"));
    }

    #[test]
    fn gzip_and_zip_are_unpacked() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"1,a.com\n2,b.com\n").unwrap();
        let (_dir, path) = write_list("top.csv.gz", &gzip.finish().unwrap());
        assert_eq!(ExcludedSites::load(&path).unwrap().len(), 2);

        let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
        zip.start_file("top.csv", zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(b"1,a.com\n2,b.com\n3,c.com\n").unwrap();
        let (_dir, path) = write_list("top.zip", zip.finish().unwrap().get_ref());
        let sites = ExcludedSites::load(&format!("{path}:2")).unwrap();
        assert_eq!(sites.len(), 2);
        assert!(excludes(&sites, "http://a.com/"));
    }

    #[test]
    fn international_domains_are_kept_as_urls_write_them() {
        let (_dir, path) = write_list("list", "bücher.example\n".as_bytes());
        let sites = ExcludedSites::load(&path).unwrap();
        assert!(excludes(&sites, "https://bücher.example/"));
    }

    #[test]
    fn a_line_without_a_domain_is_named() {
        let (_dir, path) = write_list("list", b"a.com\nhttp://b.com/\n");
        let error = ExcludedSites::load(&path).unwrap_err().to_string();
        assert!(
            error.contains("line 2: `http://b.com/` is not a domain"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = ExcludedSites::load("/nowhere/list.csv:5")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("cannot read the excluded sites /nowhere/list.csv: "),
            "{error}"
        );
    }

    #[test]
    fn binary_lines_are_shown_without_control_characters() {
        let (_dir, path) = write_list("list", b"\x1b[2J\x00\x07/\nb.com\n");
        let error = ExcludedSites::load(&path).unwrap_err().to_string();
        assert!(!error.contains(char::is_control), "{error:?}");
    }

    #[test]
    fn an_endless_line_is_not_read_into_memory() {
        let mut list = vec![b'a'; 3_000_000];
        list.extend_from_slice(b"\nb.com\n");
        let (_dir, path) = write_list("list", &list);
        let error = ExcludedSites::load(&path).unwrap_err();
        assert!(matches!(
            error,
            ExcludedSitesError::NotADomain { line: 1, .. }
        ));
    }
}
