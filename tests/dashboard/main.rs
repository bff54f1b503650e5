//! Tests the dashboard from outside, by handwritten requests and in a real Chromium. Its effects are checked in the
//! access log of the sites, the store and the audit log.

mod access;
mod doing;
mod editor;
mod fleet;
mod http;
mod jobs;
mod looks;
mod mongodb;
mod overview;
mod records;
mod scene;
mod tables;
mod views;
