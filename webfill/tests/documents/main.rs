//! Tests that the documents are true. Tables are compared with the program's help, settings and closed lists; mappings,
//! sessions and SQL are run. Every file and every name in the code that a document mentions must exist. The example
//! settings file has every key with its default. Every page of the manual lists the exit codes of its command. No type
//! and no circle of files that use each other is too large.

mod architecture;
mod example_settings;
mod manual;
mod markdown;
mod modules;
mod names;
mod plain_words;
mod program;
mod quick;
mod readme;
mod reference;
mod repository;
mod sessions;
mod structure;
