//! The dashboard: the web page that operators keep open. It is served by a dispatcher together with its HTTP API, or
//! by `webfill dashboard` without a dispatcher.
//!
//! # The flow of a request
//!
//! [`Dashboard::answer`] checks a request: [`guard`] by its `Host`, its `Origin` and, if it changes something, by the
//! token against forged requests; [`login`] by its session, where tokens are required. An admitted request is a
//! [`Visit`](visit::Visit): the visitor, the path, and the resources of the view. [`route`] passes it to a *view*,
//! one file in [`views`], which reads its content and fills a template. Every answer gets the headers of
//! [`guard::add_security_headers`].
//!
//! The dashboard does not depend on the dispatcher. It calls a fleet by [`Fleet`], in the public language of JSON and
//! with the visitor's rights. So rights are checked, and actions are written into the audit log, in the same place as
//! for all other clients. It reads everything else from the store.
//!
//! # How to add a view
//!
//! 1. A file in `views/` with `pub(crate) async fn show(visit: &Visit, ...) -> Shown`. It reads with `visit.ask(...)`
//!    (the fleet) or `visit.open_store()`, within limits, and ends with
//!    `visit.render_page("NAME.html", "Title", json!({...}))`. Failures are a [`Problem`](answer::Problem). A view with
//!    forms has `pub(crate) async fn submit(visit: &Visit, ..., form: &Form) -> Shown`.
//! 2. A template `templates/NAME.html` that extends `layout.html`, and its line in `TEMPLATES` ([`templates`]).
//!    Templates escape; nothing is marked as safe in them. Filters are in [`templates`], too.
//! 3. Its path in [`route`], and, if the navigation should lead to it, its line among the views of an area
//!    ([`views::navigation`]).
//!
//! A form for an ordinary action needs no view: it is posted to `/dashboard/do/ACTION` (`views/actions.rs`). Scripts
//! and style sheets are files in `assets/` with a line in `ASSETS` ([`assets`]); pages name them by `asset("NAME")`.
//!
//! The data of the overview are read once for all visitors ([`snapshot`]), sent to open pages when they change
//! ([`live`]), and recorded ([`history`]).
//!
//! State in memory (sessions, messages) is lost with the process, and visitors log in again.

mod answer;
mod answering;
mod assets;
mod crawl_claims;
pub mod editor;
mod extractions;
mod filler;
mod fleet;
mod form;
mod grid;
mod guard;
mod health_log;
mod history;
mod line_file;
mod live;
mod login;
mod mapping_files;
mod messages;
mod paced;
mod project_stores;
mod route;
mod secrets;
mod service;
mod sessions;
mod site_log;
mod snapshot;
mod store_access;
mod tables;
mod templates;
mod views;
mod visit;

pub use self::answering::redirect_to_start;
pub use self::filler::{FillRun, Filler};
pub use self::fleet::{Fleet, Visitor};
pub use self::service::{Dashboard, DashboardSetup};
