//! Tests `webfill mapping test` on saved pages, by its output and its exit code.

mod choosing;
mod golden;
mod several;
mod tracing;
mod work;
