//! Whole crawls, each by the real binary over real sockets, judged from outside.

mod addresses;
mod bad_usage;
mod commands;
mod fleet_keys;
mod full_disk;
mod hostile_pages;
mod http;
mod interrupted;
mod journey;
mod keyed_fleet;
mod keys_command;
mod killed;
mod mongodb_crawl;
mod mongodb_faults;
mod politeness;
mod progress_and_logs;
mod real_pages;
mod records;
mod redirects;
mod robots;
mod seeds;
mod settings;
mod the_test_site;
mod wide_web;
