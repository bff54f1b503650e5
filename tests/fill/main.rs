//! `webfill fill` on a made web of four sites: judged by what the table lacks and gets, by the access log, and by the
//! evidence.

mod by_fleet;
mod collection;
mod columns;
mod demo;
mod disputed;
mod doubts;
mod few;
mod filled;
mod forms;
mod grid;
mod layouts;
mod made_web;
mod manuals;
mod odd_pages;
mod progress;
mod proof;
mod refreshed;
mod report;
mod resumed;
mod review;
mod unseen;
