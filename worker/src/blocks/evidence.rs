//! The evidence of a block, in a few words for a log: data of the signature, numbers and addresses, never a page's
//! text.

use webfill_urls::Url;

/// A host and path longer than this are cut.
const ADDRESS_BYTES: usize = 80;

/// The parts of the evidence, in the order they were found.
#[derive(Debug, Default)]
pub struct Evidence(String);

impl Evidence {
    pub fn add(&mut self, part: impl AsRef<str>) {
        if !self.0.is_empty() {
            self.0.push_str(", ");
        }
        self.0.push_str(part.as_ref());
    }

    /// Adds the host and path of an address, but not its query, which may hold tokens.
    pub fn add_target(&mut self, target: &Url) {
        let address = format!("{}{}", target.host_str().unwrap_or_default(), target.path());
        let end = address.floor_char_boundary(ADDRESS_BYTES);
        self.add(format!("sent to {}", &address[..end]));
    }

    pub fn into_text(self) -> String {
        self.0
    }
}
