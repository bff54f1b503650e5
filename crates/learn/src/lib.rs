//! Learns a mapping from pages with known values. No network, no files, no clock of its own.
//!
//! A mapping has a chain of processors (extraction steps) for each field. Pages are grouped by site and layout
//! (`groups`). For each place of a known value (`places`), chains are made that read it (`candidates`) from anchors
//! that are likely to last (`anchors`, `survival`). The engine of the crawl runs them on all pages (`evaluate`), and
//! the likeliest is chosen (`score`). A page is evidence for a chain only if the chain would also have been found
//! without that page. If a record's values are on a linked page, the link is learned too (`links`). The same code
//! repairs mappings ([`repair`]).

mod alternatives;
mod amounts;
mod anchors;
mod beside;
mod candidates;
mod clock;
mod conflicts;
mod dates;
mod evaluate;
mod field;
mod fold;
mod foreign_parts;
mod former;
mod forms;
mod fractions;
mod generated;
mod groups;
mod guards;
mod joined;
mod known;
mod labels;
mod learning;
mod links;
mod lookups;
mod marks;
mod measures;
mod number_guard;
mod optional;
mod page_group;
mod part_numbers;
mod places;
mod ranges;
mod repair;
mod report;
mod routes;
mod rows;
mod same;
mod score;
mod sentences;
mod shape;
mod stale;
mod stand_ins;
mod steps;
mod survival;
mod telephones;
mod truth_words;
mod types;
mod unions;
mod unseen;
mod url_patterns;

pub use clock::minutes_of_day;
pub use fold::{fold_text, is_amount_sign};
pub use guards::drops_truncated_texts;
pub use learning::{learn, learn_with_links};
pub use part_numbers::is_part_of_number;
pub use repair::{FieldRepair, Repaired, repair};
pub use rows::{find_records_on_page, learn_rows, select_rows};
pub use same::{common_form, is_misspelt_value, is_partly_same, is_same_value};
pub use sentences::is_word_of_sentence;
pub use types::{
    CandidateReport, Disagreement, FieldReport, FieldStatement, KnownRow, LearnError, Learned,
    LearnedMapping, LeftOut, Limits, Page, RowsReport, RowsTask, SelectedRows, Task,
};
pub use unseen::{Appearance, Proposal, ProposedField, Teachers};
