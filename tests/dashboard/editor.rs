//! The mapping editor: mappings that are made by pointing, judged by what a crawl stores with them; hostile pages, with the network
//! watched; repairs.

mod bench;
mod by_fleet;
mod dying;
mod hostile;
mod jobs;
mod kinds;
mod pointing;
mod repairing;
mod rows;
mod saving;
