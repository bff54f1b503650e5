//! A client of the mapping editor, which belongs to `webfill dashboard` over a folder of mappings or to a fleet.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use webfill_tests::run::{Run, Running};
use webfill_tests::site::Web;
use webfill_tests::workplace::Workplace;

use crate::http::{Answer, Visitor};

pub(super) struct Bench {
    /// The process of the dashboard; `None` if the dashboard belongs to a fleet.
    dashboard: Option<Running>,
    pub(super) visitor: Visitor,
    pub(super) token: String,
}

impl Bench {
    /// Starts a dashboard over the mappings of a workplace. `more` are further arguments, such as the store.
    pub(super) fn start(work: &Workplace, web: &Web, more: &[&str]) -> Bench {
        Bench::start_process(work, web, more, "0.2")
    }

    /// Like [`Bench::start`], but with this delay between two requests to a site, in seconds.
    pub(super) fn with_delay(work: &Workplace, web: &Web, delay: &str) -> Bench {
        Bench::start_process(work, web, &[], delay)
    }

    fn start_process(work: &Workplace, web: &Web, more: &[&str], delay: &str) -> Bench {
        static DASHBOARDS: AtomicU32 = AtomicU32::new(0);
        let number = DASHBOARDS.fetch_add(1, Ordering::Relaxed);
        let [.., high, low] = std::process::id().to_be_bytes();
        let place = format!("127.{}.{high}.{low}:8081", 150 + number % 50);
        let resolve = web.resolve_args();
        let resolve: Vec<&str> = resolve
            .iter()
            .skip(1)
            .step_by(2)
            .map(String::as_str)
            .collect();
        let mut dashboard = Run::new(["dashboard", "--listen", &place, "--mappings"])
            .arg(work.path("mappings"))
            .args(more)
            .env("WEBFILL_FETCH_RESOLVE", resolve.join(","))
            .env("WEBFILL_POLITENESS_DELAY", delay)
            .env("WEBFILL_POLITENESS_ALLOW_PRIVATE_NETWORKS", "true")
            .in_folder(work.path("."))
            .time_limit(Duration::from_secs(600))
            .start();
        dashboard.wait_for_stderr("ready");
        let mut bench = Bench::of(Visitor::of(&place));
        bench.dashboard = Some(dashboard);
        bench
    }

    /// The mapping editor of a dashboard that is already running, for a visitor who may use it.
    pub(super) fn of(visitor: Visitor) -> Bench {
        let start = visitor.get("/dashboard/editor");
        assert_eq!(start.status, 200, "{}", start.body);
        Bench {
            dashboard: None,
            token: start.form_token(),
            visitor,
        }
    }

    pub(super) fn dashboard(&mut self) -> &mut Running {
        self.dashboard
            .as_mut()
            .expect("it has a process of its own")
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.visitor.place)
    }

    /// Posts a form that must be answered with a redirect. Returns the redirect's target.
    fn post_form(&self, path: &str, fields: &[(&str, &str)]) -> String {
        let token = [("token", self.token.as_str())];
        let answer = self.visitor.post(path, &[&token, fields].concat());
        assert_eq!(answer.status, 303, "{}", answer.body);
        answer.header("location").expect("it leads on").to_owned()
    }

    /// Creates a draft of an existing mapping, or of a new mapping with this name. Returns the path of the draft.
    pub(super) fn begin_draft(&self, mapping: &str, name: &str) -> String {
        self.post_form(
            "/dashboard/editor/new",
            &[("mapping", mapping), ("name", name)],
        )
    }

    pub(super) fn begin_repair(&self, mapping: &str) -> String {
        self.post_form("/dashboard/editor/repair", &[("mapping", mapping)])
    }

    /// Sends a request as the editor's script does: an action on a draft, given by its path, with a JSON body.
    pub(super) fn request(&self, draft: &str, action: &str, body: &Value) -> Answer {
        let origin = format!("http://{}", self.visitor.place);
        let headers = [
            ("Origin", origin.as_str()),
            ("x-webfill-token", &self.token),
            ("Content-Type", "application/json"),
        ];
        let path = format!("{draft}/{action}");
        self.visitor
            .send("POST", &path, &headers, &body.to_string())
    }

    /// Like [`Bench::request`], but checks that the request succeeds.
    pub(super) fn request_ok(&self, draft: &str, action: &str, body: &Value) -> Value {
        let answer = self.request(draft, action, body);
        assert_eq!(answer.status, 200, "{action}: {}", answer.body);
        serde_json::from_str(&answer.body).expect("JSON")
    }

    /// Like [`Bench::request`], but checks that the request is refused. Returns the reason.
    pub(super) fn request_refused(&self, draft: &str, action: &str, body: &Value) -> String {
        let answer = self.request(draft, action, body);
        assert_ne!(answer.status, 200, "{action}: {}", answer.body);
        let reported: Value = serde_json::from_str(&answer.body).expect("JSON");
        reported["error"].as_str().expect("words").to_owned()
    }

    pub(super) fn state(&self, draft: &str) -> Value {
        let answer = self.visitor.get(&format!("{draft}/state"));
        serde_json::from_str(&answer.body).expect("JSON")
    }

    /// Uploads a page into a draft.
    pub(super) fn upload(&self, draft: &str, name: &str, body: &str) -> Answer {
        self.post_raw(&format!("{draft}/upload/{name}"), body)
    }

    fn post_raw(&self, path: &str, body: &str) -> Answer {
        let origin = format!("http://{}", self.visitor.place);
        let headers = [
            ("Origin", origin.as_str()),
            ("x-webfill-token", &self.token),
            ("Content-Type", "application/octet-stream"),
        ];
        self.visitor.send("POST", path, &headers, body)
    }
}

/// A mapping with one field, which reads the first heading.
pub(super) fn heading_mapping(name: &str, host: &str) -> Value {
    json!({
        "name": name,
        "url_patterns": [{"type": "host", "pattern": host}],
        "fields": [{"name": "title", "processors": [{"type": "css", "parameters": {"selector": "h1"}}]}],
    })
}
