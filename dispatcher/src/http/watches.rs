//! HTTP requests about watches: one path for all of them, and one path for each.

use hyper::body::Incoming;
use hyper::{Method, Request};
use serde_json::{Value, json};

use super::answers::{Answer, refusal_answer};
use super::{HttpRequest, body};

/// Whether a path is the path of all watches, or of one watch.
pub(super) fn is_watches_path(path: &str) -> bool {
    path == "/watches" || path.starts_with("/watches/")
}

impl HttpRequest {
    pub(super) async fn answer_watches_request(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path().to_owned();
        let place: Vec<&str> = path.split('/').skip(2).collect();
        match (request.method(), &*place) {
            (&Method::GET, []) => {
                self.parse_and_answer_action(json!({"action": "watch_list"}))
                    .await
            }
            (&Method::GET, [name]) => {
                self.parse_and_answer_action(json!({"action": "watch_show", "name": name}))
                    .await
            }
            (&Method::POST, []) => self.add_watch(request).await,
            (&Method::POST, [name, order @ ("run" | "pause" | "resume" | "remove")]) => {
                let action = json!({"action": format!("watch_{order}"), "name": name});
                self.parse_and_answer_action(action).await
            }
            (_, [] | [_]) => refusal_answer(405, "expected GET, or POST /watches"),
            (_, [_, "run" | "pause" | "resume" | "remove"]) => refusal_answer(405, "expected POST"),
            _ => refusal_answer(404, "not found; a watch has run, pause, resume and remove"),
        }
    }

    /// Adds the watch in the request's body.
    async fn add_watch(&self, request: Request<Incoming>) -> Answer {
        let body = match body::read_whole(request.into_body(), &self.service.large_bodies).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        };
        match serde_json::from_slice::<Value>(&body) {
            Ok(watch) => {
                self.parse_and_answer_action(json!({"action": "watch_add", "watch": watch}))
                    .await
            }
            Err(error) => refusal_answer(400, &error.to_string()),
        }
    }
}
