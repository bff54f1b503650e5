//! URLs: their canonical form, site and origin, the hash in a page's key, and the addresses and ports that may be
//! connected to. No I/O and no state.

pub mod address;
mod canonical;
mod charset;
mod dropped_parameters;
mod escapes;
mod fragment_route;
mod hashes;
pub mod ports;
mod queries;
mod site;

pub use canonical::{MAX_URL_BYTES, UrlRefusal, canonical_url, canonical_url_on_page};
pub use charset::{encoding_of_label, utf16_without_mark};
pub use dropped_parameters::DroppedParameters;
pub use encoding_rs::Encoding;
pub use escapes::normalise_escapes;
pub use fragment_route::{canonical_url_with_route, fragment_route, with_route};
pub use hashes::{chained_hash, content_hash, page_hash};
pub use site::{origin, provider, site};
pub use url::{Host, Position, Url};
