//! The mapping editor: mappings created by pointing, checked by the results of a crawl with them; hostile pages, with
//! the network monitored; repairs.

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
