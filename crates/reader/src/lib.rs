//! Reads documents: files made for people, such as PDF and the office formats. The result is their text and some
//! metadata ([`Report`]).
//!
//! Documents are untrusted, their formats are large, and third-party code reads them. So they are read in a process
//! that can do nothing else ([`process`], `webfill read-document`). It has no access to files, sockets or other
//! programs, and its memory, time and output are limited ([`confine`]). Whatever a document does to it, the result is
//! one of the values of [`Status`]. The parent of that process treats the report as untrusted input, too.

mod confine;
mod formats;
mod kind;
mod limits;
mod memory;
pub mod process;
mod report;
mod text;

pub use confine::{Confinement, confine_process};
pub use kind::{Kind, begins_as_document, coarse_kind, may_need_reader};
pub use limits::Limits;
pub use memory::NotingAllocator;
pub use report::{Metadata, NotADocument, Report, Status};
