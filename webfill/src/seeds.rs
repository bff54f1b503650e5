use std::io::BufRead;
pub struct Seed {
    pub line: u64,
    pub id: Option<String>,
    pub urls: Vec<String>,
    pub fields: Option<serde_json::Map<String, serde_json::Value>>,
    pub want: Vec<String>,
}
pub struct SeedFault {
    pub line: u64,
    pub reason: String,
    pub text: String,
}
pub struct SeedReader {
    lines: Box<dyn Iterator<Item = (u64, String)> + Send>,
}
impl SeedReader {
    pub fn open(path: &std::path::Path) -> Result<SeedReader, String> {
        let file = std::fs::File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let lines = std::io::BufReader::new(file)
            .lines()
            .map_while(Result::ok)
            .enumerate()
            .map(|(n, l)| (n as u64 + 1, l));
        Ok(SeedReader {
            lines: Box::new(lines),
        })
    }
}
impl Iterator for SeedReader {
    type Item = Result<Seed, SeedFault>;
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (line, text) = self.lines.next()?;
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            return Some(match webfill_urls::canonical(text, None) {
                Ok(_) => Ok(Seed {
                    line,
                    id: None,
                    urls: vec![text.to_owned()],
                    fields: None,
                    want: vec![],
                }),
                Err(e) => Err(SeedFault {
                    line,
                    reason: e.to_string(),
                    text: text.to_owned(),
                }),
            });
        }
    }
}
impl Seed {
    pub fn of_url(line: u64, url: String) -> Seed {
        Seed {
            line,
            id: None,
            urls: vec![url],
            fields: None,
            want: vec![],
        }
    }
}
