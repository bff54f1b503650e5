//! A visit: an admitted request, with the resources of its view.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use webfill_service::log::audit::add_to_dashboard_audit;
use webfill_store::{BrowseHandles, iso_time};

use crate::answer::{Problem, Shown, html};
use crate::editor::Editor;
use crate::fleet::Visitor;
use crate::service::Dashboard;
use crate::snapshot::now_ms;
use crate::templates::{self, percent_encode};
use crate::views::navigation;

/// A request that was admitted, and its visitor.
pub(crate) struct Visit {
    pub(crate) dashboard: Arc<Dashboard>,
    pub(crate) visitor: Visitor,
    pub(crate) session: Option<String>,
    /// The token against forged requests. Forms send it in the field `token`, and scripts in the header
    /// `x-webfill-token`.
    pub(crate) form_token: String,
    /// The requested path.
    pub(crate) path: String,
    /// The name-value pairs of the query, in order.
    pub(crate) query: Vec<(String, String)>,
}

/// The values for the layout around the content of every page.
#[derive(Serialize)]
struct PageLayout<'a> {
    title: &'a str,
    path: &'a str,
    /// The address of this page with its query. Forms return to it.
    here: String,
    visitor: Option<&'a str>,
    rights: String,
    can_change: bool,
    is_bound: bool,
    has_fleet: bool,
    has_login: bool,
    form_token: &'a str,
    navigation: navigation::Navigation,
}

impl Visit {
    /// The value of a query parameter; `None` if it is missing or empty.
    pub(crate) fn query_value(&self, key: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == key);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// The address of this page with some values of its query changed. An empty value removes the parameter.
    pub(crate) fn link_with(&self, values: &[(&str, &str)]) -> String {
        let is_other = |key: &str| values.iter().any(|(name, _)| *name == key);
        let kept = self.query.iter();
        let kept = kept.map(|(key, value)| (key.as_str(), value.as_str()));
        let kept = kept.filter(|(key, _)| !is_other(key) && *key != "message");
        let all = kept.chain(values.iter().copied());
        let pairs = all.filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> = pairs
            .map(|(key, value)| format!("{}={}", percent_encode(key), percent_encode(value)))
            .collect();
        match pairs[..] {
            [] => self.path.clone(),
            _ => format!("{}?{}", self.path, pairs.join("&")),
        }
    }

    /// Requests an action from the fleet with the visitor's rights.
    pub(crate) async fn run_action(&self, action: Value) -> Result<Value, Problem> {
        let fleet = self.dashboard.fleet.as_ref();
        let fleet = fleet.ok_or_else(|| {
            Problem::not_found("no dispatcher connected: open the dispatcher's own dashboard")
        })?;
        Ok(fleet.run_action(&self.visitor, action).await?)
    }

    /// Sends a crawl request to the fleet with the visitor's rights.
    pub(crate) async fn feed(&self, request: Value) -> Result<(), Problem> {
        let fleet = self.dashboard.fleet.as_ref();
        let fleet = fleet.ok_or_else(|| Problem::not_found("no dispatcher connected"))?;
        Ok(fleet.feed(&self.visitor, request).await?)
    }

    /// Opens the store, unless it is open already.
    pub(crate) async fn open_store(&self) -> Result<BrowseHandles, Problem> {
        self.dashboard.store.get().await
    }

    pub(crate) fn has_store(&self) -> bool {
        self.dashboard.store.is_configured()
    }

    pub(crate) fn has_fleet(&self) -> bool {
        self.dashboard.fleet.is_some()
    }

    /// Whether this dashboard shows only tables, because it has no fleet, store or mapping editor.
    pub(crate) fn has_tables_only(&self) -> bool {
        let has_more = self.has_fleet() || self.has_store() || self.editor().is_some();
        !self.dashboard.tables.is_empty() && !has_more
    }

    pub(crate) fn editor(&self) -> Option<&Editor> {
        self.dashboard.editor.as_ref()
    }

    /// The mapping editor, if the visitor may use it. Visitors need the right to change all applications, because
    /// mappings are used by all.
    pub(crate) fn usable_editor(&self) -> Result<&Editor, Problem> {
        let bench = self.editor();
        let bench = bench.ok_or_else(|| {
            Problem::not_found("no mapping editor: name a mapping folder with --mappings")
        })?;
        self.require_whole_fleet()?;
        match self.can_change() {
            true => Ok(bench),
            false => Err(Problem::forbidden(
                "your token may only read; the mapping editor changes mappings",
            )),
        }
    }

    pub(crate) fn can_change(&self) -> bool {
        !self.visitor.rights.is_read_only()
    }

    /// The applications whose crawls, pages and records the visitor may see; `None` means all.
    pub(crate) fn apps(&self) -> Option<Vec<String>> {
        self.visitor.rights.apps()
    }

    /// Whether the session is still valid. Always true if no session is required.
    pub(crate) fn is_session_valid(&self) -> bool {
        let tokens = self.dashboard.protection.get().tokens;
        match (&tokens, &self.session) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(tokens), Some(session)) => self
                .dashboard
                .renew_and_get_bearer(tokens, session)
                .is_some(),
        }
    }

    /// Fails if the visitor's rights are limited to some applications, because the request concerns all of them.
    pub(crate) fn require_whole_fleet(&self) -> Result<(), Problem> {
        match self.visitor.rights.is_limited_to_apps() {
            true => Err(Problem::forbidden(
                "this concerns all applications; your token is limited to some",
            )),
            false => Ok(()),
        }
    }

    /// Fails if the visitor may not see this application.
    pub(crate) fn require_app(&self, app_id: &str) -> Result<(), Problem> {
        match self.visitor.rights.permits_app(app_id) {
            true => Ok(()),
            false => Err(Problem::forbidden("your token is not for this application")),
        }
    }

    /// Adds an action that the visitor has done at the dashboard to the audit log, if there is one. Actions of the
    /// fleet are recorded by the fleet. The entry is on disk when this returns.
    pub(crate) async fn write_audit_entry(
        &self,
        action: &str,
        about: Value,
    ) -> Result<(), Problem> {
        let Some(logs) = self.dashboard.setup.logs.clone() else {
            return Ok(());
        };
        let mut line = json!({
            "timestamp": iso_time(now_ms()),
            "action": action,
            "who": self.visitor.name.as_deref(),
            "address": self.visitor.address,
            "by": "dashboard",
            "result": "done",
        });
        if let (Value::Object(line), Value::Object(about)) = (&mut line, about) {
            line.extend(about);
            line.retain(|_, value| !value.is_null());
        }
        let line = line.to_string();
        let noting = tokio::task::spawn_blocking(move || add_to_dashboard_audit(&logs, &line));
        let noted = noting.await.map_err(Problem::internal_error)?;
        noted.map_err(|error| {
            Problem::internal_error(format!("the audit log cannot be written: {error}"))
        })
    }

    /// Renders a page. The template gets the members of `content`, the values of the layout as `dashboard`, and the
    /// result of the visitor's last action as `message`.
    pub(crate) fn render_page(&self, template: &str, title: &str, content: Value) -> Shown {
        Ok(html(200, self.render_template(template, title, content)))
    }

    pub(crate) fn render_problem(&self, problem: &Problem) -> webfill_service::http::Answer {
        let title = match problem.status {
            404 => "Not found",
            403 => "Not permitted",
            503 => "Not now",
            _ => "Error",
        };
        let content = json!({"text": problem.text});
        html(
            problem.status,
            self.render_template("problem.html", title, content),
        )
    }

    /// Renders a template with its content and the values of the layout.
    fn render_template(&self, template: &str, title: &str, mut content: Value) -> String {
        let message = self
            .query_value("message")
            .and_then(|name| self.dashboard.messages.take(name));
        let frame = PageLayout {
            title,
            path: &self.path,
            here: self.link_with(&[]),
            is_bound: self.visitor.rights.is_limited_to_apps(),
            visitor: self.visitor.name.as_deref(),
            rights: self.visitor.rights.to_string(),
            can_change: self.can_change(),
            has_fleet: self.dashboard.fleet.is_some(),
            has_login: self.session.is_some(),
            form_token: &self.form_token,
            navigation: navigation::for_visit(self),
        };
        content["dashboard"] = json!(frame);
        content["message"] = json!(message);
        templates::render(&self.dashboard.templates, template, content)
    }
}
