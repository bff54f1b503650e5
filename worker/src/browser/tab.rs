//! Renders one page in a tab of its own.
//!
//! 1. *Opened*: the tab navigates to the page's URL; that request is answered with the fetched body.
//! 2. *Delivered*: the document is loading.
//! 3. *Running*: its scripts run under a virtual clock. Their requests for subresources are answered.
//!    When the clock's budget ([`BrowserConfig::settle`]) is used up, the document is read.
//!
//! The browser pauses every request of the page (`Fetch.enable`) and gets the answer from the worker, so
//! that all requests are subject to the same rules. The virtual clock
//! (`Emulation.setVirtualTimePolicy`) stands still while a request is under way, so a polite wait of a
//! minute takes no time for the scripts. Otherwise it jumps from timer to timer, so that a page which
//! fills itself after three seconds costs milliseconds.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use webfill_urls::canonical_url;

use super::devtools::{CallError, DevTools, Event};
use super::subresources::{Subresource, SubresourceRequest, base64};
use super::{BrowserConfig, Page, Rendered};
use crate::blocks::is_same_page;
use crate::permits::Denied;

/// The longest time that closing a tab may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a page was not read.
#[derive(Debug)]
pub enum ReadError {
    /// The browser has died; the page may not be the cause.
    BrowserGone,
    /// The page is the cause.
    Page(PageFault),
    /// A request was no longer permitted.
    Denied,
}

/// The fault of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFault {
    /// The page's tab crashed, mostly from too much memory.
    Crashed,
    /// The page's scripts ran too long.
    TookTooLong,
    TooLarge,
}

impl From<CallError> for ReadError {
    fn from(why: CallError) -> ReadError {
        match why {
            CallError::TooLarge => ReadError::Page(PageFault::TooLarge),
            // A method is refused if the tab has just crashed or closed.
            CallError::Refused(_) => ReadError::Page(PageFault::Crashed),
            CallError::Gone => ReadError::BrowserGone,
        }
    }
}

/// A tab in a browser context of its own, so that it shares no cookies or caches with other tabs.
pub struct Tab {
    devtools: DevTools,
    context: String,
    /// The id of the tab and of its main frame.
    target: String,
    session: String,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Tab {
    pub async fn open(devtools: &DevTools, user_agent: &str) -> Result<Tab, CallError> {
        let name = |answer: Value, key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        let context = devtools.call(None, "Target.createBrowserContext", json!({}));
        let context = name(context.await?, "browserContextId");
        let params = json!({"url": "about:blank", "browserContextId": context});
        let target = devtools.call(None, "Target.createTarget", params).await?;
        let target = name(target, "targetId");
        let params = json!({"targetId": target, "flatten": true});
        let session = devtools.call(None, "Target.attachToTarget", params).await?;
        let session = name(session, "sessionId");
        let tab = Tab {
            events: devtools.subscribe(&session),
            devtools: devtools.clone(),
            context,
            target,
            session,
        };
        let denied = json!({"behavior": "deny", "browserContextId": tab.context});
        devtools
            .call(None, "Browser.setDownloadBehavior", denied)
            .await?;
        // These calls are awaited before the page is opened; otherwise some requests of the page would not be
        // intercepted.
        for (method, params) in [
            ("Page.enable", json!({})),
            ("Inspector.enable", json!({})),
            (
                "Emulation.setUserAgentOverride",
                json!({"userAgent": user_agent}),
            ),
            ("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]})),
        ] {
            tab.call(method, params).await?;
        }
        Ok(tab)
    }

    /// Closes the tab. Returns false if that failed; the browser should be replaced then.
    pub async fn close(self) -> bool {
        let params = json!({"browserContextId": self.context});
        let closed = self
            .devtools
            .call(None, "Target.disposeBrowserContext", params);
        matches!(timeout(CLOSE_TIMEOUT, closed).await, Ok(Ok(_)))
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        self.devtools
            .call(Some(&self.session), method, params)
            .await
    }

    fn notify(&self, method: &str, params: Value) {
        self.devtools.notify(Some(&self.session), method, params);
    }

    /// Renders a page and reads the document after its scripts ran. `fetch` fetches the subresources
    /// that they request, one after another.
    pub async fn render_and_read(
        &mut self,
        page: &Page<'_>,
        config: &BrowserConfig,
        fetch: impl AsyncFn(SubresourceRequest) -> Result<Subresource, Denied>,
    ) -> Result<Rendered, ReadError> {
        self.notify("Page.navigate", json!({"url": page.url.as_str()}));
        let patience = Duration::from_secs_f64(config.page_deadline);
        let mut visit = PageVisit::new(page, config);
        let mut patient_until = Instant::now() + patience;
        let mut under_way: Option<PendingFetch<'_>> = None;
        loop {
            if under_way.is_none()
                && let Some((id, request)) = visit.waiting.pop_front()
            {
                let fetched = fetch(request);
                under_way = Some(Box::pin(async move { (id, fetched.await) }));
            }
            tokio::select! {
                event = self.events.recv() => {
                    let event = event.ok_or(ReadError::BrowserGone)?;
                    match self.handle_event(&event, &mut visit)? {
                        Step::GoesOn => {}
                        Step::MovedTo(url) => return Ok(Rendered::MovedTo(url)),
                        Step::AtRest => break,
                    }
                }
                (id, part) = wait_for_fetch(&mut under_way) => {
                    under_way = None;
                    self.answer_request(&id, part.map_err(|_| ReadError::Denied)?);
                    patient_until = Instant::now() + patience;
                }
                // The deadline of the page does not apply while the page waits for the answer to a request.
                () = sleep_until(patient_until), if under_way.is_none() => {
                    return Err(ReadError::Page(PageFault::TookTooLong));
                }
            }
        }
        drop(under_way);
        let text = timeout(patience, self.read_document()).await;
        text.unwrap_or(Err(ReadError::Page(PageFault::TookTooLong)))
    }

    /// Handles one event of the page.
    fn handle_event(&self, event: &Event, visit: &mut PageVisit<'_>) -> Result<Step, ReadError> {
        match event.method.as_str() {
            "Fetch.requestPaused" if self.is_main_document(event) => match visit.stage {
                Stage::Opened => {
                    visit.stage = Stage::Delivered;
                    self.deliver_document(event, visit.page);
                }
                _ => return Ok(self.handle_navigation(event, visit.page)),
            },
            "Fetch.requestPaused" => self.handle_request(event, visit),
            "Page.frameNavigated"
                if visit.stage == Stage::Delivered && self.is_main_frame(event) =>
            {
                visit.stage = Stage::Running;
                self.start_clock(visit.settle);
            }
            "Emulation.virtualTimeBudgetExpired" if visit.stage == Stage::Running => {
                return Ok(Step::AtRest);
            }
            // Scripts are suspended until a dialog is closed.
            "Page.javascriptDialogOpening" => {
                self.notify("Page.handleJavaScriptDialog", json!({"accept": false}));
            }
            // The tab has crashed, or its scripts have closed it.
            "Inspector.targetCrashed" | "Inspector.detached" => {
                return Err(ReadError::Page(PageFault::Crashed));
            }
            _ => {}
        }
        Ok(Step::GoesOn)
    }

    fn is_main_frame(&self, event: &Event) -> bool {
        event.params["frame"]["id"] == self.target.as_str()
    }

    fn is_main_document(&self, event: &Event) -> bool {
        event.params["resourceType"] == "Document"
            && event.params["frameId"] == self.target.as_str()
    }

    fn deliver_document(&self, event: &Event, page: &Page<'_>) {
        let answer = json!({
            "requestId": event.params["requestId"],
            "responseCode": 200,
            "responseHeaders": [{"name": "Content-Type", "value": "text/html; charset=utf-8"}],
            "body": base64(page.text.as_bytes()),
        });
        self.notify("Fetch.fulfillRequest", answer);
    }

    /// The page navigates to another URL, by a script or a refresh. A page that only reloads itself is read as it is.
    fn handle_navigation(&self, event: &Event, page: &Page<'_>) -> Step {
        self.refuse_request(event);
        let request = &event.params["request"];
        let target = request["url"].as_str().unwrap_or_default();
        match canonical_url(target, None) {
            Ok(url) if request["method"] == "GET" && !is_same_page(&url, page.url) => {
                Step::MovedTo(url.into())
            }
            _ => Step::GoesOn,
        }
    }

    fn handle_request(&self, event: &Event, visit: &mut PageVisit<'_>) {
        let url = event.params["request"]["url"].as_str().unwrap_or_default();
        if url.starts_with("data:") || url.starts_with("blob:") {
            let id = json!({"requestId": event.params["requestId"]});
            return self.notify("Fetch.continueRequest", id);
        }
        if let Err(refusal) = visit.add(event) {
            tracing::trace!(
                event = "part_refused",
                url,
                refusal,
                "a request of a page was refused"
            );
            self.refuse_request(event);
        }
    }

    fn refuse_request(&self, event: &Event) {
        let params = json!({
            "requestId": event.params["requestId"], "errorReason": "BlockedByClient",
        });
        self.notify("Fetch.failRequest", params);
    }

    fn answer_request(&self, request_id: &str, part: Subresource) {
        match part {
            Subresource::Answer(answer) => {
                self.notify("Fetch.fulfillRequest", answer.fulfil_params(request_id))
            }
            Subresource::None => {
                let params = json!({"requestId": request_id, "errorReason": "Failed"});
                self.notify("Fetch.failRequest", params);
            }
        }
    }

    /// Starts the page's virtual clock.
    fn start_clock(&self, settle: Duration) {
        let params = json!({
            "policy": "pauseIfNetworkFetchesPending",
            "budget": settle.as_millis() as u64,
            // Without this limit, a page that keeps queueing work for one moment would stop the clock.
            "maxVirtualTimeTaskStarvationCount": 10_000,
        });
        self.notify("Emulation.setVirtualTimePolicy", params);
    }

    /// Reads the document from the browser itself, so that scripts of the page cannot falsify it.
    async fn read_document(&self) -> Result<Rendered, ReadError> {
        let document = self.call("DOM.getDocument", json!({"depth": 0})).await?;
        let node = json!({"nodeId": document["root"]["nodeId"]});
        let mut answer = self.call("DOM.getOuterHTML", node).await?;
        match answer["outerHTML"].take() {
            Value::String(text) => Ok(Rendered::Text(text)),
            _ => Err(ReadError::Page(PageFault::Crashed)),
        }
    }
}

type PendingFetch<'a> = Pin<Box<dyn Future<Output = (String, Result<Subresource, Denied>)> + 'a>>;

async fn wait_for_fetch(
    under_way: &mut Option<PendingFetch<'_>>,
) -> (String, Result<Subresource, Denied>) {
    match under_way {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

/// The stage of a page in its tab; the head of this file describes the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opened,
    Delivered,
    Running,
}

enum Step {
    GoesOn,
    MovedTo(String),
    AtRest,
}

/// The state of a page in its tab.
struct PageVisit<'a> {
    page: &'a Page<'a>,
    settle: Duration,
    stage: Stage,
    /// How many more subresources the page may request.
    left: usize,
    /// The page's requests that are not fetched yet, with their ids.
    waiting: VecDeque<(String, SubresourceRequest)>,
}

impl<'a> PageVisit<'a> {
    fn new(page: &'a Page<'a>, config: &BrowserConfig) -> PageVisit<'a> {
        PageVisit {
            page,
            settle: Duration::from_secs_f64(config.settle),
            stage: Stage::Opened,
            left: config.max_requests,
            waiting: VecDeque::new(),
        }
    }

    /// Queues a request, or returns why it is refused.
    fn add(&mut self, event: &Event) -> Result<(), &'static str> {
        let request = SubresourceRequest::from_event(event, self.page.site)?;
        let left = self.left.checked_sub(1);
        self.left = left.ok_or("the page exceeds its limit of requests")?;
        let id = event.params["requestId"].as_str().unwrap_or_default();
        self.waiting.push_back((id.to_owned(), request));
        Ok(())
    }
}
