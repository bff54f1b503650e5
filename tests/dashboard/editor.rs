//! Tests the mapping editor: mappings created by pointing, which are checked by the results of a crawl; hostile pages,
//! with the network monitored; and repairs.

mod bench;
mod by_fleet;
mod dying;
mod five_fields;
mod hostile;
mod jobs;
mod keys;
mod kinds;
mod pointing;
mod repairing;
mod rows;
mod saving;
