//! Crawls on demand: a running fleet over TCP, used by applications. The tests check the access log of
//! the sites, the store, and the answers to clients that are not webfill: libzmq, hand-written HTTP,
//! Python.

mod actions;
mod backups;
mod browser;
mod clients;
mod draining;
mod fields;
mod firehose;
mod fleet;
mod full_disk;
mod guide;
mod health;
mod intake;
mod keys;
mod lanes;
mod machine;
mod metrics;
mod nights;
mod notices;
mod priorities;
mod pruning;
mod readiness;
mod reload;
mod reopening;
mod rest;
mod resting;
mod retries;
mod same_requests;
mod scrapy_cluster;
mod service_manager;
mod sitemaps;
mod sites;
mod tenants;
mod upgrades;
mod watches;
