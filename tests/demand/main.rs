//! Crawls on demand: a running fleet over TCP, fed, watched and stopped by its applications. The
//! witnesses are the access log of the sites, the store, and clients that are not webfill: libzmq,
//! HTTP by hand, Python.

mod actions;
mod browser;
mod clients;
mod fields;
mod firehose;
mod fleet;
mod guide;
mod intake;
mod keys;
mod lanes;
mod machine;
mod priorities;
mod rest;
mod retries;
mod scrapy_cluster;
mod sites;
mod tenants;
