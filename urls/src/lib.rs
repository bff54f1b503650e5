//! URLs as webfill sees them: one canonical form, the site a URL belongs to,
//! its origin, the hash its page is stored under, and which addresses and
//! ports may be reached at all. No I/O and no state.

pub mod address;
mod canonical;
mod escapes;
mod hashes;
pub mod ports;
mod site;

pub use canonical::{MAX_URL_BYTES, UrlRefusal, canonical};
pub use escapes::normalised_escapes;
pub use hashes::{content_hash, page_hash};
pub use site::{origin, site};
pub use url::{Host, Position, Url};
