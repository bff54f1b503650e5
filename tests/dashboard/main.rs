//! The dashboard, from outside: by requests that are written by hand, and in a real Chromium. What it does is judged by
//! the access log of the sites, the store and the audit log.

mod access;
mod doing;
mod editor;
mod fleet;
mod http;
mod looks;
mod mongodb;
mod overview;
mod scene;
mod views;
