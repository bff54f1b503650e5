//! [`PageContent`]: the content of a page at a check. The worker that fetches the page stores it with the page.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use webfill_document::Document;

use crate::blocks::{self, Block};
use crate::fields;
use crate::masks;
use crate::site::SiteBlocks;
use crate::unsteady::Unsteady;

/// The most bytes of a stored state, measured before compression. A larger state could not be unpacked again.
const MOST_BYTES: usize = 4 << 20;

const LEVEL: i32 = 3;

/// The content of a page at one check. It has no blocks if its fields are compared instead, or if the page is missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PageContent {
    #[serde(default, rename = "b")]
    pub blocks: Vec<Block>,
    /// The differences between two consecutive fetches, if the page was fetched twice.
    #[serde(default, rename = "u", skip_serializing_if = "Option::is_none")]
    pub(crate) unsteady: Option<Unsteady>,
    /// Whether the page is a document that could not be read, or has no text.
    #[serde(default, rename = "n", skip_serializing_if = "is_false")]
    pub(crate) is_unread: bool,
    /// The rows that the mapping has extracted, by `DATASET[KEY]`.
    #[serde(default, rename = "r", skip_serializing_if = "Map::is_empty")]
    pub(crate) rows: Map<String, Value>,
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// The error for stored bytes that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackError(String);

impl std::fmt::Display for UnpackError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot read the stored version of a check: {}", self.0)
    }
}

impl std::error::Error for UnpackError {}

impl PageContent {
    /// Content without blocks: the fields of the page are compared, or the page is missing.
    pub fn without_content() -> PageContent {
        PageContent::default()
    }

    /// The content of a page whose fields and rows are compared. `rows` has the values of each row by `DATASET[KEY]`.
    /// Rows are compared one by one up to a limit. Of all rows beyond the limit, it is only known whether any differs.
    pub fn from_rows(rows: &Map<String, Value>) -> PageContent {
        PageContent {
            rows: fields::bounded_rows(rows),
            ..PageContent::default()
        }
    }

    /// The content of a document that could not be read, or has no text.
    pub fn unread_document() -> PageContent {
        PageContent {
            is_unread: true,
            ..PageContent::default()
        }
    }

    pub fn from_tree(document: &Document) -> PageContent {
        PageContent::from_blocks(blocks::blocks_of_tree(document))
    }

    pub fn from_text(text: &str) -> PageContent {
        PageContent::from_blocks(blocks::blocks_of_text(text))
    }

    pub fn from_json(text: &str) -> PageContent {
        PageContent::from_blocks(blocks::blocks_of_json(text))
    }

    fn from_blocks(blocks: Vec<Block>) -> PageContent {
        PageContent {
            blocks,
            ..PageContent::default()
        }
    }

    /// Combines two fetches made moments apart. From then on, comparisons ignore the parts that differ between them.
    pub fn merge_second_fetch(self, second: &PageContent) -> PageContent {
        let unsteady = Unsteady::from_fetches(&self.blocks, &second.blocks);
        PageContent {
            unsteady: Some(unsteady),
            ..self
        }
    }

    /// How many milliseconds a clock on the page takes to show another time. A second fetch must be later than that to
    /// show that the clock moves. Known clocks of the site are skipped.
    pub fn clock_step_ms(&self, at_ms: i64, site: &SiteBlocks) -> Option<i64> {
        let step_ms = |block: &Block| {
            let step_ms = masks::clock_step_ms(&block.text, at_ms)?;
            let is_known = site
                .unsteady_parts()
                .form_name(block.place, &block.text)
                .is_some();
            (!is_known).then_some(step_ms)
        };
        self.blocks.iter().filter_map(step_ms).max()
    }

    /// Whether the page's two fetches differ.
    pub fn is_unsteady(&self) -> bool {
        self.unsteady
            .as_ref()
            .is_some_and(|unsteady| *unsteady != Unsteady::default())
    }

    /// Whether the page has no text.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The content in compressed form, for the store.
    pub fn pack(&self) -> Vec<u8> {
        pack(self)
    }

    pub fn unpack(bytes: &[u8]) -> Result<PageContent, UnpackError> {
        unpack(bytes)
    }
}

pub(crate) fn pack(state: &impl Serialize) -> Vec<u8> {
    compress(&serialize_json(state))
}

/// The state in compressed form. `None` if it has more than `most_bytes`, or if it is too large to be unpacked again.
pub(crate) fn pack_within(state: &impl Serialize, most_bytes: usize) -> Option<Vec<u8>> {
    let json = serialize_json(state);
    let packed = (json.len() <= MOST_BYTES).then(|| compress(&json))?;
    (packed.len() <= most_bytes).then_some(packed)
}

fn serialize_json(state: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(state).expect("its keys are texts")
}

fn compress(json: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(json, LEVEL).expect("memory is enough for what is bounded")
}

pub(crate) fn unpack<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, UnpackError> {
    let broken = |error: &dyn std::fmt::Display| UnpackError(error.to_string());
    let json = zstd::bulk::decompress(bytes, MOST_BYTES).map_err(|error| broken(&error))?;
    serde_json::from_slice(&json).map_err(|error| broken(&error))
}
