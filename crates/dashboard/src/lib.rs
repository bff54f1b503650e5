//! The dashboard: the web page that operators keep open. It is answered by a dispatcher beside its requests by HTTP,
//! or by `webfill dashboard` without one.
//!
//! # The flow of a request
//!
//! [`Dashboard::answer`] lets a request in ([`guard`]: by its `Host`, its `Origin` and, if it changes something, by the
//! token against forged requests; [`login`]: by its session, where tokens are asked for). What was let in is
//! a [`Visit`](visit::Visit): who asks, what for, and what the view may use. [`route`] hands it to a *view*, one file
//! in [`views`], which reads what it shows and fills a template. Whatever it answers leaves with the headers of
//! [`guard::protect`].
//!
//! The dashboard knows no dispatcher. What a fleet knows and does it asks by [`Fleet`], in the public language of JSON and with the
//! visitor's rights, so that rights are judged and actions are written into the audit log where those of all other
//! clients are. The rest it reads in the store.
//!
//! # How to add a view
//!
//! 1. A file in `views/` with `pub(crate) async fn show(visit: &Visit, ...) -> Shown`. It reads with `visit.ask(...)` (the
//!    fleet) or `visit.store()`, within limits, and ends with `visit.page("NAME.html", "Title", json!({...}))`. What cannot be
//!    shown is a [`Problem`](answer::Problem). A view of forms has `pub(crate) async fn take(visit: &Visit, form: &Form) -> Shown`.
//! 2. A template `templates/NAME.html` that extends `layout.html`, and its line in `TEMPLATES` ([`templates`]). Templates
//!    escape; nothing is marked as safe in them. Filters are in [`templates`], too.
//! 3. Its path in [`route`], and, if people should find it from everywhere, its line in `NAVIGATION` ([`views`]).
//!
//! A form that has an ordinary action done needs no view: it is posted to `/dashboard/do/ACTION` (`views/actions.rs`). Scripts and
//! style sheets are files in `assets/` with a line in `ASSETS` ([`assets`]); pages name them by `asset("NAME")`.
//!
//! The overview is read once for all who look ([`snapshot`]), told as it changes ([`live`]), and noted ([`history`]).
//!
//! What is in memory (sessions, messages) is lost with the process, and visitors log in again.

mod answer;
mod assets;
pub mod editor;
mod extractions;
mod fleet;
mod form;
mod guard;
mod history;
mod live;
mod login;
mod mapping_files;
mod paced;
mod route;
mod secrets;
mod service;
mod sessions;
mod snapshot;
mod store_access;
mod templates;
mod told;
mod views;
mod visit;

pub use self::fleet::{Fleet, Visitor};
pub use self::service::{Dashboard, DashboardSetup, entrance};
