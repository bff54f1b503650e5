//! One page in a tab of its own: delivered, given what it asks for, read when its scripts have come to
//! rest.
//!
//! Every request of the page is stopped in the browser and told to us (`Fetch.enable`); the answer is
//! what we fetched. So the browser itself never asks anybody, and one place judges and paces all requests.
//!
//! The page's clock stands still while it waits for an answer (`Emulation.setVirtualTimePolicy`): a
//! polite wait of a minute is no time at all for its scripts. And when nothing is awaited the clock
//! jumps from timer to timer, so that a page which fills itself after three seconds costs milliseconds.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use webfill_urls::canonical;

use super::devtools::{DevTools, Event, NoAnswer};
use super::parts::{Part, PartRequest, base64};
use super::{BrowserConfig, Page, Rendered};
use crate::permits::Denied;

/// A tab that is not closed by then is not going to be.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// Why a page was not read.
#[derive(Debug)]
pub enum Unread {
    /// The browser is gone; the page need not be why.
    BrowserGone,
    /// The page is to blame.
    Page(Fault),
    /// A request was not permitted any more.
    Denied,
}

/// What a page did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Its tab crashed: too much memory, mostly.
    Crashed,
    /// Its scripts ran for too long.
    TookTooLong,
    TooLarge,
}

impl From<NoAnswer> for Unread {
    fn from(why: NoAnswer) -> Unread {
        match why {
            NoAnswer::TooLarge => Unread::Page(Fault::TooLarge),
            // What is refused was asked of a tab that has just crashed or closed.
            NoAnswer::Refused(_) => Unread::Page(Fault::Crashed),
            NoAnswer::Gone => Unread::BrowserGone,
        }
    }
}

/// A tab in a browser context of its own: it shares nothing with others, and leaves nothing behind.
pub struct Tab {
    devtools: DevTools,
    context: String,
    /// Also the name of its main frame.
    target: String,
    session: String,
    events: mpsc::UnboundedReceiver<Event>,
}

impl Tab {
    pub async fn open(devtools: &DevTools, user_agent: &str) -> Result<Tab, NoAnswer> {
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
            events: devtools.events(&session),
            devtools: devtools.clone(),
            context,
            target,
            session,
        };
        let denied = json!({"behavior": "deny", "browserContextId": tab.context});
        devtools
            .call(None, "Browser.setDownloadBehavior", denied)
            .await?;
        // Answered before the page comes, or some of it would pass unseen.
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

    /// Closes it. False if that did not work, and the browser had better be replaced.
    pub async fn close(self) -> bool {
        let params = json!({"browserContextId": self.context});
        let closed = self
            .devtools
            .call(None, "Target.disposeBrowserContext", params);
        matches!(timeout(CLOSE_WITHIN, closed).await, Ok(Ok(_)))
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, NoAnswer> {
        self.devtools
            .call(Some(&self.session), method, params)
            .await
    }

    fn tell(&self, method: &str, params: Value) {
        self.devtools.tell(Some(&self.session), method, params);
    }

    /// Shows a page and reads it when its scripts have come to rest. `fetch` gets what it asks for, one
    /// after another.
    pub async fn read(
        &mut self,
        page: &Page<'_>,
        config: &BrowserConfig,
        fetch: impl AsyncFn(PartRequest) -> Result<Part, Denied>,
    ) -> Result<Rendered, Unread> {
        self.tell("Page.navigate", json!({"url": page.url.as_str()}));
        let patience = Duration::from_secs_f64(config.page_deadline);
        let mut stay = Stay::new(page, config);
        let mut patient_until = Instant::now() + patience;
        let mut under_way: Option<UnderWay<'_>> = None;
        loop {
            if under_way.is_none()
                && let Some((id, request)) = stay.waiting.pop_front()
            {
                let fetched = fetch(request);
                under_way = Some(Box::pin(async move { (id, fetched.await) }));
            }
            tokio::select! {
                event = self.events.recv() => {
                    let event = event.ok_or(Unread::BrowserGone)?;
                    match self.take(&event, &mut stay)? {
                        Step::GoesOn => {}
                        Step::MovedTo(url) => return Ok(Rendered::MovedTo(url)),
                        Step::AtRest => break,
                    }
                }
                (id, part) = arrival(&mut under_way) => {
                    under_way = None;
                    self.answer(&id, part.map_err(|_| Unread::Denied)?);
                    patient_until = Instant::now() + patience;
                }
                // Whoever waits for us is not to blame for it.
                () = sleep_until(patient_until), if under_way.is_none() => {
                    return Err(Unread::Page(Fault::TookTooLong));
                }
            }
        }
        drop(under_way);
        let text = timeout(patience, self.text()).await;
        text.unwrap_or(Err(Unread::Page(Fault::TookTooLong)))
    }

    /// Takes one event.
    fn take(&self, event: &Event, stay: &mut Stay<'_>) -> Result<Step, Unread> {
        match event.method.as_str() {
            "Fetch.requestPaused" if self.is_main_document(event) => match stay.stage {
                Stage::Opened => {
                    stay.stage = Stage::Delivered;
                    self.deliver(event, stay.page);
                }
                _ => return Ok(self.moves(event, stay.page)),
            },
            "Fetch.requestPaused" => self.take_request(event, stay),
            "Page.frameNavigated"
                if stay.stage == Stage::Delivered && self.is_main_frame(event) =>
            {
                stay.stage = Stage::Running;
                self.start_clock(stay.settle);
            }
            "Emulation.virtualTimeBudgetExpired" if stay.stage == Stage::Running => {
                return Ok(Step::AtRest);
            }
            // Scripts stand still until somebody answers.
            "Page.javascriptDialogOpening" => {
                self.tell("Page.handleJavaScriptDialog", json!({"accept": false}));
            }
            // Or closed itself.
            "Inspector.targetCrashed" | "Inspector.detached" => {
                return Err(Unread::Page(Fault::Crashed));
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

    fn deliver(&self, event: &Event, page: &Page<'_>) {
        let answer = json!({
            "requestId": event.params["requestId"],
            "responseCode": 200,
            "responseHeaders": [{"name": "Content-Type", "value": "text/html; charset=utf-8"}],
            "body": base64(page.text.as_bytes()),
        });
        self.tell("Fetch.fulfillRequest", answer);
    }

    /// Scripts, or a refresh, want another page in this one's place. One that only loads itself again is
    /// read as it is.
    fn moves(&self, event: &Event, page: &Page<'_>) -> Step {
        self.refuse(event);
        let request = &event.params["request"];
        let target = request["url"].as_str().unwrap_or_default();
        match canonical(target, None) {
            Ok(url) if request["method"] == "GET" && url != *page.url => Step::MovedTo(url.into()),
            _ => Step::GoesOn,
        }
    }

    fn take_request(&self, event: &Event, stay: &mut Stay<'_>) {
        let url = event.params["request"]["url"].as_str().unwrap_or_default();
        if url.starts_with("data:") || url.starts_with("blob:") {
            let id = json!({"requestId": event.params["requestId"]});
            return self.tell("Fetch.continueRequest", id);
        }
        if let Err(refusal) = stay.add(event) {
            tracing::trace!(
                event = "part_refused",
                url,
                refusal,
                "a page does not get what it asks for"
            );
            self.refuse(event);
        }
    }

    fn refuse(&self, event: &Event) {
        let params = json!({
            "requestId": event.params["requestId"], "errorReason": "BlockedByClient",
        });
        self.tell("Fetch.failRequest", params);
    }

    fn answer(&self, request_id: &str, part: Part) {
        match part {
            Part::Answer(answer) => self.tell("Fetch.fulfillRequest", answer.fulfil(request_id)),
            Part::None => {
                let params = json!({"requestId": request_id, "errorReason": "Failed"});
                self.tell("Fetch.failRequest", params);
            }
        }
    }

    /// From now on the page's clock is ours.
    fn start_clock(&self, settle: Duration) {
        let params = json!({
            "policy": "pauseIfNetworkFetchesPending",
            "budget": settle.as_millis() as u64,
            // Work without end at one moment of the page's time would hold up the next moment.
            "maxVirtualTimeTaskStarvationCount": 10_000,
        });
        self.tell("Emulation.setVirtualTimePolicy", params);
    }

    /// The document as it is now, asked of the browser itself: no script of the page has a say in it.
    async fn text(&self) -> Result<Rendered, Unread> {
        let document = self.call("DOM.getDocument", json!({"depth": 0})).await?;
        let node = json!({"nodeId": document["root"]["nodeId"]});
        let mut answer = self.call("DOM.getOuterHTML", node).await?;
        match answer["outerHTML"].take() {
            Value::String(text) => Ok(Rendered::Text(text)),
            _ => Err(Unread::Page(Fault::Crashed)),
        }
    }
}

type UnderWay<'a> = Pin<Box<dyn Future<Output = (String, Result<Part, Denied>)> + 'a>>;

async fn arrival(under_way: &mut Option<UnderWay<'_>>) -> (String, Result<Part, Denied>) {
    match under_way {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

/// How far a tab is with its page.
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

/// A page in its tab.
struct Stay<'a> {
    page: &'a Page<'a>,
    settle: Duration,
    stage: Stage,
    /// So much more it may ask for.
    left: usize,
    /// What it has asked for, by the browser's names for the requests.
    waiting: VecDeque<(String, PartRequest)>,
}

impl<'a> Stay<'a> {
    fn new(page: &'a Page<'a>, config: &BrowserConfig) -> Stay<'a> {
        Stay {
            page,
            settle: Duration::from_secs_f64(config.settle),
            stage: Stage::Opened,
            left: config.max_requests,
            waiting: VecDeque::new(),
        }
    }

    /// Takes a request up, or says why not.
    fn add(&mut self, event: &Event) -> Result<(), &'static str> {
        let request = PartRequest::read(event, self.page.site)?;
        let left = self.left.checked_sub(1);
        self.left = left.ok_or("the page has asked for too much")?;
        let id = event.params["requestId"].as_str().unwrap_or_default();
        self.waiting.push_back((id.to_owned(), request));
        Ok(())
    }
}
