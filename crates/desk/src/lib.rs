//! The desk: the web page that operators keep open. It is answered by a dispatcher beside its requests by HTTP,
//! or by `webfill desk` without one.
//!
//! # The flow of a request
//!
//! [`Desk::answer`] lets a request in ([`guard`]: by its `Host`, its `Origin` and, if it changes something, by the
//! token against forged requests; [`login`]: by its session, where tokens are asked for). What was let in is
//! a [`Visit`](visit::Visit): who asks, what for, and what the place may use. [`route`] hands it to a *place*, one file
//! in [`places`], which reads what it shows and fills a template. Whatever it answers leaves with the headers of
//! [`guard::protect`].
//!
//! The desk knows no dispatcher. What a fleet knows and does it asks by [`Fleet`], in the public language of JSON and with the
//! visitor's rights, so that rights are judged and deeds are written into the audit log where those of all other
//! clients are. The rest it reads in the store.
//!
//! # How a place is added
//!
//! 1. A file in `places/` with `pub(crate) async fn show(visit: &Visit, ...) -> Shown`. It reads with `visit.ask(...)` (the
//!    fleet) or `visit.store()`, within limits, and ends with `visit.page("NAME.html", "Title", json!({...}))`. What cannot be
//!    shown is a [`Problem`](answer::Problem). A place of forms has `pub(crate) async fn take(visit: &Visit, form: &Form) -> Shown`.
//! 2. A template `templates/NAME.html` that extends `layout.html`, and its line in `TEMPLATES` ([`templates`]). Templates
//!    escape; nothing is marked as safe in them. Filters are in [`templates`], too.
//! 3. Its path in [`route`], and, if people should find it from everywhere, its line in `NAVIGATION` ([`places`]).
//!
//! A form that has an ordinary action done needs no place: it is posted to `/desk/do/ACTION` (`places/deeds.rs`). Scripts and
//! style sheets are files in `assets/` with a line in `ASSETS` ([`assets`]); pages name them by `asset("NAME")`.
//!
//! First sight is read once for all who look ([`sight`]), told as it changes ([`live`]), and noted ([`history`]).
//!
//! What is in memory (sessions, messages) is lost with the process, and visitors log in again.

mod answer;
mod assets;
mod extractions;
mod fleet;
mod form;
mod guard;
mod history;
mod live;
mod login;
mod mapping_files;
mod paced;
mod places;
mod route;
mod secrets;
mod service;
mod sessions;
mod sight;
mod store_access;
mod templates;
mod told;
mod visit;
pub mod workbench;

pub use self::fleet::{Fleet, Visitor};
pub use self::service::{Desk, DeskSetup, entrance};
