//! Tests `webfill fill` on a made web of four sites. The tests check the values in the table, the access log, and the
//! evidence.

mod by_fleet;
mod collection;
mod columns;
mod demo;
mod disputed;
mod doubts;
mod encodings;
mod few;
mod filled;
mod forms;
mod full_disk;
mod grid;
mod layouts;
mod made_web;
mod manuals;
mod odd_pages;
mod odd_values;
mod progress;
mod proof;
mod refreshed;
mod report;
mod resumed;
mod review;
mod unseen;
mod wrong_options;
