//! The workbench: mappings that are made by pointing, judged by what a crawl stores with them; hostile pages, with the network
//! watched; repairs.

mod bench;
mod hostile;
mod jobs;
mod pointing;
mod repairing;
mod saving;
