//! The tools for a fleet. Each sends one action as public JSON. The dispatcher decides by the key's rights whether the
//! action is allowed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use webfill_service::Fault;

use super::answer::Answer;
use super::arguments::{CrawlArguments, FeedArguments, InfoArguments, NoArguments, WhyArguments};
use super::caller::Caller;
use crate::demand::{self, ConnectionOptions};

/// The most requests of one feed.
const MOST_REQUESTS: usize = 1_000;

/// The most requests to the dispatcher at a time. Each has its own thread and connection.
const AT_A_TIME: usize = 8;

/// How often to check the state of a crawl, if a call waits for its end.
const POLL_EVERY: Duration = Duration::from_secs(1);

const WHOLE: &str = "`webfill info`, `why` and `status` with --json print the whole";

pub struct Fleet {
    connection: ConnectionOptions,
    permits: Arc<Semaphore>,
}

impl Fleet {
    pub fn new(connection: ConnectionOptions) -> Result<Fleet, Fault> {
        // Check the address and the keys now, so that a fault is reported when the command starts.
        connection.resolve()?;
        Ok(Fleet {
            connection,
            permits: Arc::new(Semaphore::new(AT_A_TIME)),
        })
    }

    pub async fn feed(&self, given: Result<FeedArguments, Fault>) -> Result<Answer, Fault> {
        let requests = given?.requests;
        if requests.is_empty() || requests.len() > MOST_REQUESTS {
            let count = requests.len();
            return Err(Fault::usage(format!(
                "requests: expected 1 to {MOST_REQUESTS}, not {count}"
            )));
        }
        let fed = self
            .run_blocking(move |connection| demand::feed_list(connection, &requests))
            .await;
        Ok(Answer::new(fed?, WHOLE))
    }

    pub async fn info(
        &self,
        given: Result<InfoArguments, Fault>,
        caller: &mut Caller,
    ) -> Result<Answer, Fault> {
        let given = given?;
        let mut question = demand::crawl_action("info", &given.appid, given.crawlid.as_deref());
        if let Some(after) = given.cursor {
            question["after"] = after.into();
        }
        let deadline = Caller::deadline(given.wait_seconds);
        loop {
            let mut answer = self.send_action(question.clone()).await?;
            let is_over = answer["state"] != "running";
            caller.report_progress(describe_progress(&answer)).await;
            let poll = tokio::time::sleep(POLL_EVERY);
            if is_over || caller.wait(deadline, poll).await.is_none() {
                let next = answer.as_object_mut().and_then(|all| all.remove("next"));
                let next = next.and_then(|next| next.as_str().map(str::to_owned));
                return Ok(Answer::new(answer, WHOLE).with_next(next));
            }
        }
    }

    pub async fn status(&self, given: Result<NoArguments, Fault>) -> Result<Answer, Fault> {
        given?;
        let answer = self.send_action(json!({"action": "status"})).await?;
        Ok(Answer::new(answer, WHOLE))
    }

    pub async fn why(&self, given: Result<WhyArguments, Fault>) -> Result<Answer, Fault> {
        let WhyArguments {
            url,
            appid,
            crawlid,
        } = given?;
        let asked = self.run_blocking(move |connection| {
            demand::request_why(connection, &url, appid.as_deref(), crawlid.as_deref())
        });
        Ok(Answer::new(asked.await?, WHOLE))
    }

    pub async fn pause_or_resume(
        &self,
        action: &str,
        given: Result<CrawlArguments, Fault>,
    ) -> Result<Answer, Fault> {
        let CrawlArguments { appid, crawlid } = given?;
        let answer = self.send_action(demand::crawl_action(action, &appid, Some(&crawlid)));
        Ok(Answer::new(answer.await?, WHOLE))
    }

    async fn send_action(&self, action: Value) -> Result<Value, Fault> {
        self.run_blocking(move |connection| demand::send_action(connection, &action))
            .await
    }

    async fn run_blocking(
        &self,
        ask: impl FnOnce(&ConnectionOptions) -> Result<Value, Fault> + Send + 'static,
    ) -> Result<Value, Fault> {
        let permits = Arc::clone(&self.permits);
        let permit = permits.acquire_owned().await.map_err(Fault::error)?;
        let connection = self.connection.clone();
        let asked = tokio::task::spawn_blocking(move || {
            // If the call is cancelled, its connection stays open until the dispatcher answers. The permit is held
            // until then.
            let _permit = permit;
            ask(&connection)
        });
        asked.await.map_err(Fault::error)?
    }
}

fn describe_progress(answer: &Value) -> String {
    let count = |key: &str| answer[key].as_u64().unwrap_or_default();
    format!("{} done, {} pending", count("done"), count("total_pending"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_cancelled_request_holds_its_permit_until_its_connection_ends() {
        let connection = ConnectionOptions {
            dispatcher: Some(String::from("tcp://127.0.0.1:9")),
            keys: None,
            config: None,
        };
        let fleet = Fleet::new(connection).unwrap();
        let (end, ended) = mpsc::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let asked = fleet.run_blocking(move |_| {
                let _ = ended.recv();
                Ok(Value::Null)
            });
            let cancelled = tokio::time::timeout(Duration::from_millis(20), asked).await;
            assert!(cancelled.is_err());
            assert_eq!(fleet.permits.available_permits(), AT_A_TIME - 1);
            drop(end);
            let all = fleet.permits.acquire_many(AT_A_TIME as u32).await;
            assert!(all.is_ok());
        });
    }
}
