//! The views: one file for each page, which reads its content.

pub(crate) mod actions;
pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod crawl;
pub(crate) mod crawls;
pub(crate) mod doubts;
pub(crate) mod find;
pub(crate) mod machines;
pub(crate) mod mapping;
pub(crate) mod mappings;
pub(crate) mod navigation;
pub(crate) mod overview;
pub(crate) mod page;
pub(crate) mod pages;
pub(crate) mod reading;
pub(crate) mod reasons;
pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod review;
pub(crate) mod site;
pub(crate) mod sites;
pub(crate) mod table;
pub(crate) mod tables;
pub(crate) mod watch;
pub(crate) mod watches;
mod words;
