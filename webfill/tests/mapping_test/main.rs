//! `webfill mapping test` on saved pages, judged by what it prints and how it ends.

mod choosing;
mod golden;
mod several;
mod tracing;
mod work;
